//! What a pytest worker says, line by line, put together into one suite.
//!
//! A run may take several sessions: when one dies in a test, the next goes on behind it. The list of tests is
//! the one of the first session that collected; a test without a result stays in it as an error.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use serde::Deserialize;

use super::marks::Marks;
use crate::outcome::{About, Error, SuiteResult, TestResult, TestSeverity, TestStatus};

const MAX_NOTES: usize = 100;
const NOTE_CHARS: usize = 2000;
/// More files than these do not fail to be collected in any project.
const MAX_FILES: usize = 10_000;

/// One line of the worker; see `python/testgrad/_worker.py`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    /// An import that the session needs failed.
    Missing { module: String },
    /// pytest is about to start.
    Ready,
    /// The files of the run do not fit.
    Full { message: String },
    /// pytest could not use its arguments.
    Refused { message: String },
    /// A file, class or directory is about to be collected.
    Collecting { name: String },
    /// It has been.
    Collection(Collection),
    /// A test that is to run; all come before `Collected`.
    Test(Collected),
    /// A test has a marker that says nothing we know; comes before `Collected`.
    Warning { message: String },
    /// Something suspicious in the candidate; `test` is the one that runs.
    Mark { mark: String, evidence: String, test: Option<String> },
    /// There are no more tests.
    Collected { maxfail: u32 },
    /// Which lines of a file ran; comes before `Ended`.
    Coverage(Measured),
    /// A test begins.
    Started { name: String },
    /// A test has ended, with all its phases.
    Finished(Finished),
    /// A test or a file that was being imported raised KeyboardInterrupt or called `pytest.exit`.
    Interrupted { message: String },
    /// pytest itself failed.
    InternalError { message: String },
    /// The session is over.
    Ended { code: Option<i32>, message: String },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
struct Collection {
    name: String,
    outcome: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: String,
}

#[derive(Debug, Deserialize)]
struct Collected {
    name: String,
    file: String,
    line: Option<u32>,
    severity: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Finished {
    name: String,
    status: TestStatus,
    duration_ms: f64,
    reason: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: String,
}

#[derive(Debug, Deserialize)]
struct Measured {
    file: String,
    executable: Vec<u32>,
    missing: Vec<u32>,
}

/// How far one session got.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) missing: Option<String>,
    pub(super) is_ready: bool,
    pub(super) refused: Option<String>,
    pub(super) full: Option<String>,
    /// pytest's exit code and the exception that left it, once the session is over.
    pub(super) ended: Option<(Option<i32>, String)>,
    pub(super) interrupted: Option<String>,
    pub(super) internal_error: Option<String>,
    /// The tests that it has named so far.
    tests: Vec<Collected>,
    pub(super) running: Option<Running>,
    /// The file being collected.
    pub(super) collecting: Option<String>,
    /// Results that came in.
    pub(super) finished: usize,
}

impl Session {
    /// Whether the worker has nothing more to say.
    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some() || self.refused.is_some() || self.missing.is_some()
    }
}

/// A test that has begun and not ended.
#[derive(Debug)]
pub(super) struct Running {
    index: usize,
    pub(super) since: Duration,
}

/// Why a session stopped in the middle of a test or a file.
#[derive(Debug)]
pub(super) struct Cause {
    /// The time of the run that counts.
    pub(super) at: Duration,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) details: String,
}

/// Whose error the end of a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blamed {
    Test,
    File,
    Nobody,
}

#[derive(Debug)]
struct Entry {
    collected: Collected,
    result: Option<Finished>,
}

/// All that is known of a run.
#[derive(Debug, Default)]
pub(super) struct Record {
    entries: Vec<Entry>,
    pending: HashMap<String, VecDeque<usize>>,
    /// Whether the list of tests has come.
    pub(super) has_collected: bool,
    max_failures: usize,
    /// Files that could not be collected.
    files: Vec<Finished>,
    /// Those of them that ended their session.
    skipped: Vec<String>,
    /// By file: the lines that can run, and those that did.
    coverage: BTreeMap<String, (BTreeSet<u32>, BTreeSet<u32>)>,
    problems: Notes,
    warnings: Notes,
    marks: Marks,
}

/// Remarks, each once, as many and as long as somebody would read.
#[derive(Debug, Default)]
struct Notes {
    list: Vec<String>,
    more: usize,
}

impl Notes {
    fn add(&mut self, note: &str) {
        let note = cut(note);
        if self.list.len() >= MAX_NOTES {
            self.more += 1;
        } else if !self.list.contains(&note) {
            self.list.push(note);
        }
    }

    fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("... {} more", self.more));
        }
        self.list
    }
}

/// The beginning and the end of a long text.
pub(super) fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= NOTE_CHARS {
        return text.to_owned();
    }
    const MIDDLE: &str = " ... ";
    let tail = NOTE_CHARS / 3;
    let head = NOTE_CHARS - tail - MIDDLE.len();
    let mut note: String = text.chars().take(head).collect();
    note.push_str(MIDDLE);
    note.extend(text.chars().skip(count - tail));
    note
}

impl Record {
    /// Takes one line; what cannot be read is left out, since the candidate may have written it.
    pub(super) fn take(&mut self, session: &mut Session, line: &[u8], at: Duration) {
        let Ok(line) = serde_json::from_slice(line) else { return };
        match line {
            Line::Missing { module } => session.missing = Some(module),
            Line::Ready => session.is_ready = true,
            Line::Full { message } => session.full = Some(message),
            Line::Refused { message } => session.refused = Some(message),
            Line::Collecting { name } => session.collecting = Some(name),
            Line::Collection(collection) => {
                session.collecting = None;
                self.take_collection(collection);
            }
            Line::Test(test) => session.tests.push(test),
            Line::Warning { message } if !self.has_collected => self.add_warning(message),
            Line::Collected { maxfail } => self.take_collected(std::mem::take(&mut session.tests), maxfail),
            Line::Coverage(measured) => self.take_coverage(measured),
            Line::Started { name } => {
                session.running = self.next_of(&name).map(|index| Running { index, since: at });
            }
            Line::Finished(finished) => {
                session.running = None;
                session.finished += usize::from(self.take_finished(finished));
            }
            Line::Interrupted { message } => session.interrupted = Some(message),
            Line::InternalError { message } => {
                self.add_problem(format!("pytest failed inside: {message}"));
                session.internal_error = Some(message);
            }
            Line::Mark { mark, evidence, test } => self.marks.add(&mark, &evidence, test.as_deref()),
            Line::Ended { code, message } => session.ended = Some((code, message)),
            Line::Warning { .. } | Line::Unknown => {}
        }
    }

    fn take_collection(&mut self, collection: Collection) {
        let Collection { name, outcome, message, details } = collection;
        if self.has_collected {
            return; // a later session says it again
        }
        match outcome.as_str() {
            "failed" => self.add_file(Finished::error(&name, "collection", message, details)),
            "skipped" => self.add_warning(format!("{name} was skipped as a whole: {message}")),
            _ => {}
        }
    }

    fn add_file(&mut self, file: Finished) {
        if self.files.iter().any(|known| known.name == file.name) {
            return; // a later session says it again
        }
        if self.files.len() < MAX_FILES {
            self.files.push(file);
        } else {
            self.add_problem(format!("more than {MAX_FILES} files could not be collected"));
        }
    }

    fn take_collected(&mut self, tests: Vec<Collected>, maxfail: u32) {
        if self.has_collected {
            return;
        }
        self.has_collected = true;
        self.max_failures = maxfail as usize;
        for (index, test) in tests.iter().enumerate() {
            self.pending.entry(test.name.clone()).or_default().push_back(index);
        }
        self.entries = tests.into_iter().map(|collected| Entry { collected, result: None }).collect();
    }

    fn take_finished(&mut self, finished: Finished) -> bool {
        let index = self.next_of(&finished.name);
        match index {
            Some(index) => self.set(index, finished),
            None => self.add_problem(format!("{} has a result and was not collected", finished.name)),
        }
        index.is_some()
    }

    fn take_coverage(&mut self, measured: Measured) {
        let Measured { file, executable, missing } = measured;
        let (all, run) = self.coverage.entry(file).or_default();
        let missing: BTreeSet<u32> = missing.into_iter().collect();
        run.extend(executable.iter().filter(|line| !missing.contains(line)));
        all.extend(executable);
    }

    /// The first test of this name without a result.
    fn next_of(&self, name: &str) -> Option<usize> {
        self.pending.get(name)?.front().copied()
    }

    fn set(&mut self, index: usize, result: Finished) {
        if let Some(entry) = self.entries.get_mut(index) {
            if let Some(pending) = self.pending.get_mut(&entry.collected.name) {
                match pending.front() {
                    Some(first) if *first == index => drop(pending.pop_front()),
                    _ => pending.retain(|other| *other != index),
                }
            }
            entry.result = Some(result);
        }
    }

    /// Makes what stopped a session the error of the test that was running, or of the file being collected.
    pub(super) fn blame(&mut self, session: &mut Session, cause: Cause) -> Blamed {
        let Cause { at, reason, message, details } = cause;
        if let Some(Running { index, since }) = session.running.take() {
            let duration_ms = at.saturating_sub(since).as_secs_f64() * 1e3;
            self.set(index, Finished { duration_ms, ..Finished::error("", reason, message, details) });
            Blamed::Test
        } else if let Some(name) = session.collecting.take() {
            self.add_file(Finished::error(&name, reason, message, details));
            self.skipped.push(name);
            Blamed::File
        } else {
            Blamed::Nobody
        }
    }

    /// Adds a problem, once; of very many only how many there were.
    pub(super) fn add_problem(&mut self, problem: String) {
        self.problems.add(&problem);
    }

    /// Adds a warning, once; of very many only how many there were.
    pub(super) fn add_warning(&mut self, warning: String) {
        self.warnings.add(&warning);
    }

    /// Adds an error that is not one of a test.
    pub(super) fn add_error(&mut self, name: &str, reason: &str, message: String) {
        self.add_file(Finished::error(name, reason, message, String::new()));
    }

    /// The names of the tests that have a result.
    pub(super) fn done(&self) -> Vec<&str> {
        self.entries.iter().filter(|e| e.result.is_some()).map(|e| e.collected.name.as_str()).collect()
    }

    /// The names of the files that ended their session.
    pub(super) fn skipped(&self) -> Vec<&str> {
        self.skipped.iter().map(String::as_str).collect()
    }

    /// Whether every test has a result.
    pub(super) fn is_complete(&self) -> bool {
        self.entries.iter().all(|entry| entry.result.is_some())
    }

    /// Whether pytest would go on after what has failed so far (see its option `--maxfail`).
    pub(super) fn goes_on(&self) -> bool {
        let is_failing = |entry: &&Entry| {
            entry.result.as_ref().is_some_and(|r| matches!(r.status, TestStatus::Failed | TestStatus::Error))
        };
        self.max_failures == 0 || self.entries.iter().filter(is_failing).count() < self.max_failures
    }

    /// Whether there is anything to show: tests, or files that could not be collected.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.files.is_empty()
    }

    /// Share of the measured lines that ran; `None` when there was none to run.
    fn coverage(&self) -> Option<f64> {
        let (all, run) =
            self.coverage.values().fold((0, 0), |(all, run), file| (all + file.0.len(), run + file.1.len()));
        (all > 0).then(|| run as f64 / all as f64)
    }

    /// The suite: files that could not be collected first, then the tests in the order they were collected.
    pub(super) fn into_suite(self, about: About) -> Result<SuiteResult, Error> {
        let about = About {
            coverage: self.coverage(),
            problems: self.problems.into_list(),
            warnings: self.warnings.into_list(),
            marks: self.marks.into_list(),
            ..about
        };
        let files = self.files.iter().map(|file| {
            let result = file.to_result(&file.name)?;
            Ok(result.with_location(file.name.split("::").next(), None))
        });
        let tests = self.entries.iter().map(|entry| {
            let Collected { name, file, line, severity } = &entry.collected;
            let severity = severity.map(TestSeverity::from_weight).transpose()?.unwrap_or_default();
            let result = match &entry.result {
                Some(result) => result.to_result(name)?,
                None => TestResult::new(name, TestStatus::Error)
                    .with_reason(Some("not_run"))
                    .with_message("the run ended before this test"),
            };
            Ok(result.with_severity(severity).with_location(Some(file), *line))
        });
        SuiteResult::new(files.chain(tests).collect::<Result<_, Error>>()?, about)
    }
}

impl Finished {
    fn error(name: &str, reason: &str, message: String, details: String) -> Self {
        let (name, reason) = (name.to_owned(), Some(reason.to_owned()));
        Self { name, status: TestStatus::Error, duration_ms: 0.0, reason, message, details }
    }

    fn to_result(&self, name: &str) -> Result<TestResult, Error> {
        TestResult::new(name, self.status)
            .with_message(&self.message)
            .with_details(&self.details)
            .with_reason(self.reason.as_deref())
            .with_duration_ms(self.duration_ms.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the lines to one session of a record.
    fn feed(record: &mut Record, lines: &[&str]) -> Session {
        let mut session = Session::default();
        for line in lines.iter().flat_map(|lines| lines.split('\n')) {
            record.take(&mut session, line.as_bytes(), Duration::ZERO);
        }
        session
    }

    fn cause() -> Cause {
        Cause { at: Duration::ZERO, reason: "crash", message: "gone".into(), details: String::new() }
    }

    fn told(record: Record) -> Vec<String> {
        let suite = record.into_suite(About::named("s")).unwrap();
        let tell =
            |t: &TestResult| format!("{} {} {}", t.name(), t.status().as_str(), t.reason().unwrap_or("-"));
        suite.tests().iter().map(tell).collect()
    }

    const COLLECTED: &str = r#"{"kind":"test","name":"t::a","file":"t","line":1,"severity":3}
{"kind":"test","name":"t::b","file":"t","line":2}
{"kind":"test","name":"t::b","file":"t","line":3}
{"kind":"collected","maxfail":0}"#;

    #[test]
    fn a_test_without_a_result_is_an_error_and_not_absent() {
        let mut record = Record::default();
        feed(
            &mut record,
            &[COLLECTED, r#"{"kind":"finished","name":"t::b","status":"passed","duration_ms":2}"#],
        );
        assert_eq!(told(record), ["t::a error not_run", "t::b passed -", "t::b error not_run"]);
    }

    #[test]
    fn the_test_that_was_running_is_to_blame() {
        let mut record = Record::default();
        let mut session = feed(&mut record, &[COLLECTED, r#"{"kind":"started","name":"t::a"}"#]);
        assert_eq!(record.blame(&mut session, cause()), Blamed::Test);
        assert_eq!(record.done(), ["t::a"]);
        assert_eq!(told(record).first().unwrap(), "t::a error crash");
    }

    #[test]
    fn the_file_being_imported_is_to_blame() {
        let mut record = Record::default();
        let mut session = feed(&mut record, &[r#"{"kind":"collecting","name":"test_a.py"}"#]);
        assert_eq!(record.blame(&mut session, cause()), Blamed::File);
        assert_eq!(told(record), ["test_a.py error crash"]);
    }

    #[test]
    fn the_first_list_of_tests_stands() {
        let mut record = Record::default();
        feed(&mut record, &[COLLECTED]);
        feed(&mut record, &[r#"{"kind":"collected","maxfail":0}"#]);
        feed(&mut record, &[r#"{"kind":"finished","name":"t::new","status":"passed","duration_ms":2}"#]);
        assert_eq!(record.problems.list, ["t::new has a result and was not collected"]);
        assert_eq!(told(record).len(), 3);
    }

    #[test]
    fn coverage_is_what_any_session_ran() {
        let mut record = Record::default();
        assert_eq!(record.coverage(), None);
        for missing in ["[1,2]", "[2,3]"] {
            let line =
                format!(r#"{{"kind":"coverage","file":"a","executable":[1,2,3,4],"missing":{missing}}}"#);
            feed(&mut record, &[&line]);
        }
        assert_eq!(record.coverage(), Some(0.75));
    }

    #[test]
    fn severity_and_place_come_from_the_collection() {
        let mut record = Record::default();
        feed(&mut record, &[COLLECTED]);
        let suite = record.into_suite(About::named("s")).unwrap();
        let test = &suite.tests()[0];
        assert_eq!((test.severity(), test.file(), test.line()), (TestSeverity::Critical, Some("t"), Some(1)));
    }

    #[test]
    fn lines_that_make_no_sense_are_left_out() {
        let mut record = Record::default();
        feed(&mut record, &["", "{", "{}", r#"{"kind":"new"}"#, r#"{"kind":"finished"}"#, "\u{fffd}"]);
        assert!(record.is_empty() && record.problems.list.is_empty());
    }

    #[test]
    fn of_very_many_problems_some_are_told_and_the_rest_counted() {
        let mut record = Record::default();
        feed(&mut record, &[COLLECTED]);
        for index in 0..250 {
            let name = "n".repeat(5000);
            let line =
                format!(r#"{{"kind":"finished","name":"{index}{name}","status":"passed","duration_ms":1}}"#);
            feed(&mut record, &[&line]);
        }
        let suite = record.into_suite(About::named("s")).unwrap();
        let problems = &suite.about().problems;
        assert_eq!(problems.len(), 101);
        assert_eq!(problems.last().unwrap(), "... 150 more");
        assert!(problems.iter().take(100).all(|problem| problem.chars().count() == 2000));
        assert!(problems[0].ends_with(" has a result and was not collected"));
    }

    #[test]
    fn many_tests_of_one_name_take_no_longer_than_of_many() {
        let mut record = Record::default();
        let test = r#"{"kind":"test","name":"t","file":"t","line":1}"#;
        let mut session = feed(&mut record, &[]);
        for _ in 0..100_000 {
            record.take(&mut session, test.as_bytes(), Duration::ZERO);
        }
        record.take(&mut session, br#"{"kind":"collected","maxfail":0}"#, Duration::ZERO);
        for _ in 0..100_000 {
            let line = br#"{"kind":"finished","name":"t","status":"passed","duration_ms":1}"#;
            record.take(&mut session, line, Duration::ZERO);
        }
        assert!(record.is_complete());
    }
}
