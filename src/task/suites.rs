//! Suites with several candidates: `files` and `variants`, or `cases` and `solutions`.
//!
//! `files` are paths to texts; `variants` are names to paths to texts, laid over the files. The other
//! kind is for programs with standard input and output: `statement`, `cases`, `compare`, `tolerance`,
//! `time_limit_s`, `memory_limit_mb`, `solutions`.

use std::sync::Arc;

use super::fields::{Row, files, program, text_of, wrong_type};
use super::{Case, Files, Kind, Problem, Program, Task};
use crate::runner::value::Value;

/// Whether a row is one of these.
pub(super) fn is_one(row: Row<'_>) -> bool {
    (row.has("files") && row.has("variants")) || (row.has("cases") && row.has("solutions"))
}

pub(super) fn read(row: Row<'_>) -> Result<Task, Problem> {
    let id = row.name("id")?.ok_or(Problem::Missing("id"))?;
    if row.has("cases") { read_stdio(row, &id) } else { read_files(row, &id) }
}

fn read_files(row: Row<'_>, id: &str) -> Result<Task, Problem> {
    let tests = files(row.get("files").ok_or(Problem::Missing("files"))?, "files")?;
    let mut variants: Vec<(Arc<str>, Files)> = Vec::new();
    for (name, value) in row.object("variants")?.ok_or(Problem::Missing("variants"))?.0 {
        variants.push((text_of(name, "variants")?.into(), files(value, "variants")?));
    }
    let first = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| variants.iter().find(|(known, _)| **known == **name))
            .map(|(_, files)| files)
    };
    let program = first(&["reference"]).or(variants.first().map(|(_, files)| files));
    let main = program.ok_or(Problem::Missing("variants"))?.iter().find_map(|(path, _)| module_of(path));
    let mut task = Task::new(id, if main.is_some() { Kind::Pytest } else { Kind::Command });
    let module = main.as_deref();
    task.reference = first(&["reference"]).map(|files| candidate(files, module));
    task.stub = first(&["stub", "buggy"]).map(|files| candidate(files, module));
    task.variants =
        variants.iter().map(|(name, files)| (Arc::clone(name), candidate(files, module))).collect();
    task.module = main.map(Into::into);
    task.prompt = row.text("prompt")?.unwrap_or_default().into();
    task.entry_point = row.text("entry_point")?.map(Into::into);
    task.tests = tests;
    Ok(task)
}

/// The module that a path would be imported as: `pkg.mod` for `pkg/mod.py`, `pkg` for `pkg/__init__.py`.
pub(super) fn module_of(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".py")?.trim_start_matches("./");
    Some(stem.strip_suffix("/__init__").unwrap_or(stem).replace('/', "."))
}

/// The files of a candidate; the code itself when the module's own file is all there is.
pub(super) fn candidate(files: &Files, module: Option<&str>) -> Program {
    let own = module.map(|module| format!("{}.py", module.replace('.', "/")));
    match &**files {
        [(path, code)] if own.as_deref() == Some(&**path) => Program::Code(Arc::clone(code)),
        _ => Program::Files(Arc::clone(files)),
    }
}

fn read_stdio(row: Row<'_>, id: &str) -> Result<Task, Problem> {
    let mut task = Task::new(id, Kind::Stdio);
    let prompt = if row.has("statement") { row.text("statement")? } else { row.text("prompt")? };
    task.prompt = prompt.unwrap_or_default().into();
    let cases = row.list("cases")?.unwrap_or_default();
    if cases.is_empty() {
        return Err(Problem::NoTests);
    }
    task.cases =
        cases.iter().enumerate().map(|(index, case)| stdio_case(case, index)).collect::<Result<_, _>>()?;
    task.compare = match row.text("compare")? {
        Some("lines") => Some("trimmed".into()),
        Some("float") => Some("floats".into()),
        other => other.map(Into::into),
    };
    task.tolerance = row.number("tolerance")?;
    task.time_limit_s = row.number("time_limit_s")?;
    task.memory_limit_bytes = row.number("memory_limit_mb")?.map(mebibytes).transpose()?;
    let mut variants: Vec<(Arc<str>, Program)> = Vec::new();
    for (name, value) in row.object("solutions")?.ok_or(Problem::Missing("solutions"))?.0 {
        variants.push((Arc::from(text_of(name, "solutions")?), program(value, "solutions")?));
    }
    let named = |name: &str| variants.iter().find(|(known, _)| **known == *name);
    task.reference = named("reference").map(|(_, program)| program.clone());
    task.stub = named("stub").map(|(_, program)| program.clone());
    task.variants = variants.into();
    Ok(task)
}

pub(super) fn stdio_case(case: &Value, index: usize) -> Result<Case, Problem> {
    let row = Row::of(case).ok_or_else(|| wrong_type(&format!("cases[{index}]"), "an object", case))?;
    let text = |key: &'static str| match row.get(key) {
        Some(value) => Ok(text_of(value, &format!("cases[{index}].{key}"))?.into()),
        None => Err(Problem::unusable(&format!("cases[{index}]"), format!("no {key:?}"))),
    };
    Ok(Case::Stdio { input: text("input")?, output: text("output")? })
}

/// A number of MiB in bytes.
pub(super) fn mebibytes(number: f64) -> Result<u64, Problem> {
    let bytes = number * f64::from(1 << 20);
    match bytes {
        1.0..=1e18 => Ok(bytes as u64),
        _ => Err(Problem::unusable("memory limit", format!("{number} MiB"))),
    }
}
