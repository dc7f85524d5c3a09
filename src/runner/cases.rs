//! Cases: tests that are an input and what must come out of it. The judge keeps what must come out; the
//! candidate's process gets the inputs, one after the other, and says what came out.
//!
//! When that process dies or hangs in a case, the case is an error, the results before it stand, and a fresh
//! process goes on behind it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::contained::{Contained, Request};
use super::ending::{last_words, reason_of, words};
use super::marks::Marks;
use super::stage::{Module, Staged, Tests, stage};
use super::{Candidate, Error, Generation, IsCancelled, seconds};
use crate::containment::Containment;
use crate::outcome::{About, SuiteResult, TestResult, TestSeverity, TestStatus};
use crate::sandbox::{Done, End, Event, Job, Lease, Limits, Waits};

const REPORT_BYTES: usize = 256 << 20;
const LINE_BYTES: usize = 96 << 20;
const MESSAGE_CHARS: usize = 2000;
const MOST_MARKS: usize = 100;

/// What a candidate's process is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fresh {
    /// One case.
    Process,
    /// All cases of a candidate, as long as it lives.
    Program,
}

impl Fresh {
    /// Its name, `"process"` or `"program"`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Program => "program",
        }
    }

    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Process, Self::Program].into_iter().find(|fresh| fresh.as_str() == name)
    }
}

/// What the duration of a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Elapsed time, less what the machine made it wait for a processor.
    Elapsed,
    /// Processor time of all its processes; each case needs a process of its own.
    Cpu,
}

impl Clock {
    /// The one of this name, `"elapsed"` or `"cpu"`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "elapsed" => Some(Self::Elapsed),
            "cpu" => Some(Self::Cpu),
            _ => None,
        }
    }

    /// What a process took that was its case's alone.
    fn of(self, done: &Done) -> Duration {
        match self {
            Self::Cpu => done.cpu,
            // One that was ended took what it took.
            Self::Elapsed if matches!(done.end, End::Exited(_)) => done.counted,
            Self::Elapsed => done.duration,
        }
    }
}

/// What all cases have.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The name of the test.
    pub name: String,
    /// How much its failure weighs.
    pub severity: TestSeverity,
    /// A time limit of its own, in seconds.
    pub timeout_s: Option<f64>,
}

/// One line of what the process says; see `python/testgrad/_program.py`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line {
    /// The files of the run do not fit.
    Full { message: String },
    /// The candidate could not be imported.
    Failed { message: String, details: String },
    /// A case begins.
    Started { case: usize },
    /// A program has ended.
    Output { case: usize, status: i32, stdout: String, stderr: String },
    /// A function has returned.
    Value { case: usize, value: String },
    /// The candidate tries what containment refuses.
    Mark { mark: String, evidence: String },
    /// A function has raised an exception.
    Raised { case: usize, types: Vec<String>, message: String, details: String },
    #[serde(other)]
    Unknown,
}

impl Line {
    fn case(&self) -> Option<usize> {
        match self {
            Self::Output { case, .. } | Self::Value { case, .. } | Self::Raised { case, .. } => Some(*case),
            _ => None,
        }
    }
}

/// What became of one case.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) status: TestStatus,
    pub(super) reason: Option<&'static str>,
    pub(super) message: String,
    pub(super) details: String,
}

impl Finding {
    pub(super) fn passed() -> Self {
        Self { status: TestStatus::Passed, reason: None, message: String::new(), details: String::new() }
    }

    pub(super) fn failed(message: impl Into<String>, details: impl Into<String>) -> Self {
        Self { status: TestStatus::Failed, reason: None, message: message.into(), details: details.into() }
    }

    pub(super) fn error(
        reason: &'static str,
        message: impl Into<String>,
        details: impl Into<String>,
    ) -> Self {
        let (message, details) = (message.into(), details.into());
        Self { status: TestStatus::Error, reason: Some(reason), message, details }
    }
}

/// How the process of one or more cases is asked for.
pub(super) struct Ask<'a> {
    /// The request, for the cases that are still to be run.
    pub(super) request: &'a Request,
    /// Standard input.
    pub(super) stdin: &'a [u8],
    /// The cases that it is for, in their order.
    pub(super) cases: Vec<usize>,
}

/// One candidate before its cases.
pub(super) struct Run<'a> {
    limits: &'a Limits,
    labels: &'a [Label],
    results: Vec<Option<(Finding, f64)>>,
    problems: Vec<String>,
    warnings: Vec<String>,
    marks: Marks,
    containment: Option<Arc<Containment>>,
    generation: Generation,
    started: Instant,
    counted: Duration,
    cpu: Duration,
    clock: Clock,
    stops_at_failure: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(limits: &'a Limits, labels: &'a [Label], clock: Clock, stops_at_failure: bool) -> Self {
        Self {
            limits,
            labels,
            results: labels.iter().map(|_| None).collect(),
            problems: Vec::new(),
            warnings: Vec::new(),
            marks: Marks::default(),
            containment: None,
            generation: Generation::now(),
            started: Instant::now(),
            counted: Duration::ZERO,
            cpu: Duration::ZERO,
            clock,
            stops_at_failure,
        }
    }

    /// The candidate's files; `None` when it has too many of them, which is its error in every case.
    pub(super) fn stage(
        &mut self,
        module: &Module,
        candidate: &Candidate,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<Option<Staged>, Error> {
        let none = Tests::Files(Vec::new());
        let mut staged = stage(&none, module, candidate, self.limits.scratch_bytes, is_cancelled)?;
        if matches!(candidate, Candidate::Workspace(_)) {
            self.leave_out_data(&mut staged);
        }
        for path in &staged.outside {
            self.problems.push(format!("the candidate's file {path:?} is not a path inside its directory"));
        }
        if !staged.unread.is_empty() {
            self.warnings.push(format!(
                "of the candidate's files, links that lead outside and what cannot be read are left out: {}",
                staged.unread.join(", ")
            ));
        }
        if let Some(excess) = &staged.excess {
            self.give_rest(|| Finding::error("disk", excess.clone(), ""));
            return Ok(None);
        }
        Ok(Some(staged))
    }

    /// Leaves out of a workspace what is no program: the cases may lie there, with their answers.
    fn leave_out_data(&mut self, staged: &mut Staged) {
        let is_program = |path: &Path| path.extension().is_some_and(|extension| extension == "py");
        let left_out = staged.parcel.retain(is_program);
        if !left_out.is_empty() {
            let names: Vec<_> = left_out.iter().map(|path| path.display().to_string()).collect();
            self.warnings.push(format!(
                "of the candidate's workspace, only Python files are used, not {}",
                names.join(", ")
            ));
        }
    }

    /// A worker to run them in.
    pub(super) fn lease(
        &mut self,
        contained: &Contained,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<Lease, Error> {
        let lease = contained.lease("program", "_program.py", &serde_json::json!({}), is_cancelled)?;
        self.containment = Some(lease.containment());
        self.started = Instant::now();
        Ok(lease)
    }

    /// The first case that has no result yet.
    pub(super) fn next(&self) -> Option<usize> {
        self.results.iter().position(Option::is_none)
    }

    /// The cases that have no result yet.
    pub(super) fn open(&self) -> Vec<usize> {
        let none = |(index, result): (usize, &Option<_>)| result.is_none().then_some(index);
        self.results.iter().enumerate().filter_map(none).collect()
    }

    /// Whether there is something left to do, and time for it.
    pub(super) fn goes_on(&self) -> bool {
        let is_failing = |(finding, _): &(Finding, f64)| finding.status != TestStatus::Passed;
        self.counted < self.limits.timeout()
            && self.cpu < self.limits.cpu()
            && self.results.iter().any(Option::is_none)
            && !(self.stops_at_failure && self.results.iter().flatten().any(is_failing))
    }

    fn give_rest(&mut self, finding: impl Fn() -> Finding) {
        for result in self.results.iter_mut().filter(|result| result.is_none()) {
            *result = Some((finding(), 0.0));
        }
    }

    fn give(&mut self, case: usize, finding: Finding, duration: Duration) {
        if let Some(result @ None) = self.results.get_mut(case) {
            *result = Some((finding, duration.as_secs_f64() * 1e3));
        }
    }

    fn limit_of(&self, case: usize) -> Option<Duration> {
        let own = self.labels.get(case).and_then(|label| label.timeout_s).map(Duration::from_secs_f64);
        own.or(self.limits.test_timeout())
    }

    fn remaining(&self) -> (Duration, Duration) {
        (self.limits.timeout().saturating_sub(self.counted), self.limits.cpu().saturating_sub(self.cpu))
    }

    /// One process for one case: a program with its input.
    pub(super) fn one(
        &mut self,
        lease: &mut Lease,
        ask: &Ask<'_>,
        is_cancelled: &mut IsCancelled<'_>,
        judge: &mut dyn FnMut(usize, &Done) -> Result<Finding, Error>,
    ) -> Result<(), Error> {
        let Some(&case) = ask.cases.first() else { return Ok(()) };
        let (time, cpu) = self.remaining();
        let own = self.limit_of(case).filter(|limit| *limit < time);
        let mut is_interrupted = false;
        let mut full = None;
        let name = self.labels.get(case).map(|label| &*label.name);
        let mut marks = std::mem::take(&mut self.marks);
        let generation = self.generation;
        let done = {
            let mut watch = |event: Event<'_>| {
                if let Event::Line(line, _) = event {
                    match serde_json::from_slice(line) {
                        Ok(Line::Full { message }) => full = Some(message),
                        Ok(Line::Mark { mark, evidence }) => marks.add(&mark, &evidence, name),
                        _ => {}
                    }
                }
                if matches!(event, Event::Tick(_)) && (generation.is_cancelled() || is_cancelled()) {
                    is_interrupted = true;
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            };
            let job = self.job(ask, own.unwrap_or(time), cpu.min(own.map_or(cpu, |own| self.cpu_of(own))));
            lease.run(&job, &mut watch, &mut || generation.is_cancelled())?
        };
        self.marks = marks;
        if is_interrupted {
            return Err(Error::Interrupted);
        }
        self.counted += done.counted;
        self.cpu += done.cpu;
        let finding = match (full, done.end) {
            (Some(message), _) => Finding::error("disk", message, ""),
            (None, End::Exited(_)) => judge(case, &done)?,
            (None, end) => {
                let own = own.filter(|own| done.counted >= *own);
                let words = self.words(end, own);
                Finding::error(reason_of(end), words, last_words(&[&String::from_utf8_lossy(&done.stderr)]))
            }
        };
        self.give(case, finding, self.clock.of(&done));
        Ok(())
    }

    /// Processor time for a case with a time limit of its own.
    fn cpu_of(&self, limit: Duration) -> Duration {
        let share = self.limits.cpu().as_secs_f64() / self.limits.timeout().as_secs_f64();
        Duration::try_from_secs_f64(limit.as_secs_f64() * share.max(1.0)).unwrap_or(Duration::MAX)
    }

    fn job<'j>(&self, ask: &'j Ask<'_>, time: Duration, cpu: Duration) -> Job<'j> {
        Job {
            request: ask.request.parts(),
            stdin: ask.stdin,
            timeout: time,
            cpu,
            output_bytes: usize::try_from(self.limits.output_bytes).unwrap_or(usize::MAX).saturating_mul(2),
            ends_on_flood: true,
            report_bytes: REPORT_BYTES,
            line_bytes: LINE_BYTES,
            more: Vec::new(),
            waits: Waits::Apart,
        }
    }

    /// One process for several cases.
    pub(super) fn many(
        &mut self,
        lease: &mut Lease,
        ask: &Ask<'_>,
        is_cancelled: &mut IsCancelled<'_>,
        judge: &mut dyn FnMut(usize, &Line) -> Result<Finding, Error>,
    ) -> Result<(), Error> {
        let (time, cpu) = self.remaining();
        let generation = self.generation;
        let mut say =
            Saying { running: None, last: Duration::ZERO, heard: Vec::new(), marks: Vec::new(), over: None };
        let mut is_interrupted = false;
        let done = {
            let limit_of = |case| self.limit_of(case);
            let stops = self.stops_at_failure;
            let mut failed = None;
            let mut has_failed = false;
            let mut watch = |event: Event<'_>| match event {
                // What came with the line that ended the run.
                Event::Line(..) if stops && has_failed => ControlFlow::Break(()),
                Event::Line(line, at) => match say.take(line, at, &mut *judge) {
                    Ok(found_failure) if found_failure && stops => {
                        has_failed = true;
                        ControlFlow::Break(())
                    }
                    Ok(_) if say.over.is_some() => ControlFlow::Break(()),
                    Ok(_) => ControlFlow::Continue(()),
                    Err(error) => {
                        failed = Some(error);
                        ControlFlow::Break(())
                    }
                },
                Event::LongLine => ControlFlow::Continue(()),
                Event::Tick(at) => {
                    is_interrupted = generation.is_cancelled() || is_cancelled();
                    let is_over = say.running.is_some_and(|(case, since)| {
                        limit_of(case).is_some_and(|limit| at.saturating_sub(since) >= limit)
                    });
                    if is_interrupted || is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
            };
            let job = self.job(ask, time, cpu);
            let done = lease.run(&job, &mut watch, &mut || generation.is_cancelled())?;
            match failed {
                Some(error) => return Err(error),
                None => done,
            }
        };
        if is_interrupted {
            return Err(Error::Interrupted);
        }
        self.counted += done.counted;
        self.cpu += done.cpu;
        self.settle(ask, say, &done);
        Ok(())
    }

    /// Takes what a process has said, and finds out what its end means.
    fn settle(&mut self, ask: &Ask<'_>, say: Saying, done: &Done) {
        for (case, mark, evidence) in &say.marks {
            let label = case.and_then(|case| self.labels.get(case));
            self.marks.add(mark, evidence, label.map(|label| &*label.name));
        }
        for (case, finding, duration) in say.heard {
            if ask.cases.binary_search(&case).is_ok() {
                let is_alone = self.clock == Clock::Cpu && ask.cases.len() == 1;
                self.give(case, finding, if is_alone { done.cpu } else { duration });
            }
        }
        if let Some(over) = say.over {
            self.give_rest(|| match &over {
                Line::Full { message } => Finding::error("disk", message, ""),
                Line::Failed { message, details } => Finding::error("collection", message, details),
                _ => Finding::error("crash", "", ""),
            });
            return;
        }
        let is_open = |case: &usize| self.results.get(*case).is_some_and(Option::is_none);
        let blamed = match say.running {
            Some((case, since)) => Some((case, done.counted.saturating_sub(since))),
            None if self.stops_at_failure && done.end == End::Stopped => None,
            None => ask.cases.iter().copied().find(is_open).map(|case| (case, Duration::ZERO)),
        };
        let Some((case, duration)) = blamed.filter(|(case, _)| is_open(case)) else { return };
        let stderr = String::from_utf8_lossy(&done.stderr);
        let own = self.limit_of(case).filter(|_| done.end == End::Stopped);
        let finding = Finding::error(reason_of(done.end), self.words(done.end, own), last_words(&[&stderr]));
        self.give(case, finding, duration);
    }

    fn words(&self, end: End, own: Option<Duration>) -> String {
        match (end, own) {
            (End::TimedOut | End::Stopped, Some(own)) => {
                format!("not done after {}, the limit for one case", seconds(own))
            }
            _ => words(end, self.limits.timeout(), self.limits.cpu()),
        }
    }

    /// Ends the run: the cases in their order, those without a turn as errors.
    pub(super) fn into_suite(self, name: &str) -> Result<SuiteResult, Error> {
        let about = About {
            duration_ms: Some(self.started.elapsed().as_secs_f64() * 1e3),
            problems: self.problems,
            warnings: self.warnings,
            marks: self.marks.into_list(),
            trust: Some("isolated".into()),
            containment: self.containment,
            ..About::named(name)
        };
        let tests = self.labels.iter().zip(self.results).map(|(label, result)| {
            let (finding, duration_ms) = result
                .unwrap_or_else(|| (Finding::error("not_run", "the run ended before this case", ""), 0.0));
            let message: String = finding.message.chars().take(MESSAGE_CHARS).collect();
            Ok(TestResult::new(&label.name, finding.status)
                .with_severity(label.severity)
                .with_message(&message)
                .with_details(&finding.details)
                .with_reason(finding.reason)
                .with_duration_ms(duration_ms)?)
        });
        Ok(SuiteResult::new(tests.collect::<Result<_, Error>>()?, about)?)
    }
}

/// What one process has said so far.
struct Saying {
    /// The case that is running, and since when.
    running: Option<(usize, Duration)>,
    last: Duration,
    heard: Vec<(usize, Finding, Duration)>,
    /// The case, kind and evidence of marks.
    marks: Vec<(Option<usize>, String, String)>,
    /// Why it can say nothing of any case.
    over: Option<Line>,
}

impl Saying {
    /// Takes one line; whether it told of a case that did not pass. Lines that fit nothing are the candidate's.
    fn take(
        &mut self,
        line: &[u8],
        at: Duration,
        judge: &mut dyn FnMut(usize, &Line) -> Result<Finding, Error>,
    ) -> Result<bool, Error> {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { return Ok(false) };
        match &line {
            Line::Started { case } => {
                self.running = Some((*case, at));
                return Ok(false);
            }
            Line::Mark { mark, evidence } => {
                if self.marks.len() < MOST_MARKS {
                    let case = self.running.map(|(case, _)| case);
                    self.marks.push((case, mark.clone(), evidence.clone()));
                }
            }
            Line::Full { .. } => self.over = Some(line),
            // Only the import comes before the first case.
            Line::Failed { .. } if self.heard.is_empty() && self.running.is_none() => self.over = Some(line),
            _ => {
                let Some((case, since)) = self.running.filter(|(case, _)| line.case() == Some(*case)) else {
                    return Ok(false);
                };
                let finding = judge(case, &line)?;
                let is_failing = finding.status != TestStatus::Passed;
                self.heard.push((case, finding, at.saturating_sub(since.max(self.last))));
                self.last = at;
                self.running = None;
                return Ok(is_failing);
            }
        }
        Ok(false)
    }
}
