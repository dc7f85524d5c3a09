//! Judges a function by what it returns for given arguments. What it should return stays on this side.

use serde_json::json;

use super::cases::{Ask, Clock, Finding, Fresh, Label, Line, Run};
use super::contained::{Contained, Request};
use super::stage::Module;
use super::value::{Agreement, Value, agree};
use super::{Candidate, Error, IsCancelled};
use crate::outcome::SuiteResult;

/// What a call must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Return this.
    Value(Value),
    /// Raise an exception of this class or of one below it.
    Raises(String),
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name, weight and time.
    pub label: Label,
    /// A tuple of positional arguments and a dict of named ones.
    pub arguments: Value,
    /// What the call must do.
    pub expected: Expected,
}

/// How functions are judged.
#[derive(Clone, Debug)]
pub struct Function {
    /// What holds the candidate.
    pub contained: Contained,
    /// What is called: `f`, `Class.method`.
    pub entry_point: String,
    /// The cases; see [`Self::labels`].
    pub cases: Vec<Case>,
    /// The labels of the cases.
    pub labels: Vec<Label>,
    /// When two values are the same.
    pub agreement: Agreement,
    /// What a process is good for.
    pub fresh: Fresh,
    /// What the duration of a case is.
    pub clock: Clock,
    /// The module that has the function.
    pub module: Module,
    /// Whether to end the run at the first case that does not pass.
    pub stops_at_failure: bool,
}

impl Function {
    /// Judges one candidate.
    pub fn judge(
        &self,
        candidate: &Candidate,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let mut run = Run::new(&self.contained.limits, &self.labels, self.clock, self.stops_at_failure);
        let Some(staged) = run.stage(&self.module, candidate, is_cancelled)? else {
            return run.into_suite("function");
        };
        let mut lease = run.lease(&self.contained, is_cancelled)?;
        let files = staged.parcel.entries();
        while run.goes_on() {
            let mut open = run.open();
            if self.fresh == Fresh::Process {
                open.truncate(1);
            }
            let arguments: Vec<(usize, String)> = open
                .iter()
                .filter_map(|index| Some((*index, self.cases.get(*index)?.arguments.to_json())))
                .collect();
            let fields = json!({"kind": "program", "how": "function", "main": self.module.main(files),
                                "module": self.module.name(), "entry_point": self.entry_point,
                                "cases": arguments});
            let request = Request::new(fields, files, &[]);
            let ask = Ask { request: &request, stdin: &[], cases: open };
            run.many(&mut lease, &ask, is_cancelled, &mut |case, line| Ok(self.finding(case, line)))?;
        }
        run.into_suite("function")
    }

    fn finding(&self, case: usize, line: &Line) -> Finding {
        let Some(case) = self.cases.get(case) else {
            return Finding::error("crash", "there is no such case", "");
        };
        match (line, &case.expected) {
            (Line::Value { value, .. }, Expected::Value(expected)) => match Value::parse(value.as_bytes()) {
                Ok(actual) => match agree(&actual, expected, &self.agreement) {
                    Ok(()) => Finding::passed(),
                    Err(difference) => Finding::failed(difference, ""),
                },
                Err(error) => Finding::failed(format!("returned what cannot be read: {error}"), ""),
            },
            (Line::Value { value, .. }, Expected::Raises(name)) => {
                let shown = Value::parse(value.as_bytes()).map(|value| value.short(200)).unwrap_or_default();
                Finding::failed(format!("returned {shown}, expected {name} to be raised"), "")
            }
            (Line::Raised { types, message, details, .. }, Expected::Raises(name)) => {
                match types.contains(name) {
                    true => Finding::passed(),
                    false => Finding::failed(format!("raised {message}, expected {name}"), details),
                }
            }
            (Line::Raised { types, message, details, .. }, Expected::Value(_)) => {
                if types.first().is_some_and(|first| first == "MemoryError") {
                    return Finding::error("memory", message, details);
                }
                Finding::failed(message, details)
            }
            _ => Finding::error("crash", "the process wrote over its report", ""),
        }
    }
}
