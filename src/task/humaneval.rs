//! HumanEval: `task_id`, `prompt`, `entry_point`, `canonical_solution`, and `test` with `check(candidate)`.
//!
//! Source: Chen et al., "Evaluating Large Language Models Trained on Code", 2021, and its repository
//! openai/human-eval. All of `check` is one test, as there.

use super::fields::Row;
use super::program::{check_file, defines, is_identifier};
use super::{DEFAULT_MODULE, Kind, Problem, Program, Task};

const TEST_FILE: &str = "test_check.py";

/// Whether a row is one of these.
pub(super) fn is_one(row: Row<'_>) -> bool {
    row.has("entry_point") && (row.has("test") || row.has("canonical_solution"))
}

pub(super) fn read(row: Row<'_>) -> Result<Task, Problem> {
    let id = row.name("task_id")?.ok_or(Problem::Missing("task_id"))?;
    let prompt = row.need_text("prompt")?;
    let entry_point = row.need_text("entry_point")?;
    if !is_identifier(entry_point) {
        return Err(Problem::unusable("entry_point", format!("{entry_point:?} is no name")));
    }
    let test = row.need_text("test")?;
    if !defines(test, "check") {
        return Err(Problem::unusable("test", "it has no check(candidate)"));
    }
    let mut task = Task::new(&id, Kind::Pytest);
    task.prompt = prompt.into();
    task.entry_point = Some(entry_point.into());
    task.tests = [(TEST_FILE.into(), check_file(test, DEFAULT_MODULE, entry_point).into())].into();
    let is_beginning = defines(prompt, entry_point);
    task.stub = is_beginning.then(|| Program::Code(prompt.into()));
    task.reference = row.text("canonical_solution")?.map(|solution| match is_beginning {
        true => Program::Code(format!("{prompt}{solution}").into()),
        false => Program::Code(solution.into()),
    });
    Ok(task)
}
