//! Runners: from a candidate to what its tests did.
//!
//! Every runner promises the same. A candidate that fails, crashes or hangs yields a
//! [`SuiteResult`](outcome::SuiteResult) that says so; an [`Error`] means that our side failed and there is
//! no verdict. No test of the expected list is absent from a result. No process and no file is left behind.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::{outcome, sandbox};

pub mod cases;
pub mod command;
pub mod compare;
pub mod contained;
mod ending;
pub mod function;
mod interpreter;
mod judge;
mod marks;
mod mirror;
pub mod plan;
mod project;
pub mod pytest;
mod record;
pub mod rewritten;
mod stage;
pub mod stdio;
mod tree;
pub mod value;
pub mod wire;

pub use judge::{Judge, Runner};
pub use project::Project;
pub use stage::{Module, Tests};
pub use tree::inside;

/// Code under judgement.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// The source of the module that the tests import.
    Code(Vec<u8>),
    /// Paths, relative to the directory of the tests, and their contents.
    Files(Vec<(String, Vec<u8>)>),
    /// A directory that somebody worked in.
    Workspace(PathBuf),
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interpreter could not be started, contained or watched.
    #[error("{0}")]
    Sandbox(sandbox::Error),
    /// What should be an interpreter is none that can be used.
    #[error("{} is no interpreter that can be used: {output}", python.display())]
    NoPython {
        /// What was tried.
        python: PathBuf,
        /// What it said, or the system.
        output: String,
    },
    /// Less holds a candidate here than the caller requires.
    #[error(
        "{required:?} is required and does not hold here ({reason}); `testgrad doctor` says what does, require= asks for less"
    )]
    Uncontained {
        /// What was asked for.
        required: String,
        /// What there is instead.
        reason: String,
    },
    /// A file of the run could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The interpreter lacks a module that the run needs.
    #[error("{0} has no {module}: install it with {0} -m pip install {module}", python.display())]
    Missing {
        /// The interpreter.
        python: PathBuf,
        /// The module.
        module: String,
    },
    /// The interpreter ended or hung before pytest was ready, so before any code of the candidate ran.
    #[error("{}: pytest was not ready {when}: {output}", python.display())]
    NotReady {
        /// The interpreter.
        python: PathBuf,
        /// When it was given up.
        when: String,
        /// The end of what it printed.
        output: String,
    },
    /// pytest could not use its arguments, its plugins or its configuration.
    #[error("pytest refused its arguments, plugins or configuration: {message}")]
    Refused {
        /// What pytest said.
        message: String,
    },
    /// The system gave no thread to judge on.
    #[error("no thread to judge on: {0}")]
    Thread(io::Error),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The time for all candidates together had passed.
    #[error("the deadline had passed")]
    Late,
    /// The command to judge by could not be started.
    #[error("{message}; inside the sandbox there is the system and what readable= names")]
    NoCommand {
        /// What it was, and what the system said.
        message: String,
    },
    /// The function or program that judges outputs failed.
    #[error("the checker failed: {words}")]
    Checker {
        /// Its exception, or how it ended.
        words: String,
    },
    /// The candidate tampered with its judge, and the caller wants no verdict then.
    #[error("no verdict, since the candidate tampers: {evidence}")]
    Tampered {
        /// What shows it.
        evidence: String,
    },
    /// The results do not make a suite.
    #[error("{0}")]
    Suite(#[from] outcome::Error),
}

impl From<sandbox::Error> for Error {
    fn from(error: sandbox::Error) -> Self {
        match error {
            sandbox::Error::Cancelled => Self::Interrupted,
            error => Self::Sandbox(error),
        }
    }
}

impl From<(PathBuf, io::Error)> for Error {
    fn from((path, source): (PathBuf, io::Error)) -> Self {
        Self::File { path, source }
    }
}

/// Asked every 20 milliseconds or so whether the caller wants to stop.
pub type IsCancelled<'a> = dyn FnMut() -> bool + 'a;

/// How often all runs have been cancelled.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// How many calls of [`run_many`] are under way.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Counts a call of [`run_many`] while it lasts.
struct UnderWay;

impl UnderWay {
    fn begin() -> Self {
        UNDER_WAY.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Ends every run of this process that is under way with [`Error::Interrupted`], on whatever thread it is.
/// Runs that begin later are not touched. Waits at most `patience` for them to have cleaned up.
pub fn cancel_all(patience: Duration) {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let end = Instant::now() + patience;
    while UNDER_WAY.load(Ordering::Acquire) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// When a run began, counted in calls of [`cancel_all`].
#[derive(Clone, Copy, Debug)]
struct Generation(u64);

impl Generation {
    fn now() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether all runs have been cancelled since.
    fn is_cancelled(self) -> bool {
        GENERATION.load(Ordering::Relaxed) != self.0
    }
}

/// Judges many items on `workers` threads; the results are in the order of the items.
///
/// `is_cancelled` is asked on the calling thread, with how many results there are, and nobody waits for its
/// answer. Once it says yes, or [`cancel_all`] was called, every running judge is told so, and the items that
/// have not begun have no result.
pub fn run_many<T: Sync, R: Send>(
    items: &[T],
    workers: NonZeroUsize,
    is_cancelled: &mut dyn FnMut(&[Option<R>]) -> bool,
    judge: impl Fn(&T, &mut IsCancelled<'_>) -> R + Sync,
) -> Result<Vec<Option<R>>, Error> {
    let _under_way = UnderWay::begin();
    let (generation, next, stop) = (Generation::now(), AtomicUsize::new(0), AtomicBool::new(false));
    let is_stopped = || stop.load(Ordering::Relaxed) || generation.is_cancelled();
    let (sender, receiver) = mpsc::channel();
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        for begun in 0..workers.get().min(items.len()) {
            let sender = sender.clone();
            let work = || {
                let sender = sender;
                while !is_stopped() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = judge(item, &mut || is_stopped());
                    let _ = sender.send((index, result)); // the receiver outlives this thread
                }
            };
            match std::thread::Builder::new().spawn_scoped(scope, work) {
                Err(error) if begun == 0 => return Err(Error::Thread(error)),
                Err(_) => break, // those that have begun do the work
                Ok(_) => {}
            }
        }
        drop(sender);
        let mut asked = Instant::now();
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((index, result)) => {
                    if let Some(place) = results.get_mut(index) {
                        *place = Some(result);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if asked.elapsed() >= TICK {
                asked = Instant::now();
                if is_cancelled(&results) {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    })?;
    is_cancelled(&results);
    Ok(results)
}

/// How often a caller is asked whether to go on.
const TICK: Duration = Duration::from_millis(20);

/// A time as people write it: `0.5 s`.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..50).collect();
        let judge = |item: &u64, _: &mut IsCancelled<'_>| {
            std::thread::sleep(Duration::from_micros(50 * (50 - item)));
            item * 2
        };
        let results = run_many(&items, TWO, &mut |_| false, judge).unwrap();
        assert_eq!(results, items.iter().map(|item| Some(item * 2)).collect::<Vec<_>>());
    }

    #[test]
    fn a_caller_that_stops_is_heard_by_every_judge_and_keeps_what_is_done() {
        let judge = |item: &u64, is_cancelled: &mut IsCancelled<'_>| {
            while *item > 1 && !is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            *item
        };
        let mut asked = 0;
        let mut is_cancelled = |_: &[Option<u64>]| {
            asked += 1;
            asked > 2
        };
        let results = run_many(&[1, 2, 3, 4], TWO, &mut is_cancelled, judge).unwrap();
        assert_eq!(results, [Some(1), Some(2), Some(3), None]);
    }
}
