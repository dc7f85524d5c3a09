//! testgrad's own lines: every kind of task, lossless both ways.
//!
//! The keys are the arguments of `Task`; what a task does not have is left out. Values of function cases are
//! written as [`Value::to_plain_json`] says.

use std::path::PathBuf;
use std::sync::Arc;

use super::fields::{Row, files, program, text_of, wrong_type};
use super::suites::stdio_case;
use super::{Case, Files, Kind, Problem, Program, Source, Task};
use crate::runner::value::Value;

/// Whether a row is one of these.
pub(super) fn is_one(row: Row<'_>) -> bool {
    row.has("id") && matches!(row.get("kind"), Some(Value::Str(word)) if Kind::parse(word).is_ok())
}

pub(super) fn read(row: Row<'_>) -> Result<Task, Problem> {
    let id = row.name("id")?.ok_or(Problem::Missing("id"))?;
    let mut task = Task::new(&id, Kind::parse(row.need_text("kind")?)?);
    task.prompt = row.text("prompt")?.unwrap_or_default().into();
    task.module = row.text("module")?.map(Into::into);
    task.entry_point = row.text("entry_point")?.map(Into::into);
    task.tests = row.get("tests").map(|value| files(value, "tests")).transpose()?.unwrap_or(task.tests);
    let cases = row.list("cases")?.unwrap_or_default().iter().enumerate();
    task.cases = cases
        .map(|(index, case)| match task.kind {
            Kind::Function => function_case(case, index),
            _ => stdio_case(case, index),
        })
        .collect::<Result<_, _>>()?;
    task.compare = row.text("compare")?.map(Into::into);
    task.tolerance = row.number("tolerance")?;
    task.time_limit_s = row.number("time_limit_s")?;
    task.memory_limit_bytes = match row.get("memory_limit_bytes") {
        None => None,
        Some(Value::Int(digits)) if digits.parse::<u64>().is_ok() => digits.parse().ok(),
        Some(other) => return Err(wrong_type("memory_limit_bytes", "a number of bytes", other)),
    };
    task.reference = row.get("reference").map(|value| program(value, "reference")).transpose()?;
    task.stub = row.get("stub").map(|value| program(value, "stub")).transpose()?;
    let variants = row.object("variants")?.map(|variants| variants.0).unwrap_or_default();
    let variant = |(name, value): &(Value, Value)| -> Result<(Arc<str>, Program), Problem> {
        Ok((text_of(name, "variants")?.into(), program(value, "variants")?))
    };
    task.variants = variants.iter().map(variant).collect::<Result<_, _>>()?;
    if let Some(source) = row.object("source")? {
        let path = PathBuf::from(source.need_text("path")?);
        let line = source.number("line")?.map(|line| line as usize);
        task.source = Some(Source { path, line });
    }
    Ok(task)
}

/// Whether a row says itself where it was read, or that nobody knows.
pub(super) fn has_source(row: Row<'_>) -> bool {
    row.has("source")
}

fn function_case(case: &Value, index: usize) -> Result<Case, Problem> {
    let key = format!("cases[{index}]");
    let row = Row::of(case).ok_or_else(|| wrong_type(&key, "an object", case))?;
    let plain = |value: &Value, key: &str| {
        value.clone().from_plain().map_err(|what| Problem::unusable(key, format!("{what} is no value")))
    };
    let args = row.list("args")?.unwrap_or_default();
    let kwargs = row.object("kwargs")?.map(|kwargs| kwargs.0).unwrap_or_default();
    // null is a result like any other
    let expected = row.0.iter().find(|(name, _)| matches!(name, Value::Str(name) if name == "expected"));
    let (_, expected) = expected.ok_or_else(|| Problem::unusable(&key, "no \"expected\""))?;
    let named = |(name, value): &(Value, Value)| Ok((text_of(name, &key)?.to_owned(), plain(value, &key)?));
    Ok(Case::Function {
        args: args.iter().map(|value| plain(value, &key)).collect::<Result<_, Problem>>()?,
        kwargs: kwargs.iter().map(named).collect::<Result<_, Problem>>()?,
        expected: plain(expected, &key)?.into(),
    })
}

impl Task {
    /// The task as JSON on one line.
    pub fn to_json(&self) -> String {
        let mut pairs: Vec<(&str, String)> =
            vec![("id", string(&self.id)), ("kind", string(self.kind.as_str()))];
        let mut add = |key, value: Option<String>| pairs.extend(value.map(|value| (key, value)));
        add("prompt", (!self.prompt.is_empty()).then(|| string(&self.prompt)));
        add("module", self.module.as_deref().map(string));
        add("entry_point", self.entry_point.as_deref().map(string));
        add("tests", (!self.tests.is_empty()).then(|| files_json(&self.tests)));
        let cases = || format!("[{}]", self.cases.iter().map(case_json).collect::<Vec<_>>().join(","));
        add("cases", (!self.cases.is_empty()).then(cases));
        add("compare", self.compare.as_deref().map(string));
        add("tolerance", self.tolerance.map(number));
        add("time_limit_s", self.time_limit_s.map(number));
        add("memory_limit_bytes", self.memory_limit_bytes.map(|bytes| bytes.to_string()));
        add("reference", self.reference.as_ref().map(program_json));
        add("stub", self.stub.as_ref().map(program_json));
        let variants =
            || object(self.variants.iter().map(|(name, program)| (&**name, program_json(program))));
        add("variants", (!self.variants.is_empty()).then(variants));
        let source = self.source.as_ref().map_or_else(|| "null".to_owned(), source_json);
        add("source", Some(source));
        object(pairs.into_iter())
    }

    /// The task that [`Task::to_json`] wrote, or that anybody wrote by its rules.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        let value = Value::parse_plain(text.as_bytes()).map_err(Problem::Json)?;
        let row = Row::of(&value).ok_or_else(|| wrong_type("Task", "an object", &value))?;
        Ok(read(row)?.checked()?)
    }
}

fn string(text: &str) -> String {
    Value::Str(text.to_owned()).to_plain_json()
}

fn number(value: f64) -> String {
    Value::Float(value).to_plain_json()
}

fn object<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{}:{value}", string(key))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn files_json(files: &Files) -> String {
    object(files.iter().map(|(path, text)| (&**path, string(text))))
}

fn program_json(program: &Program) -> String {
    match program {
        Program::Code(code) => string(code),
        Program::Files(files) => files_json(files),
    }
}

fn case_json(case: &Case) -> String {
    match case {
        Case::Stdio { input, output } => {
            object([("input", string(input)), ("output", string(output))].into_iter())
        }
        Case::Function { args, kwargs, expected } => {
            let args: Vec<String> = args.iter().map(Value::to_plain_json).collect();
            let mut pairs = vec![("args", format!("[{}]", args.join(",")))];
            if !kwargs.is_empty() {
                let kwargs = kwargs.iter().map(|(name, value)| (&**name, value.to_plain_json()));
                pairs.push(("kwargs", object(kwargs)));
            }
            pairs.push(("expected", expected.to_plain_json()));
            object(pairs.into_iter())
        }
    }
}

fn source_json(source: &Source) -> String {
    let line = source.line.map_or_else(|| "null".to_owned(), |line| line.to_string());
    object([("path", string(&source.path.to_string_lossy())), ("line", line)].into_iter())
}
