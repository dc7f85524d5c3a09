//! The journal of one run: a header line, a line for each iteration, a line for the end.
//!
//! Each line is on disk before the next iteration begins. A process killed at any byte leaves at most one
//! half-written last line, which is cut off on recovery: the iteration it belonged to is simply done again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use crate::agent_loop::StopReason;
use crate::feedback::FeedbackEntry;

const VERSION: u32 = 1;

/// What a run was started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    /// The task as JSON text, kept to the letter: a number of any size, keys in their order.
    pub task: String,
    /// The strategy that makes the totals.
    pub strategy: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Header {
        version: u32,
        #[serde(flatten)]
        header: JournalHeader,
    },
    Iteration {
        duration_ms: f64,
        entry: std::borrow::Cow<'a, FeedbackEntry>,
    },
    Stopped {
        by: StopReason,
    },
}

/// A journal open for writing, locked against every other run.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    good_bytes: u64,
    ended_by: Option<StopReason>,
}

/// What an earlier run left in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// What it was started with; `None` when not even the header was complete.
    pub header: Option<JournalHeader>,
    /// Its iterations.
    pub entries: Vec<FeedbackEntry>,
    /// Its wall time in milliseconds.
    pub duration_ms: f64,
    /// Why it ended; `None` when it was killed.
    pub stopped_by: Option<StopReason>,
}

impl Journal {
    /// Starts a journal in a file that must be new, empty, or cut off before the end of its first line.
    pub fn create(path: &Path, header: JournalHeader) -> Result<Self, Error> {
        let mut journal = Self::lock(path, true)?;
        let mut bytes = Vec::new();
        journal.file.read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        if bytes.contains(&b'\n') || !is_start_of_header(&bytes) {
            return Err(Error::NotEmpty { path: path.to_owned() });
        }
        journal.cut(0)?;
        journal.good_bytes = 0;
        journal.begin(header)?;
        Ok(journal)
    }

    /// Opens a journal to go on with its run; a half-written last line is cut off.
    ///
    /// A journal without a complete header is refused: nothing says what it was about.
    pub fn recover(path: &Path) -> Result<(Self, Recovered), Error> {
        let mut journal = Self::lock(path, false)?;
        let mut bytes = Vec::new();
        journal.file.read_to_end(&mut bytes).map_err(Error::io(path, "read"))?;
        let whole_lines = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
        let recovered = read_lines(path, bytes.get(..whole_lines).unwrap_or_default())?;
        if recovered.header.is_none() {
            return Err(Error::NoHeader { path: path.to_owned() });
        }
        journal.ended_by = recovered.stopped_by;
        if whole_lines < bytes.len() {
            journal.cut(whole_lines as u64)?;
        }
        journal.good_bytes = whole_lines as u64;
        Ok((journal, recovered))
    }

    fn lock(path: &Path, create: bool) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false);
        let file = options.open(path).map_err(Error::io(path, "open for writing"))?;
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        if !is_file {
            let source = std::io::Error::other("not a regular file");
            return Err(Error::io(path, "keep a run in it")(source));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(Error::io(path, "lock")(source)),
        }
        let good_bytes = file.metadata().map_err(Error::io(path, "read the size"))?.len();
        Ok(Self { file, path: path.to_owned(), good_bytes, ended_by: None })
    }

    fn begin(&mut self, header: JournalHeader) -> Result<(), Error> {
        self.append(&Line::Header { version: VERSION, header })
    }

    /// Writes one iteration.
    pub fn iteration(&mut self, entry: &FeedbackEntry, duration_ms: f64) -> Result<(), Error> {
        self.ended_by = None;
        self.append(&Line::Iteration { duration_ms, entry: std::borrow::Cow::Borrowed(entry) })
    }

    /// Writes why the run ended, unless that is what the journal says already.
    pub fn stopped(&mut self, by: StopReason) -> Result<(), Error> {
        if self.ended_by == Some(by) {
            return Ok(());
        }
        self.append(&Line::Stopped { by })
    }

    fn append(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|e| Error::io(&self.path, "write")(e.into()))?;
        text.push(b'\n');
        let end = SeekFrom::Start(self.good_bytes);
        let written =
            self.file.seek(end).and_then(|_| self.file.write_all(&text)).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.good_bytes += text.len() as u64;
                Ok(())
            }
            Err(source) => {
                // What was there stays readable even when the cut fails too: recovery cuts again.
                let _ = self.cut(self.good_bytes);
                Err(Error::io(&self.path, "write")(source))
            }
        }
    }

    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.file.set_len(bytes).map_err(Error::io(&self.path, "cut off a half-written line"))
    }
}

/// Whether bytes without a line end can be what a killed run left of its header: nothing else may be cut off.
fn is_start_of_header(bytes: &[u8]) -> bool {
    const START: &[u8] = br#"{"kind":"header","#;
    bytes.starts_with(START) || START.starts_with(bytes)
}

/// Reads a journal without locking or changing it.
pub fn read(path: &Path) -> Result<Recovered, Error> {
    let bytes = std::fs::read(path).map_err(Error::io(path, "read"))?;
    let whole_lines = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
    if whole_lines == 0 && !is_start_of_header(&bytes) {
        let problem = "not a journal".to_owned();
        return Err(Error::Broken { path: path.to_owned(), line: 1, problem });
    }
    read_lines(path, bytes.get(..whole_lines).unwrap_or_default())
}

fn read_lines(path: &Path, bytes: &[u8]) -> Result<Recovered, Error> {
    let mut recovered = Recovered { header: None, entries: Vec::new(), duration_ms: 0.0, stopped_by: None };
    let lines = bytes.split(|b| *b == b'\n').enumerate();
    for (number, line) in lines.map(|(i, line)| (i + 1, line)).filter(|(_, line)| !line.is_empty()) {
        let broken = |problem: String| Error::Broken { path: path.to_owned(), line: number, problem };
        match serde_json::from_slice(line).map_err(|e| broken(e.to_string()))? {
            Line::Header { version, .. } if version != VERSION => {
                return Err(broken(format!(
                    "version {version} is not {VERSION}, the one this testgrad writes"
                )));
            }
            Line::Header { .. } if recovered.header.is_some() => {
                return Err(broken("a second header".into()));
            }
            Line::Header { header, .. } => recovered.header = Some(header),
            _ if recovered.header.is_none() => return Err(broken("no header before it".into())),
            Line::Iteration { entry, duration_ms } => {
                let want = recovered.entries.len() as u32 + 1;
                if entry.iteration != want {
                    return Err(broken(format!("iteration {} where {want} comes next", entry.iteration)));
                }
                recovered.entries.push(entry.into_owned());
                recovered.duration_ms = duration_ms;
                recovered.stopped_by = None;
            }
            Line::Stopped { by } => recovered.stopped_by = Some(by),
        }
    }
    Ok(recovered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::CodeSubmission;
    use crate::outcome::{About, SuiteResult, TestResult, TestStatus};
    use crate::reward::Strategy;

    fn header() -> JournalHeader {
        JournalHeader { task: "\"repair it\"".to_owned(), strategy: "multi_signal".to_owned() }
    }

    fn entry(iteration: u32) -> FeedbackEntry {
        let tests = vec![TestResult::new("t", TestStatus::Failed).with_message("a\nb")];
        let suite = SuiteResult::new(tests, About::named("s")).unwrap();
        let reward = Strategy::default().signal(&suite, None, None).unwrap();
        FeedbackEntry::new(CodeSubmission::new("x", iteration, "initial"), suite, reward)
    }

    fn journal_of(path: &Path, iterations: u32) {
        let mut journal = Journal::create(path, header()).unwrap();
        for n in 1..=iterations {
            journal.iteration(&entry(n), f64::from(n)).unwrap();
        }
        journal.stopped(StopReason::MaxIterations).unwrap();
    }

    #[test]
    fn what_was_written_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        journal_of(&path, 3);
        let recovered = read(&path).unwrap();
        assert_eq!(recovered.header, Some(header()));
        assert_eq!(recovered.entries, [entry(1), entry(2), entry(3)]);
        assert_eq!(recovered.duration_ms, 3.0);
        assert_eq!(recovered.stopped_by, Some(StopReason::MaxIterations));
    }

    #[test]
    fn a_run_killed_at_any_byte_can_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        journal_of(&path, 2);
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..=bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let (mut journal, recovered) = match Journal::recover(&path) {
                Err(Error::NoHeader { .. }) => {
                    drop(Journal::create(&path, header()).unwrap());
                    Journal::recover(&path).unwrap()
                }
                recovered => recovered.unwrap(),
            };
            let next = recovered.entries.len() as u32 + 1;
            journal.iteration(&entry(next), 9.0).unwrap();
            drop(journal);
            assert_eq!(read(&path).unwrap().entries.len() as u32, next, "killed at byte {length}");
        }
    }

    #[test]
    fn a_second_run_on_one_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let first = Journal::create(&path, header()).unwrap();
        assert!(matches!(Journal::recover(&path), Err(Error::InUse { .. })));
        drop(first);
        assert!(matches!(Journal::create(&path, header()), Err(Error::NotEmpty { .. })));
    }

    #[test]
    fn a_file_that_is_no_journal_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.json");
        std::fs::write(&path, "{\"precious\": 1}").unwrap();
        assert!(matches!(Journal::create(&path, header()), Err(Error::NotEmpty { .. })));
        assert!(matches!(read(&path), Err(Error::Broken { line: 1, .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"precious\": 1}");
    }

    #[test]
    fn a_broken_line_in_the_middle_is_an_error_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        journal_of(&path, 1);
        let text = std::fs::read_to_string(&path).unwrap().replacen("\"iteration\"", "\"iterat", 1);
        std::fs::write(&path, text).unwrap();
        assert!(matches!(Journal::recover(&path), Err(Error::Broken { line: 2, .. })));
    }
}
