//! Inputs and outputs, as the data sets for reinforcement learning on code have them.
//!
//! `{"inputs": [...], "outputs": [...], "fn_name": ...}`, as an object or as JSON in a string, is the row
//! itself or lies under one of [`HOLDERS`]; so does the list of `{"input", "output", "testtype"}`.
//! With a function's name a test is a call, else a program with standard input and output.
//!
//! Source: the loaders of APPS (hendrycks/apps), TACO, PRIME and verl (`prime_code`), DeepCoder and
//! LiveCodeBench.

mod found;

use std::sync::Arc;

use found::{Found, function_name};

use super::fields::{Row, text_of};
use super::suites::mebibytes;
use super::{Kind, Problem, Program, Task, packed};
use crate::runner::value::Value;

/// Where the tests may lie, in the order in which they are looked for.
const HOLDERS: [&str; 9] = [
    "input_output",
    "test_cases",
    "tests",
    "ground_truth",
    "reward_model",
    "verification_info",
    // No row is told by the others, but there they may lie.
    "answer",
    "unit_tests",
    "verifier_metadata",
];
const TELLING: usize = 6;
const PROMPTS: [&str; 6] =
    ["prompt", "question", "problem", "question_content", "description", "problem_statement"];
const SOLUTIONS: [&str; 3] = ["solutions", "solution", "gold_standard_solution"];
const IDS: [&str; 5] = ["id", "task_id", "problem_id", "question_id", "name"];

/// Whether a row is one of these.
pub(super) fn is_one(row: Row<'_>) -> bool {
    let is_pairs = row.has("inputs") && row.has("outputs");
    is_pairs || row.has("public_test_cases") || HOLDERS.iter().take(TELLING).any(|key| row.has(key))
}

pub(super) fn read(row: Row<'_>) -> Result<Task, Problem> {
    let mut found = Found::default();
    for key in ["public_test_cases", "private_test_cases"] {
        match row.get(key) {
            Some(Value::Str(text)) => found.add_under(key, &packed::unpacked(text, key)?, 0)?,
            Some(value) => found.add_under(key, value, 0)?,
            None => {}
        }
    }
    if found.tests.is_empty() {
        found.add_row(row, 0)?;
    }
    if found.tests.is_empty() {
        return Err(Problem::NoTests);
    }
    let name = found.fn_name.clone().or(function_name(row)?);
    let (kind, cases) = found.cases(name.as_deref())?;
    let mut task = Task::new("", kind);
    task.entry_point = name.filter(|_| kind == Kind::Function).map(Into::into);
    task.cases = cases;
    task.compare = (kind == Kind::Stdio).then(|| "trimmed".into());
    for key in IDS {
        if let (true, Some(id)) = (task.id.is_empty(), row.name(key)?) {
            task.id = id.into();
        }
    }
    task.prompt = prompt(row)?;
    task.time_limit_s = amount(row.get("time_limit"), "second").filter(|seconds| *seconds > 0.0);
    let megabytes = amount(row.get("memory_limit"), "megabyte").filter(|megabytes| *megabytes > 0.0);
    task.memory_limit_bytes = megabytes.map(mebibytes).transpose()?;
    task.stub = row.text("starter_code")?.filter(|code| !code.trim().is_empty()).map(code);
    let solutions = solutions(row)?;
    task.reference = solutions.first().map(|solution| code(solution));
    if solutions.len() > 1 {
        let numbered = solutions.iter().enumerate();
        task.variants =
            numbered.map(|(index, text)| (format!("solution{}", index + 1).into(), code(text))).collect();
    }
    Ok(task)
}

fn code(text: &str) -> Program {
    Program::Code(text.into())
}

/// The prompt: a text, or the user's part of a conversation.
fn prompt(row: Row<'_>) -> Result<Arc<str>, Problem> {
    for key in PROMPTS {
        match row.get(key) {
            Some(Value::List(messages)) => {
                let mut parts = Vec::new();
                for message in messages.iter().filter_map(Row::of) {
                    if message.text("role")? != Some("system") {
                        parts.extend(message.text("content")?);
                    }
                }
                return Ok(parts.join("\n\n").into());
            }
            Some(value) => return Ok(text_of(value, key)?.into()),
            None => {}
        }
    }
    Ok("".into())
}

/// The solutions: a text, or a list of them, or such a list as JSON in a string.
fn solutions(row: Row<'_>) -> Result<Vec<String>, Problem> {
    for key in SOLUTIONS {
        let texts = |items: &[Value]| {
            items
                .iter()
                .filter_map(|item| if let Value::Str(text) = item { Some(text.clone()) } else { None })
                .collect()
        };
        let found: Vec<String> = match row.get(key) {
            Some(Value::List(items)) => texts(items),
            Some(Value::Str(text)) if text.trim_start().starts_with('[') => {
                match Value::parse_plain(text.as_bytes()) {
                    Ok(Value::List(items)) => texts(&items),
                    _ => vec![text.clone()], // Python may begin so
                }
            }
            Some(Value::Str(text)) if !text.trim().is_empty() => vec![text.clone()],
            _ => Vec::new(),
        };
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// A number, alone or in words such as `2.0 seconds`; what is neither says nothing.
fn amount(value: Option<&Value>, unit: &str) -> Option<f64> {
    let number = match value? {
        Value::Int(digits) => digits.parse().ok()?,
        Value::Float(number) => *number,
        Value::Str(text) => {
            let (number, word) = text.trim().split_once(' ').unwrap_or((text.trim(), unit));
            number.parse().ok().filter(|_| word.trim().trim_end_matches('s') == unit)?
        }
        _ => return None,
    };
    Some(number).filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Case;

    fn task(text: &str) -> Result<Task, String> {
        let value = Value::parse_plain(text.as_bytes()).unwrap();
        read(Row::of(&value).unwrap()).map_err(|problem| problem.to_string())
    }

    fn calls(task: &Task) -> Vec<(String, String)> {
        let call = |case: &Case| match case {
            Case::Function { args, expected, .. } => {
                (Value::List(args.to_vec()).to_string(), expected.to_string())
            }
            Case::Stdio { input, output } => (input.to_string(), output.to_string()),
        };
        task.cases.iter().map(call).collect()
    }

    fn case(input: &str, output: &str) -> (String, String) {
        (input.to_owned(), output.to_owned())
    }

    #[test]
    fn results_in_lists_of_one_are_unwrapped_when_all_are() {
        let wrapped =
            task(r#"{"fn_name": "f", "inputs": [[1, 2], [[3], 4]], "outputs": [[3], [[7]]]}"#).unwrap();
        assert_eq!(calls(&wrapped), [case("[1, 2]", "3"), case("[[3], 4]", "[7]")]);
        let bare = task(r#"{"fn_name": "f", "inputs": [[1], [2]], "outputs": [[3], [7, 8]]}"#).unwrap();
        assert_eq!(calls(&bare), [case("[1]", "[3]"), case("[2]", "[7, 8]")]);
    }

    #[test]
    fn lines_of_json_are_arguments() {
        let text = r#"{"input_output": "{\"fn_name\": \"f\", \"inputs\": [\"[1, 2]\\n\\\"a\\\"\\n\"], \"outputs\": [\"[5]\"]}"}"#;
        assert_eq!(calls(&task(text).unwrap()), [case("[[1, 2], 'a']", "[5]")]);
    }

    #[test]
    fn huge_ints_and_int_keys_are_kept() {
        let digits = "1".repeat(50);
        let text = format!(
            r#"{{"fn_name": "f", "inputs": [[{{"1": "a"}}]], "outputs": [{{"-2": {digits}, "3": 1}}]}}"#
        );
        assert_eq!(calls(&task(&text).unwrap()), [case("[{1: 'a'}]", &format!("{{-2: {digits}, 3: 1}}"))]);
    }

    #[test]
    fn programs_get_texts_or_lines() {
        let text = r#"{"tests": {"inputs": ["1\n2\n", ["3", 4]], "outputs": ["3\n", ["7", "8"]]}}"#;
        assert_eq!(calls(&task(text).unwrap()), [case("1\n2\n", "3\n"), case("3\n4", "7\n8")]);
    }

    #[test]
    fn tests_are_found_where_the_data_sets_have_them() {
        let pairs = r#"{"inputs": ["1"], "outputs": ["2"]}"#;
        let quoted = Value::Str(pairs.to_owned()).to_plain_json();
        let list = r#"[{"input": "1", "output": "2", "testtype": "stdin", "metadata": {"func_name": null}}]"#;
        let quoted_list = Value::Str(list.to_owned()).to_plain_json();
        for text in [
            pairs.to_owned(),
            format!(r#"{{"input_output": {quoted}}}"#),
            format!(r#"{{"test_cases": {pairs}}}"#),
            format!(r#"{{"tests": {list}}}"#),
            format!(r#"{{"tests": {quoted_list}}}"#),
            format!(r#"{{"ground_truth": {quoted}}}"#),
            format!(r#"{{"reward_model": {{"style": "rule", "ground_truth": {quoted}}}}}"#),
            format!(r#"{{"verification_info": {{"language": "python", "test_cases": {list}}}}}"#),
            format!(r#"{{"verification_info": {{"ground_truth": {quoted}}}}}"#),
            format!(r#"{{"public_test_cases": {quoted_list}, "metadata": "{{}}"}}"#),
            r#"{"test_cases": {"type": "stdin_stdout", "input": ["1"], "output": ["2"], "fn_name": null}}"#
                .to_owned(),
        ] {
            let task = task(&text).unwrap();
            assert_eq!((task.kind, calls(&task)), (Kind::Stdio, vec![case("1", "2")]), "{text}");
        }
    }

    #[test]
    fn a_function_may_be_named_in_the_metadata() {
        let text = r#"{"metadata": "{\"func_name\": \"add\"}", "public_test_cases": "[{\"input\": \"1\\n2\", \"output\": \"3\", \"testtype\": \"functional\"}]"}"#;
        let task = task(text).unwrap();
        assert_eq!(task.entry_point.as_deref(), Some("add"));
        assert_eq!(calls(&task), [case("[1, 2]", "3")]);
    }

    #[test]
    fn what_cannot_be_judged_says_why() {
        for (text, problem) in [
            (r#"{"input_output": ""}"#, "no tests"),
            (r#"{"tests": []}"#, "no tests"),
            (r#"{"ground_truth": "42"}"#, "no tests"),
            (r#"{"inputs": ["1"], "outputs": []}"#, "\"outputs\": 1 inputs, but 0 outputs"),
            (
                r#"{"tests": "{\"inputs\": ["}"#,
                "\"tests\": broken JSON in the string, value, byte 12: expected a value",
            ),
            (r#"{"tests": [{"input": "1"}]}"#, "\"tests[0]\": no \"input\" and \"output\""),
            (
                r#"{"fn_name": "f", "inputs": ["a"], "outputs": ["1"]}"#,
                "\"inputs[0]\": \"a\" is no JSON: value, byte 0: expected a value",
            ),
            (
                r#"{"inputs": [{}], "outputs": ["1"]}"#,
                "\"inputs[0]\" must be a string or a list of lines, got dict",
            ),
        ] {
            assert_eq!(task(text).unwrap_err(), problem, "{text}");
        }
        let mixed = r#"{"fn_name": "f", "tests": [{"input": "1", "output": "1", "testtype": "stdin"}, {"input": "1", "output": "1", "testtype": "functional"}]}"#;
        assert_eq!(task(mixed).unwrap_err(), "\"testtype\": calls and programs in one task");
    }

    #[test]
    fn what_else_a_row_says_is_kept() {
        let text = r#"{"problem_id": 7, "question": "Add.", "starter_code": "def f(): ...", "solutions": "[\"a\", \"b\"]",
            "time_limit": "2.0 seconds", "memory_limit": "256 megabytes", "inputs": ["1"], "outputs": ["2"]}"#;
        let task = task(text).unwrap();
        assert_eq!((&*task.id, &*task.prompt), ("7", "Add."));
        assert_eq!((task.time_limit_s, task.memory_limit_bytes), (Some(2.0), Some(256 << 20)));
        assert_eq!(task.reference, Some(code("a")));
        assert_eq!(task.variants.len(), 2);
        assert_eq!(task.stub, Some(code("def f(): ...")));
    }
}
