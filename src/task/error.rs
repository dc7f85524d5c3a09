//! Why there is no task.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::Format;
use crate::outcome;
use crate::runner::value;

/// What went wrong with a file of tasks, and where.
#[derive(Debug)]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// The line, from 1; `None` when it is not about a line.
    pub line: Option<usize>,
    /// The format, once it is known.
    pub format: Option<Format>,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The system refused, or the file is no gzip that can be read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// It is no JSON.
    #[error("broken JSON, byte {}: {}", .0.at, .0.problem)]
    Json(value::Error),
    /// The file ends inside a value.
    #[error("cut off before the end of the value that begins here")]
    CutOff,
    /// Something else stands where the next value should.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A line, or an item of an array, beyond the bound.
    #[error("a task of more than {} bytes", super::rows::MAX_ROW_BYTES)]
    TooLong,
    /// A key that must be there.
    #[error("no {0:?}")]
    Missing(&'static str),
    /// A key with a value of another type.
    #[error("{key:?} must be {wanted}, got {got}")]
    WrongType {
        /// Which.
        key: String,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        got: String,
    },
    /// A key with a value that cannot be used.
    #[error("{key:?}: {problem}")]
    Unusable {
        /// Which.
        key: String,
        /// Why not.
        problem: String,
    },
    /// There is nothing to judge by.
    #[error("no tests")]
    NoTests,
    /// No format that is known.
    #[error("no format that is known ({}): saw {seen}", Format::WORDS)]
    UnknownFormat {
        /// What is there.
        seen: String,
    },
    /// A folder without exercises.
    #[error("no exercise in it: neither .meta/config.json nor exercises/practice/*/.meta/config.json")]
    NoExercise,
    /// Parts that do not fit each other.
    #[error("{0}")]
    Task(#[from] outcome::Error),
}

impl Problem {
    pub(super) fn unusable(key: &str, problem: impl Into<String>) -> Self {
        Self::Unusable { key: key.to_owned(), problem: problem.into() }
    }

    pub(super) fn at(self, path: &Path, line: Option<usize>, format: Option<Format>) -> Error {
        Error { path: path.to_owned(), line, format, problem: self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}
