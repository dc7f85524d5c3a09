//! MBPP: `task_id`, `text` or `prompt`, `code`, `test_list`, with `test_setup_code` or `test_imports`.
//!
//! Source: Austin et al., "Program Synthesis with Large Language Models", 2021; both files of
//! google-research/mbpp. Each assert is a test. The challenge tests, which the benchmark does not count, are
//! not run.

use super::fields::Row;
use super::program::{tests_file, used};
use super::{DEFAULT_MODULE, Kind, Problem, Program, Task};

const TEST_FILE: &str = "test_asserts.py";

/// Whether a row is one of these.
pub(super) fn is_one(row: Row<'_>) -> bool {
    row.has("test_list")
}

pub(super) fn read(row: Row<'_>) -> Result<Task, Problem> {
    let id = row.name("task_id")?.ok_or(Problem::Missing("task_id"))?;
    let prompt = match row.text("text")? {
        Some(text) => text,
        None => row.need_text("prompt")?,
    };
    let tests = row.texts("test_list")?;
    if tests.is_empty() {
        return Err(Problem::NoTests);
    }
    let set_up = row.text("test_setup_code")?.unwrap_or_default();
    let code = row.text("code")?;
    let mut task = Task::new(&id, Kind::Pytest);
    task.prompt = prompt.into();
    let entry_point = code.and_then(|code| tests.iter().find_map(|test| used(code, test)));
    task.entry_point = entry_point.map(Into::into);
    let file = tests_file(&row.texts("test_imports")?, set_up, &tests, DEFAULT_MODULE);
    task.tests = [(TEST_FILE.into(), file.into())].into();
    task.reference = code.map(|code| Program::Code(code.into()));
    Ok(task)
}
