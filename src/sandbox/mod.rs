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

#[cfg(target_os = "linux")]
mod cgroup;
mod descendants;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod launch;
mod limits;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod pool;
mod process;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod rlimit;
mod scratch;
#[cfg(target_os = "linux")]
mod seccomp;
mod stream;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(target_os = "linux")]
mod worker;

#[cfg(target_os = "linux")]
pub use launch::{Plan, Walls, end, launch};
pub use limits::Limits;
#[cfg(target_os = "linux")]
pub use pool::{Lease, close, idle};
pub use process::run;
#[cfg(target_os = "linux")]
pub use relay::Relay;
pub(crate) use scratch::Scratch;
#[cfg(target_os = "linux")]
pub use worker::{Blueprint, Done, Job, Waits};

/// What one run of an uncontained program may use.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Wall time.
    pub timeout: Duration,
    /// Bytes kept of each of standard output and standard error; the middle is left out.
    pub output_bytes: usize,
    /// Bytes of its report; one that says more is ended.
    pub report_bytes: usize,
    /// Size of a file that it may write.
    pub file_bytes: u64,
}

impl Bounds {
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
    pub bounds: Bounds,
}

/// What a watcher of a running program is told.
#[derive(Debug)]
pub enum Event<'a> {
    /// One line of its report, without the line end, and the time of the run that counts.
    Line(&'a [u8], Duration),
    /// A line of its report was longer than allowed and is left out.
    LongLine,
    /// Some time has passed, at most 20 milliseconds since the last event; the time of the run that counts.
    Tick(Duration),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself; `None` when somebody else took its exit status.
    Exited(Option<ExitStatus>),
    /// Its time was used up.
    TimedOut,
    /// Its processor time was used up.
    OutOfCpu,
    /// Its processes held more memory than allowed.
    OutOfMemory,
    /// Its report, or what it printed, was longer than allowed.
    Flooded,
    /// It said what may not be said; see [`Relay`].
    Garbled,
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
    /// A sandbox could not be built.
    #[error("no sandbox could be built: {words}")]
    Build {
        /// The step and what the system said.
        words: String,
    },
    /// The system refused a step of working with a warm worker.
    #[error("a worker: {step}: {source}")]
    Worker {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A worker has no directory.
    #[error("{}: {source}", path.display())]
    Place {
        /// Where it should have been.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A warm worker ended by no doing of ours, or did not start.
    #[error("a worker was lost: {words}")]
    Lost {
        /// What is known of it.
        words: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Cancelled,
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
