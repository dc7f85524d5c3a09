//! Tasks: what to write, the tests that judge it, and a reference where there is one.
//!
//! One file a format (`humaneval`, `mbpp`, `apps`, `suites`, `exercism`, `own`); `rows` takes a file apart,
//! `read` finds the format of each row. Nothing here runs a test.

mod apps;
mod error;
mod exercism;
mod fields;
mod humaneval;
mod mbpp;
mod own;
mod packed;
mod program;
mod read;
mod rows;
mod suites;

use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

pub use error::{Error, Problem};
pub use read::{Format, Reader};

use crate::outcome::{self, check_range};
use crate::runner::value::{Agreement, Value, agree};

/// The module of a candidate unless a task says otherwise.
pub const DEFAULT_MODULE: &str = "solution";

/// What judges a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// pytest: tests import the candidate's module.
    Pytest,
    /// A program reads standard input and writes standard output.
    Stdio,
    /// A function is called with arguments.
    Function,
    /// A command is run beside the candidate's files.
    Command,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Pytest, Self::Stdio, Self::Function, Self::Command];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pytest => "pytest",
            Self::Stdio => "stdio",
            Self::Function => "function",
            Self::Command => "command",
        }
    }

    /// The kind of this word.
    pub fn parse(word: &str) -> Result<Self, outcome::Error> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or_else(|| outcome::Error::UnknownWord {
            argument: "kind",
            allowed: "pytest, stdio, function, command",
            got: word.to_owned(),
        })
    }
}

/// Texts by path, in order.
pub type Files = Arc<[(Arc<str>, Arc<str>)]>;

/// Code that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// The text of the module.
    Code(Arc<str>),
    /// Texts by path.
    Files(Files),
}

/// One test of a task that is no pytest suite.
#[derive(Clone, Debug)]
pub enum Case {
    /// What a program reads, and what it is to write.
    Stdio {
        /// Standard input.
        input: Arc<str>,
        /// Standard output.
        output: Arc<str>,
    },
    /// How a function is called, and what it is to return.
    Function {
        /// Arguments by place.
        args: Arc<[Value]>,
        /// Arguments by name.
        kwargs: Arc<[(String, Value)]>,
        /// The result.
        expected: Arc<Value>,
    },
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        // Sets and dicts have no order, and NaN is NaN: a task is equal to its copy.
        let same = |a: &Value, b: &Value| a == b || agree(a, b, &Agreement::default()).is_ok();
        match (self, other) {
            (Self::Stdio { input, output }, Self::Stdio { input: other_input, output: other_output }) => {
                input == other_input && output == other_output
            }
            (
                Self::Function { args, kwargs, expected },
                Self::Function { args: other_args, kwargs: other_kwargs, expected: other_expected },
            ) => {
                same(expected, other_expected)
                    && args.len() == other_args.len()
                    && args.iter().zip(&**other_args).all(|(a, b)| same(a, b))
                    && kwargs.len() == other_kwargs.len()
                    && kwargs.iter().zip(&**other_kwargs).all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
            }
            _ => false,
        }
    }
}

/// Where a task was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The file or folder.
    pub path: PathBuf,
    /// The line it begins on, from 1; `None` for a folder.
    pub line: Option<usize>,
}

/// Something to write, with the tests that judge it.
///
/// Args:
///     id: Its name, unique in its file.
///     prompt: What to write, in words or as the beginning of a program.
///     kind: "pytest" (tests import the candidate's module), "stdio" (a program reads standard input and
///         writes standard output), "function" (a function is called) or "command" (a command is run
///         beside the files).
///     module: The module that a candidate becomes, "pytest" only; None means "solution" there.
///     entry_point: The function the candidate must have.
///     tests: Paths to texts: of "pytest" what `PytestRunner` takes, of "command" the files that lie beside
///         the candidate.
///     cases: Of "stdio" mappings with "input" and "output"; of "function" mappings with "args", "kwargs"
///         and "expected".
///     compare: When outputs are the same: "trimmed", "exact", "tokens", "floats" or "unordered"; "checker"
///         when a program of the task's author has to say. None leaves it to the runner.
///     tolerance: Of numbers, relative beyond 1, absolute below; >= 0.
///     time_limit_s: Wall time of one test or case in seconds, > 0.
///     memory_limit_bytes: Memory, > 0.
///     reference: A candidate that passes: code, or paths to texts.
///     stub: What a learner starts from.
///     variants: Names to candidates, the reference and the stub among them where the source has more.
///     source: The file or folder it was read from, and the line from 1 (None for a folder).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad.tasks"))]
pub struct Task {
    /// Its name.
    pub id: Arc<str>,
    /// What to write.
    pub prompt: Arc<str>,
    /// What judges it.
    pub kind: Kind,
    /// The module that a candidate becomes.
    pub module: Option<Arc<str>>,
    /// The function it must have.
    pub entry_point: Option<Arc<str>>,
    /// Files of the tests.
    pub tests: Files,
    /// Inputs and outputs, or calls and results.
    pub cases: Arc<[Case]>,
    /// When outputs are the same.
    pub compare: Option<Arc<str>>,
    /// Of numbers.
    pub tolerance: Option<f64>,
    /// Wall time of one test in seconds.
    pub time_limit_s: Option<f64>,
    /// Memory.
    pub memory_limit_bytes: Option<u64>,
    /// A candidate that passes.
    pub reference: Option<Program>,
    /// What a learner starts from.
    pub stub: Option<Program>,
    /// Candidates by name, in order.
    pub variants: Arc<[(Arc<str>, Program)]>,
    /// Where it was read.
    pub source: Option<Source>,
}

const COMPARE: [&str; 6] = ["exact", "trimmed", "tokens", "floats", "unordered", "checker"];

impl Task {
    /// A task that has nothing but a name and a kind.
    pub fn new(id: &str, kind: Kind) -> Self {
        Self {
            id: id.into(),
            prompt: "".into(),
            kind,
            module: None,
            entry_point: None,
            tests: Arc::new([]),
            cases: Arc::new([]),
            compare: None,
            tolerance: None,
            time_limit_s: None,
            memory_limit_bytes: None,
            reference: None,
            stub: None,
            variants: Arc::new([]),
            source: None,
        }
    }

    /// The same task when its parts fit each other.
    pub fn checked(mut self) -> Result<Self, outcome::Error> {
        let mismatch = |argument, problem: &str| outcome::Error::Mismatch {
            argument,
            problem: format!("{problem} in a task of kind {}", self.kind.as_str()),
        };
        match self.kind {
            Kind::Pytest | Kind::Command if !self.cases.is_empty() => {
                return Err(mismatch("cases", "there are none"));
            }
            Kind::Pytest if self.tests.is_empty() => {
                return Err(mismatch("tests", "at least one file is needed"));
            }
            Kind::Stdio | Kind::Function if !self.tests.is_empty() => {
                return Err(mismatch("tests", "there are none, but cases,"));
            }
            Kind::Stdio | Kind::Function if self.cases.is_empty() => {
                return Err(mismatch("cases", "at least one is needed"));
            }
            Kind::Stdio if self.cases.iter().any(|case| !matches!(case, Case::Stdio { .. })) => {
                return Err(mismatch("cases", "input and output are needed"));
            }
            Kind::Function if self.cases.iter().any(|case| !matches!(case, Case::Function { .. })) => {
                return Err(mismatch("cases", "args and expected are needed"));
            }
            Kind::Function if self.entry_point.is_none() => {
                return Err(mismatch("entry_point", "a function is needed"));
            }
            Kind::Pytest if self.module.is_none() => self.module = Some(DEFAULT_MODULE.into()),
            Kind::Stdio | Kind::Function | Kind::Command if self.module.is_some() => {
                return Err(mismatch("module", "there is none"));
            }
            _ => {}
        }
        if let Some(word) = self.compare.as_deref().filter(|word| !COMPARE.contains(word)) {
            return Err(outcome::Error::UnknownWord {
                argument: "compare",
                allowed: "exact, trimmed, tokens, floats, unordered, checker",
                got: word.to_owned(),
            });
        }
        let above_zero = (std::ops::Bound::Excluded(0.0), std::ops::Bound::Unbounded);
        if let Some(tolerance) = self.tolerance {
            self.tolerance = Some(check_range("tolerance", ">= 0 and finite", 0.0.., tolerance)?);
        }
        if let Some(limit) = self.time_limit_s {
            self.time_limit_s = Some(check_range("time_limit_s", "> 0 and finite", above_zero, limit)?);
        }
        if self.memory_limit_bytes == Some(0) {
            let allowed = "> 0";
            return Err(outcome::Error::OutOfRange { argument: "memory_limit_bytes", allowed, got: 0.0 });
        }
        Ok(self)
    }
}

impl Hash for Task {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        self.prompt.hash(state);
        self.kind.hash(state);
        self.source.hash(state);
    }
}
