//! Exercism's folders: `.meta/config.json` with `files.solution`, `files.test` and `files.example`, and
//! `.docs/instructions.md`.
//!
//! A folder is one exercise or a track of many. Python becomes a pytest suite; another language a command's
//! task. Links are not followed, and no path of a configuration may lead out of its exercise.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::fields::Row;
use super::suites::{candidate, module_of};
use super::{Files, Kind, Problem, Source, Task};
use crate::runner::value::Value;

const CONFIG: &str = ".meta/config.json";
const INSTRUCTIONS: [&str; 3] =
    [".docs/introduction.md", ".docs/instructions.md", ".docs/instructions.append.md"];
/// What tools leave behind.
const NOT_OURS: [&str; 4] = ["node_modules", "target", "__pycache__", "build"];
/// A file beyond this is no text of an exercise.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_FILES: usize = 200;

/// The exercises in a folder, in the order of their names.
pub(super) fn folders(path: &Path) -> Result<Vec<PathBuf>, Problem> {
    if path.join(CONFIG).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    for inside in [&["exercises/practice", "exercises/concept"][..], &["practice", "concept"], &["."]] {
        let mut found = Vec::new();
        for folder in inside {
            let Ok(entries) = std::fs::read_dir(path.join(folder)) else { continue };
            for entry in entries {
                let entry = entry?;
                if entry.file_type()?.is_dir() && entry.path().join(CONFIG).is_file() {
                    found.push(entry.path());
                }
            }
        }
        if !found.is_empty() {
            found.sort();
            return Ok(found);
        }
    }
    Err(Problem::NoExercise)
}

/// The task of one exercise.
pub(super) fn read(folder: &Path) -> Result<Task, Problem> {
    let config = Value::parse_plain(text(folder, CONFIG)?.as_bytes()).map_err(Problem::Json)?;
    let row = Row::of(&config).ok_or(Problem::Missing("files"))?;
    let names = row.object("files")?.ok_or(Problem::Missing("files"))?;
    let solution = names.texts("solution")?;
    let example = [names.texts("example")?, names.texts("exemplar")?].concat();
    if names.texts("test")?.is_empty() {
        return Err(Problem::NoTests);
    }
    let main = solution.iter().find_map(|path| module_of(path));
    let module = main.as_deref();
    let name = std::path::absolute(folder)?;
    let id = name.file_name().unwrap_or_default().to_string_lossy();
    let mut task = Task::new(&id, if main.is_some() { Kind::Pytest } else { Kind::Command });
    let mut prompt = Vec::new();
    for part in INSTRUCTIONS {
        if folder.join(part).is_file() {
            prompt.push(text(folder, part)?.trim().to_owned());
        }
    }
    task.prompt = prompt.join("\n\n").into();
    let stub: Files = solution
        .iter()
        .map(|path| Ok((Arc::from(*path), text(folder, path)?.into())))
        .collect::<Result<_, Problem>>()?;
    let reference: Files = reference(folder, &solution, &example)?;
    task.reference = (!reference.is_empty()).then(|| candidate(&reference, module));
    task.stub = (!stub.is_empty()).then(|| candidate(&stub, module));
    task.tests = surroundings(folder, &solution, &names.texts("test")?)?;
    task.module = main.map(Into::into);
    task.source = Some(Source { path: folder.to_owned(), line: None });
    Ok(task)
}

/// The example's texts under the names of the solution: by name, else by kind of file in their order.
fn reference(folder: &Path, solution: &[&str], example: &[&str]) -> Result<Files, Problem> {
    let mut left: Vec<&str> = solution.to_vec();
    let mut files = Vec::new();
    let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
    let extension = |path: &str| Path::new(path).extension().map(ToOwned::to_owned);
    for path in example {
        let same_name = left.iter().position(|known| name(known) == name(path));
        let place = same_name.or_else(|| left.iter().position(|known| extension(known) == extension(path)));
        let target = place.map(|place| left.remove(place)).unwrap_or(path.trim_start_matches(".meta/"));
        files.push((Arc::from(target), Arc::from(text(folder, path)?)));
    }
    Ok(files.into())
}

/// The tests and what lies beside them: all texts of the folder but the solution.
fn surroundings(folder: &Path, solution: &[&str], tests: &[&str]) -> Result<Files, Problem> {
    let mut found = BTreeSet::new();
    collect(folder, "", &mut found)?;
    let mut files: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for path in tests {
        files.push((Arc::from(*path), text(folder, path)?.into()));
    }
    for path in found.iter().filter(|path| !solution.contains(&&***path) && !tests.contains(&&***path)) {
        if let Ok(content) = text(folder, path) {
            files.push((Arc::from(&**path), content.into()));
        }
    }
    Ok(files.into())
}

/// Paths of the files in a folder that are no links and not hidden, `below` being where it lies.
fn collect(folder: &Path, below: &str, found: &mut BTreeSet<String>) -> Result<(), Problem> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        if found.len() >= MAX_FILES {
            return Err(Problem::unusable("files", format!("more than {MAX_FILES} in one exercise")));
        }
        if kind.is_dir() && !NOT_OURS.contains(&name) && below.matches('/').count() < 16 {
            collect(&entry.path(), &format!("{below}{name}/"), found)?;
        } else if kind.is_file() {
            found.insert(format!("{below}{name}"));
        }
    }
    Ok(())
}

/// The text of a file that lies inside.
fn text(folder: &Path, path: &str) -> Result<String, Problem> {
    let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        return Err(Problem::unusable("files", format!("{path:?} leads out of the exercise")));
    }
    let mut place = folder.to_owned();
    for part in Path::new(path).components() {
        place.push(part);
        if std::fs::symlink_metadata(&place).is_ok_and(|about| about.is_symlink()) {
            return Err(Problem::unusable("files", format!("{path:?} is a link")));
        }
    }
    let failed = |error: io::Error| Problem::unusable("files", format!("cannot read {path:?}: {error}"));
    let about = std::fs::metadata(&place).map_err(failed)?;
    if !about.is_file() {
        return Err(Problem::unusable("files", format!("{path:?} is no file")));
    }
    if about.len() > MAX_FILE_BYTES {
        return Err(Problem::unusable("files", format!("{path:?} is longer than {MAX_FILE_BYTES} bytes")));
    }
    std::fs::read_to_string(&place).map_err(failed)
}
