//! Runs a program under limits and leaves nothing of it behind.
//!
//! The program gets its own session and process group, an exact environment, nothing on standard input, and
//! one extra pipe to report on, line by line. Whatever it started is ended with it. This folder knows nothing
//! of tests.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

mod containment;
mod descendants;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod mount;
mod process;
#[cfg(target_os = "linux")]
mod rlimit;
#[cfg(target_os = "linux")]
mod seccomp;

pub use containment::{Containment, Layer, LayerStatus};
#[cfg(target_os = "linux")]
pub use launch::{Plan, Walls, end, launch};
pub use process::run;

/// What a program may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall time.
    pub timeout: Duration,
    /// Bytes kept of each of standard output and standard error; the middle is left out.
    pub output_bytes: usize,
    /// Bytes of its report; one that says more is ended.
    pub report_bytes: usize,
    /// Size of a file that it may write.
    pub file_bytes: u64,
}

impl Limits {
    /// This wall time, and for the rest what honest programs do not reach.
    pub fn with_timeout(timeout: Duration) -> Self {
        Self { timeout, output_bytes: 64 << 10, report_bytes: 64 << 20, file_bytes: 256 << 20 }
    }
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program; looked up in `PATH` when it has no slash.
    pub program: PathBuf,
    /// Its arguments. The number of the descriptor to report on is added as the last one.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its whole environment, but for one variable that marks its descendants.
    pub env: Vec<(OsString, OsString)>,
    /// What it may use.
    pub limits: Limits,
}

/// What a watcher of a running program is told.
#[derive(Debug)]
pub enum Event<'a> {
    /// One line of its report, without the line end.
    Line(&'a [u8]),
    /// A line of its report was longer than 1 MiB and is left out.
    LongLine,
    /// Some time has passed: at most 20 milliseconds since the last event.
    Tick,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself; `None` when somebody else took its exit status.
    Exited(Option<ExitStatus>),
    /// Its wall time was used up.
    TimedOut,
    /// Its report was longer than allowed.
    Flooded,
    /// The watcher asked for it.
    Stopped,
}

/// What is left of a program.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub end: End,
    /// Its standard output, as text.
    pub stdout: String,
    /// Its standard error, as text.
    pub stderr: String,
    /// Wall time from start to end.
    pub duration: Duration,
}

/// Why a program could not be run or watched: never the program's own doing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started.
    #[error("{}: cannot be started in {}: {source}", program.display(), directory.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Where it should have run.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a step of watching it.
    #[error("{}: {step}: {source}", program.display())]
    Watch {
        /// The program.
        program: PathBuf,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Told of every event; [`ControlFlow::Break`] ends the program.
pub type Watcher<'a> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'a;
