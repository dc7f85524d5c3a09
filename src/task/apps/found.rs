//! The tests of a row: where they lie, and whether they are calls or programs.

use std::sync::Arc;

use super::super::fields::{Row, wrong_type};
use super::super::{Case, Kind, Problem};
use super::HOLDERS;
use crate::runner::value::Value;

/// Holders lie inside each other at most so deep.
const MAX_DEPTH: usize = 6;

/// What a row's tests are, before it is known how they are run.
#[derive(Default)]
pub(super) struct Found {
    pub(super) tests: Vec<Test>,
    pub(super) fn_name: Option<String>,
}

pub(super) struct Test {
    input: Value,
    output: Value,
    /// Whether it is a call, where the data say so.
    is_call: Option<bool>,
}

impl Found {
    pub(super) fn add_under(&mut self, key: &str, value: &Value, depth: usize) -> Result<(), Problem> {
        match value {
            Value::Str(text) if text.trim_start().starts_with(['{', '[']) => {
                let inner = Value::parse_plain(text.as_bytes())
                    .map_err(|error| Problem::unusable(key, format!("broken JSON in the string, {error}")))?;
                self.add(&inner, key, depth + 1)
            }
            value => self.add(value, key, depth + 1),
        }
    }

    /// Adds the tests that are in a value.
    fn add(&mut self, value: &Value, key: &str, depth: usize) -> Result<(), Problem> {
        match value {
            Value::Dict(pairs) => self.add_row(Row(pairs), depth),
            Value::List(items) if items.iter().any(|item| Row::of(item).is_some()) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.add_item(item, &format!("{key}[{index}]"))),
            _ => Ok(()),
        }
    }

    fn add_item(&mut self, item: &Value, key: &str) -> Result<(), Problem> {
        let lacks = || Problem::unusable(key, "no \"input\" and \"output\"");
        let test = Row::of(item).ok_or_else(lacks)?;
        let (Some(input), Some(output)) = (test.get("input"), test.get("output")) else {
            return Err(lacks());
        };
        self.fn_name = self.fn_name.take().or(function_name(test)?);
        self.tests.push(Test { input: input.clone(), output: output.clone(), is_call: is_call(test)? });
        Ok(())
    }

    /// Adds the first tests that are in an object.
    pub(super) fn add_row(&mut self, row: Row<'_>, depth: usize) -> Result<(), Problem> {
        for (inputs, outputs) in [("inputs", "outputs"), ("input", "output")] {
            let lists = (row.get(inputs), row.get(outputs));
            if let (Some(Value::List(inputs)), Some(Value::List(outputs))) = lists {
                self.fn_name = function_name(row)?;
                return self.add_pairs(inputs, outputs, is_call(row)?);
            }
        }
        for key in HOLDERS.iter().filter(|_| depth < MAX_DEPTH) {
            if let Some(inner) = row.get(key) {
                self.add_under(key, inner, depth)?;
                if !self.tests.is_empty() {
                    self.fn_name = self.fn_name.take().or(function_name(row)?);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn add_pairs(
        &mut self,
        inputs: &[Value],
        outputs: &[Value],
        is_call: Option<bool>,
    ) -> Result<(), Problem> {
        if inputs.len() != outputs.len() {
            let problem = format!("{} inputs, but {} outputs", inputs.len(), outputs.len());
            return Err(Problem::unusable("outputs", problem));
        }
        let pairs = inputs.iter().zip(outputs);
        self.tests.extend(pairs.map(|(input, output)| Test {
            input: input.clone(),
            output: output.clone(),
            is_call,
        }));
        Ok(())
    }

    /// The cases, all of one kind.
    pub(super) fn cases(self, fn_name: Option<&str>) -> Result<(Kind, Arc<[Case]>), Problem> {
        let is_call = |test: &Test| test.is_call.unwrap_or(fn_name.is_some());
        let calls = self.tests.iter().filter(|test| is_call(test)).count();
        if calls != 0 && calls != self.tests.len() {
            return Err(Problem::unusable("testtype", "calls and programs in one task"));
        }
        if calls != 0 && fn_name.is_none() {
            let problem = "calls of a function, but nothing says which (fn_name, metadata.func_name)";
            return Err(Problem::unusable("testtype", problem));
        }
        if calls == 0 {
            let case = |(index, test): (usize, &Test)| {
                let text = |value, key| text_of_lines(value, &format!("{key}[{index}]"));
                Ok(Case::Stdio {
                    input: text(&test.input, "inputs")?.into(),
                    output: text(&test.output, "outputs")?.into(),
                })
            };
            let cases = self.tests.iter().enumerate().map(case).collect::<Result<_, Problem>>()?;
            return Ok((Kind::Stdio, cases));
        }
        // Of one test alone nobody can tell; APPS, where the shape comes from, wraps them all.
        let is_wrapped = self.tests.iter().all(|test| {
            matches!(test.input, Value::List(_))
                && matches!(&test.output, Value::List(items) if items.len() == 1)
        });
        let tests = self.tests.into_iter().enumerate();
        let cases =
            tests.map(|(index, test)| call(index, test, is_wrapped)).collect::<Result<_, Problem>>()?;
        Ok((Kind::Function, cases))
    }
}

/// Whether data that say what kind of test they are mean a call.
fn is_call(test: Row<'_>) -> Result<Option<bool>, Problem> {
    for key in ["testtype", "type"] {
        match test.get(key) {
            Some(Value::Str(word)) if matches!(&**word, "functional" | "function_call" | "call_based") => {
                return Ok(Some(true));
            }
            Some(Value::Str(word)) if word.starts_with("stdin") => return Ok(Some(false)),
            Some(other) if key == "testtype" => {
                return Err(Problem::unusable(
                    key,
                    format!("{} is neither stdin nor functional", other.short(40)),
                ));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// `fn_name`, or `func_name` of the metadata.
pub(super) fn function_name(row: Row<'_>) -> Result<Option<String>, Problem> {
    let name = |row: Row<'_>, key| match row.get(key) {
        Some(Value::Str(name)) if !name.is_empty() => Some(name.clone()),
        _ => None,
    };
    if let Some(name) = name(row, "fn_name") {
        return Ok(Some(name));
    }
    Ok(match row.get("metadata") {
        Some(Value::Dict(pairs)) => name(Row(pairs), "func_name"),
        Some(Value::Str(text)) => Value::parse_plain(text.as_bytes())
            .ok()
            .and_then(|metadata| Row::of(&metadata).and_then(|metadata| name(metadata, "func_name"))),
        _ => None,
    })
}

/// A text, or lines of one.
fn text_of_lines(value: &Value, key: &str) -> Result<String, Problem> {
    let line = |value: &Value| match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Int(_) | Value::Float(_) => Ok(value.to_string()),
        other => Err(wrong_type(key, "a string or a list of lines", other)),
    };
    match value {
        Value::List(lines) => Ok(lines.iter().map(line).collect::<Result<Vec<_>, _>>()?.join("\n")),
        other => line(other),
    }
}

/// A call: a list of arguments, or one argument a line.
fn call(index: usize, test: Test, is_wrapped: bool) -> Result<Case, Problem> {
    let (input_key, output_key) = (format!("inputs[{index}]"), format!("outputs[{index}]"));
    let parse = |text: &str, key: &str| {
        Value::parse_plain(text.as_bytes())
            .map_err(|error| Problem::unusable(key, format!("{:?} is no JSON: {error}", short(text))))
    };
    let (mut args, is_text) = match test.input {
        Value::List(args) => (args, false),
        Value::Str(text) => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            (lines.map(|line| parse(line, &input_key)).collect::<Result<_, _>>()?, true)
        }
        single => (vec![single], false),
    };
    let mut expected = match test.output {
        Value::Str(text) if is_text => parse(&text, &output_key)?,
        Value::List(items) if is_wrapped => items.into_iter().next().unwrap_or(Value::None),
        other => other,
    };
    if let Some(first) = args.first_mut() {
        restore_int_keys(first);
    }
    restore_int_keys(&mut expected);
    for (value, key) in args.iter().map(|arg| (arg, &input_key)).chain([(&expected, &output_key)]) {
        if let Some(type_name) = not_plain(value) {
            return Err(Problem::unusable(key, format!("a {type_name}")));
        }
    }
    Ok(Case::Function { args: args.into(), kwargs: Arc::new([]), expected: expected.into() })
}

/// JSON has no int keys; the data sets' own loaders give them back to a first argument and a result.
fn restore_int_keys(value: &mut Value) {
    let is_int = |digits: &str| {
        let digits = digits.strip_prefix('-').unwrap_or(digits);
        digits == "0" || (digits.bytes().all(|b| b.is_ascii_digit()) && digits.starts_with(|c| c != '0'))
    };
    if let Value::Dict(pairs) = value
        && pairs.iter().all(|(key, _)| matches!(key, Value::Str(digits) if is_int(digits) && digits != "-0"))
    {
        for (key, _) in pairs {
            if let Value::Str(digits) = key {
                *key = Value::Int(std::mem::take(digits));
            }
        }
    }
}

fn not_plain(value: &Value) -> Option<&str> {
    match value {
        Value::Other { type_name } => Some(type_name),
        Value::List(items) => items.iter().find_map(not_plain),
        Value::Dict(pairs) => pairs.iter().find_map(|(_, value)| not_plain(value)),
        _ => None,
    }
}

fn short(text: &str) -> &str {
    text.char_indices().nth(40).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
