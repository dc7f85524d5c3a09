//! Judges a candidate by a real pytest, in a process of its own and a fresh directory.
//!
//! Tests and candidate share that process, so this is for code that does not try to cheat. When it dies or
//! hangs in a test, that test is an error, the results before it stand, and a new process goes on behind it.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;

use super::record::{Blamed, Cause, Record, Session};
use super::scratch::Scratch;
use super::stage::{Module, Tests, stage};
use super::{Candidate, Error, Generation, IsCancelled, seconds};
use crate::outcome::SuiteResult;
use crate::sandbox::{self, Command, End, Event, Limits, Output};

const OUTPUT_CHARS: usize = 4000;

/// Signals that end programs, as people know them.
const SIGNALS: [(Signal, &str); 7] = [
    (Signal::ABORT, " (SIGABRT)"),
    (Signal::BUS, " (SIGBUS)"),
    (Signal::FPE, " (SIGFPE)"),
    (Signal::ILL, " (SIGILL)"),
    (Signal::KILL, " (SIGKILL)"),
    (Signal::SEGV, " (SIGSEGV)"),
    (Signal::TERM, " (SIGTERM)"),
];

/// How pytest is run.
#[derive(Clone, Debug)]
pub struct Pytest {
    /// The interpreter.
    pub python: PathBuf,
    /// The program it runs: `_worker.py` of the package.
    pub worker: PathBuf,
    /// Further arguments for pytest.
    pub args: Vec<String>,
    /// The plugins to load; `None` loads all that are installed.
    pub plugins: Option<Vec<String>>,
    /// The whole environment but for `HOME` and `TMPDIR`; see [`inherited_environment`].
    pub env: Vec<(OsString, OsString)>,
    /// Where the directory of a run is made.
    pub place: PathBuf,
    /// Wall time of a run.
    pub timeout: Duration,
    /// Wall time of one test.
    pub test_timeout: Option<Duration>,
    /// Whether to measure which lines of the candidate run.
    pub measures_coverage: bool,
}

/// What a run keeps of this process's environment: little, so that runs are alike and secrets stay away.
///
/// Like everything that reads the environment, it is not to be called while another thread changes it.
pub fn inherited_environment() -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut env: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), path),
        ("LANG".into(), "C.UTF-8".into()),
        ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
        ("PYTHONHASHSEED".into(), "0".into()),
    ];
    // Packages that the user has installed for himself are found through his home.
    let own = std::env::var_os("PYTHONUSERBASE").map(PathBuf::from);
    if let Some(base) = own.or_else(|| std::env::home_dir().map(|home| home.join(".local"))) {
        env.push(("PYTHONUSERBASE".into(), base.into()));
    }
    env
}

impl Pytest {
    /// Judges a candidate beside a copy of the tests; `module` is the module that they import.
    pub fn judge(
        &self,
        tests: &Tests,
        module: &Module,
        candidate: &Candidate,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let mut run = Run::new(self)?;
        run.directory = run.scratch.path().join("work");
        run.args.push(format!("--rootdir={}", run.directory.display()));
        let generation = run.generation;
        let mut is_cancelled = || generation.is_cancelled() || is_cancelled();
        let staged = stage(&run.directory, tests, module, candidate, &mut is_cancelled)?;
        run.started = Instant::now(); // a large workspace must not leave pytest without time to start
        for (what, paths) in [
            ("of the candidate's files, tests and configuration are not used", &staged.left_out),
            (
                "of the candidate's files, links that lead outside and what cannot be read are left out",
                &staged.unread,
            ),
            ("of the tests, links that lead nowhere or in a circle are left out", &staged.dead_links),
        ] {
            if !paths.is_empty() {
                run.record.add_warning(format!("{what}: {}", paths.join(", ")));
            }
        }
        for path in staged.outside {
            run.record
                .add_problem(format!("the candidate's file {path:?} is not a path inside its directory"));
        }
        if let Some(excess) = staged.excess {
            run.record.add_error("candidate", "disk", excess);
            return run.into_suite();
        }
        if self.measures_coverage {
            run.covered = staged.sources;
        }
        run.finish(&mut is_cancelled)
    }

    /// Runs a project's own tests where they are.
    pub fn run_project(
        &self,
        directory: &Path,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let mut run = Run::new(self)?;
        run.directory = directory.to_owned();
        run.finish(is_cancelled)
    }
}

/// One run: a directory, and as many sessions of pytest in it as it takes.
struct Run<'a> {
    pytest: &'a Pytest,
    started: Instant,
    generation: Generation,
    scratch: Scratch,
    directory: PathBuf,
    args: Vec<String>,
    covered: Vec<PathBuf>,
    /// Bytes that the sessions still may report.
    report_bytes: usize,
    record: Record,
}

/// What the worker is told.
#[derive(Serialize)]
struct Settings<'a> {
    args: &'a [String],
    done: Vec<&'a str>,
    coverage: &'a [PathBuf],
}

/// Why we ended a session that had not ended itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Cancelled,
    TestTimeout,
}

impl<'a> Run<'a> {
    fn new(pytest: &'a Pytest) -> Result<Self, Error> {
        let (started, generation) = (Instant::now(), Generation::now());
        let scratch = Scratch::new(&pytest.place)?;
        for name in ["home", "tmp"] {
            let path = scratch.path().join(name);
            std::fs::create_dir(&path).map_err(|error| (path, error))?;
        }
        // pytest looks upwards for its configuration: here it finds an empty one, and looks no further.
        let barrier = scratch.path().join("pytest.ini");
        std::fs::write(&barrier, "[pytest]\n").map_err(|error| (barrier, error))?;
        let mut args = vec!["-p".to_owned(), "no:cacheprovider".to_owned()];
        for plugin in pytest.plugins.iter().flatten() {
            args.extend(["-p".to_owned(), plugin.clone()]);
        }
        args.extend(pytest.args.iter().cloned());
        let (directory, covered, record) = (PathBuf::new(), Vec::new(), Record::default());
        let report_bytes = Limits::with_timeout(pytest.timeout).report_bytes;
        Ok(Self { pytest, started, generation, scratch, directory, args, covered, report_bytes, record })
    }

    /// Runs sessions until every test has a result, or there is no sense in another one.
    fn finish(mut self, is_cancelled: &mut IsCancelled<'_>) -> Result<SuiteResult, Error> {
        let mut is_first = true;
        loop {
            let (mut session, output, stop) = self.session(is_cancelled)?;
            if stop == Some(Stop::Cancelled) {
                return Err(Error::Interrupted);
            }
            if is_first {
                self.check(&session, &output)?;
            }
            is_first = false;
            if session.ended.is_none() && !self.covered.is_empty() {
                self.record
                    .add_warning("coverage leaves out what ran in a process that was ended".to_owned());
            }
            let cause = self.cause(&session, &output, stop);
            let words = cause.message.clone();
            let blamed = self.record.blame(&mut session, cause);
            if let Some((code, message)) = session.ended.take().filter(|_| session.interrupted.is_none()) {
                self.explain_end(code, &message, &output);
                break;
            }
            if blamed == Blamed::Nobody && (session.finished == 0 || self.record.is_complete()) {
                self.record.add_problem(format!("pytest did not finish: {words}"));
                break;
            }
            if blamed == Blamed::File
                || output.end == End::Flooded
                || self.record.is_complete()
                || !self.record.goes_on()
                || self.started.elapsed() >= self.pytest.timeout
            {
                break;
            }
        }
        self.into_suite()
    }

    /// Ends the run: its directory goes, its record becomes the suite.
    fn into_suite(self) -> Result<SuiteResult, Error> {
        let Self { started, scratch, mut record, .. } = self;
        if let Err(error) = scratch.remove() {
            record.add_warning(format!("the directory of the run could not be removed: {error}"));
        }
        Ok(record.into_suite("pytest", started.elapsed())?)
    }

    /// One process, from its start to its end.
    fn session(
        &mut self,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<(Session, Output, Option<Stop>), Error> {
        let command = self.command()?;
        let (record, generation, mut room) = (&mut self.record, self.generation, self.report_bytes);
        let is_over = |session: &Session| {
            session
                .running
                .as_ref()
                .zip(self.pytest.test_timeout)
                .is_some_and(|(run, limit)| run.since.elapsed() >= limit)
        };
        let mut session = Session::default();
        let mut stop = None;
        let output = sandbox::run(&command, &mut |event| {
            match event {
                Event::Line(line) => {
                    room = room.saturating_sub(line.len() + 1);
                    record.take(&mut session, line);
                }
                Event::LongLine => {
                    room = room.saturating_sub(1 << 20);
                    record.add_problem(
                        "a line of the report that was longer than 1 MiB is left out".to_owned(),
                    );
                }
                Event::Tick if generation.is_cancelled() || is_cancelled() => stop = Some(Stop::Cancelled),
                Event::Tick if is_over(&session) => stop = Some(Stop::TestTimeout),
                Event::Tick => {}
            }
            if stop.is_some() || session.is_over() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        self.report_bytes = room;
        if stop == Some(Stop::TestTimeout) && !is_over(&session) {
            session.running = None; // it ended at the last moment, and the next one had just begun
        }
        Ok((session, output, stop))
    }

    fn command(&self) -> Result<Command, Error> {
        let settings = Settings { args: &self.args, done: self.record.done(), coverage: &self.covered };
        let path = self.scratch.path().join("settings.json");
        let text = serde_json::to_vec(&settings).map_err(std::io::Error::from);
        text.and_then(|text| std::fs::write(&path, text)).map_err(|error| (path.clone(), error))?;
        let time = self.pytest.timeout.saturating_sub(self.started.elapsed());
        Ok(Command {
            program: self.pytest.python.clone(),
            args: vec![self.pytest.worker.clone().into(), path.into()],
            directory: self.directory.clone(),
            env: self.environment(),
            limits: Limits { report_bytes: self.report_bytes, ..Limits::with_timeout(time) },
        })
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let in_scratch = |name: &str| self.scratch.path().join(name).into();
        let mut env = vec![("HOME".into(), in_scratch("home")), ("TMPDIR".into(), in_scratch("tmp"))];
        if self.pytest.plugins.is_some() {
            env.push(("PYTEST_DISABLE_PLUGIN_AUTOLOAD".into(), "1".into()));
        }
        env.extend(self.pytest.env.iter().cloned());
        env
    }

    /// Whether the session came as far as pytest: if not, it is our side that failed.
    fn check(&self, session: &Session, output: &Output) -> Result<(), Error> {
        let python = self.pytest.python.clone();
        if let Some(module) = &session.missing {
            return Err(Error::Missing { python, module: module.clone() });
        }
        if let Some(message) = &session.refused {
            return Err(Error::Refused { message: last_words(&[message, &output.stderr]) });
        }
        if session.is_ready {
            return Ok(());
        }
        let when = match output.end {
            End::TimedOut | End::Stopped => {
                format!("after {}, the limit of the run", seconds(self.pytest.timeout))
            }
            End::Flooded => "when its report was full".to_owned(),
            End::Exited(status) => format!("when {}", exit_words(status)),
        };
        Err(Error::NotReady { python, when, output: last_words(&[&output.stderr]) })
    }

    /// What stopped the session where it was.
    fn cause(&self, session: &Session, output: &Output, stop: Option<Stop>) -> Cause {
        let (reason, message) = if let Some(message) = &session.interrupted {
            ("interrupted", message.clone())
        } else if let Some(message) = &session.internal_error {
            (if session.running.is_some() { "crash" } else { "collection" }, message.clone())
        } else if let Some(limit) = self.pytest.test_timeout.filter(|_| stop == Some(Stop::TestTimeout)) {
            ("timeout", format!("took longer than {}, the limit for one test", seconds(limit)))
        } else {
            match output.end {
                End::Exited(status) => ("crash", exit_words(status)),
                End::Flooded => ("output", "the report of the run was longer than allowed".to_owned()),
                End::TimedOut | End::Stopped => (
                    "timeout",
                    format!("not done after {}, the limit of the run", seconds(self.pytest.timeout)),
                ),
            }
        };
        // Where pytest itself failed, it says so among its results; where the process crashed, Python does.
        let said = if session.internal_error.is_some() { &output.stdout } else { &output.stderr };
        Cause { reason, message, details: last_words(&[said]) }
    }

    /// Says what was wrong with a session that ended itself, beyond what its tests say.
    fn explain_end(&mut self, code: Option<i32>, message: &str, output: &Output) {
        if !message.is_empty() {
            self.record.add_problem(format!("pytest was left by an exception: {message}"));
        } else if code == Some(4) {
            let words = last_words(&[&output.stderr]);
            self.record.add_problem(format!("pytest could not load a conftest file: {words}"));
        } else if !self.record.has_collected && self.record.is_empty() {
            self.record.add_problem("pytest ended without collecting tests".to_owned());
        } else if self.record.is_empty() {
            self.record.add_warning("no tests were collected".to_owned());
        }
    }
}

/// How a process ended, in words.
fn exit_words(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "the process was gone".to_owned() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the process ended with exit code {code}"),
        (None, Some(number)) => {
            let name =
                SIGNALS.iter().find(|(signal, _)| signal.as_raw() == number).map_or("", |(_, name)| name);
            format!("the process was killed by signal {number}{name}")
        }
        (None, None) => "the process ended".to_owned(),
    }
}

/// The parts that say something, and of them the end.
fn last_words(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    let words = parts.join("\n");
    words.chars().skip(words.chars().count().saturating_sub(OUTPUT_CHARS)).collect()
}
