//! Where runs are kept: on disk, line by line.
//!
//! `jsonl` is the journal of one run of the agent-test loop.

pub mod jsonl;

use std::path::{Path, PathBuf};

pub use jsonl::{Journal, JournalHeader, Recovered};

/// What went wrong with a file of ours.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("journal {}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process, or another loop of this one, writes to it.
    #[error("journal {}: in use by another run; wait for it or choose another path", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It already holds a run.
    #[error("journal {}: already holds something; go on with resume() if it is a run, or choose another path", path.display())]
    NotEmpty {
        /// The file.
        path: PathBuf,
    },
    /// It was cut off before its header was complete.
    #[error("journal {}: cut off before its header was complete; start it again with run(task)", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// A complete line that is not what a journal holds.
    #[error("journal {}, line {line}: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The journal was written by a run with other settings.
    #[error("journal {}: written with {field} {was}, but this loop has {now}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// Which setting.
        field: &'static str,
        /// Its value in the journal.
        was: String,
        /// Its value now.
        now: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }
}
