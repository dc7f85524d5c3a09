//! Judges a candidate by a real pytest, in a fresh contained process beside a copy of the tests.
//!
//! Tests and candidate share that process, so this is for code that does not try to cheat. When it dies or
//! hangs in a test, that test is an error, the results before it stand, and a new process goes on behind it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::contained::{Contained, Request};
use super::ending::{exit_words, last_words, reason_of, words};
use super::mirror::{LIBRARIES, Mirror};
use super::plan::{Expected, Isolation, Plan, Plans, difference, has_temporary_files, is_suspect};
use super::record::{Blamed, Cause, Record, Session};
use super::rewritten::Rewritten;
use super::stage::{Module, Staged, Tests, stage};
use super::tree::Entry;
use super::{Candidate, Error, Generation, IsCancelled, seconds};
use crate::containment::Containment;
use crate::outcome::{About, SuiteResult};
use crate::sandbox::{End, Event, Job, Lease, Waits, Watcher};

/// What is kept of what a session prints; pytest keeps itself what a test prints.
const OUTPUT_BYTES: usize = 64 << 10;
const REPORT_BYTES: usize = 64 << 20;
const LINE_BYTES: usize = 1 << 20;
/// So many files that end their session are enough to know a candidate by.
const MOST_FILES: usize = 20;

/// How long the text of tests may be looked at.
const EXAMINATION: Duration = Duration::from_secs(60);

/// What a look at the text of a test file has found.
#[derive(Deserialize)]
struct Examined {
    path: String,
    needs: String,
    why: String,
}

/// How pytest is run.
#[derive(Clone, Debug)]
pub struct Pytest {
    /// What holds the tests, and the candidate if they share a process.
    pub contained: Contained,
    /// What holds the candidate in a process of its own.
    pub mirrored: Option<Contained>,
    /// Further arguments for pytest.
    pub args: Vec<String>,
    /// The plugins to load.
    pub plugins: Vec<String>,
    /// Whether to measure which lines of the candidate run.
    pub measures_coverage: bool,
    /// Whether to end the run at the first test that does not pass.
    pub stops_at_failure: bool,
    /// The tests as pytest compiles them.
    pub rewritten: Rewritten,
    /// A candidate that is right.
    pub reference: Option<Candidate>,
    /// The tests that a run must have a result of; `None` takes those of the reference, where there is one.
    pub expected: Option<Vec<Expected>>,
    /// How the tests are judged, once that is known.
    pub plans: Plans,
    /// The same for hidden tests.
    pub of_hidden: Option<Box<Pytest>>,
}

impl Pytest {
    /// Judges a candidate by the tests; `module` is the module that they import.
    pub fn judge(
        &self,
        tests: &Tests,
        module: &Module,
        candidate: &Candidate,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let limits = &self.contained.limits;
        let staged = stage(tests, module, candidate, limits.scratch_bytes, is_cancelled)?;
        if self.mirrored.is_none() && self.reference.is_none() && self.expected.is_none() {
            return self.run(Isolation::None, module, staged, is_cancelled);
        }
        let files = staged.parcel.entries().get(..staged.tests).unwrap_or_default();
        // The candidate's own module may have taken the place of a stub: it is no part of the tests.
        let files: Vec<Entry> = files.iter().filter(|file| !module.has(&file.path)).cloned().collect();
        let plan = self.plans.of(&files, || self.plan(tests, module, &files, is_cancelled))?;
        plan.lock(self.run(plan.isolation, module, staged, is_cancelled)?)
    }

    /// Settles how these tests are judged.
    fn plan(
        &self,
        tests: &Tests,
        module: &Module,
        files: &[Entry],
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<Plan, Error> {
        let mut plan =
            Plan { isolation: Isolation::None, warnings: Vec::new(), expected: self.expected.clone() };
        if self.mirrored.is_some() && self.measures_coverage {
            let warning = "tests and candidate share a process: coverage is measured in it";
            plan.warnings.push(warning.to_owned());
        } else if self.mirrored.is_some() {
            (plan.isolation, plan.warnings) = self.examine(module, files, is_cancelled)?;
            let has_places = plan.isolation != Isolation::None && files.iter().any(has_temporary_files);
            if has_places && !self.lease(is_cancelled)?.containment().is_enforced("mount") {
                plan.isolation = Isolation::None;
                plan.warnings.push(
                    "tests and candidate share a process: temporary files need a mount namespace otherwise"
                        .to_owned(),
                );
            }
        }
        let Some(reference) = &self.reference else { return Ok(plan) };
        let bytes = self.contained.limits.scratch_bytes;
        let run = |isolation, is_cancelled: &mut IsCancelled<'_>| {
            let staged = stage(tests, module, reference, bytes, is_cancelled)?;
            self.run(isolation, module, staged, is_cancelled)
        };
        let together = run(Isolation::None, is_cancelled)?;
        if !together.all_passed() {
            let (failing, total) = (together.failing().count(), together.tests().len());
            plan.warnings.push(format!("the reference itself fails {failing} of {total} tests"));
        }
        if plan.expected.is_none() {
            plan.expected = Some(Expected::of(&together));
        }
        let mut tried =
            [Isolation::Test, Isolation::Session].into_iter().skip_while(|i| *i != plan.isolation);
        while plan.isolation != Isolation::None {
            let Some(isolation) = tried.next() else {
                plan.isolation = Isolation::None;
                break;
            };
            match difference(&together, &run(isolation, is_cancelled)?) {
                None => {
                    plan.isolation = isolation;
                    break;
                }
                Some(test) if isolation == Isolation::Session => plan.warnings.push(format!(
                    "tests and candidate share a process: {test} has another outcome with the reference otherwise"
                )),
                Some(_) => {}
            }
        }
        Ok(plan)
    }

    /// Finds out from the tests themselves how far they can be apart from a candidate.
    fn examine(
        &self,
        module: &Module,
        files: &[Entry],
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<(Isolation, Vec<String>), Error> {
        let suspects: Vec<&Entry> = files.iter().filter(|file| is_suspect(file)).collect();
        if suspects.is_empty() {
            return Ok((Isolation::Test, Vec::new()));
        }
        let names: Vec<_> = suspects.iter().map(|file| &file.path).collect();
        let fields = json!({"kind": "pytest", "examine": names, "module": module.name()});
        let request = Request::new(fields, suspects.iter().copied(), &[]);
        let mut found = (Isolation::Test, Vec::new());
        let mut watch = |event: Event<'_>| {
            if let Event::Line(line, _) = event
                && let Ok(Examined { path, needs, why }) = serde_json::from_slice(line)
            {
                if needs == "shared" {
                    found.0 = Isolation::None;
                    found.1.push(format!("tests and candidate share a process: {path}: {why}"));
                } else if found.0 == Isolation::Test {
                    found.0 = Isolation::Session;
                }
            }
            if is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut lease = self.lease(&mut || false)?;
        let job = Job {
            request: request.parts(),
            stdin: &[],
            timeout: EXAMINATION,
            cpu: EXAMINATION,
            output_bytes: OUTPUT_BYTES,
            ends_on_flood: false,
            report_bytes: REPORT_BYTES,
            line_bytes: LINE_BYTES,
            more: Vec::new(),
            waits: Waits::Apart,
        };
        lease.run(&job, &mut watch, &mut || false)?;
        Ok(found)
    }

    fn lease(&self, is_cancelled: &mut IsCancelled<'_>) -> Result<Lease, Error> {
        let mirror = LIBRARIES.into_iter().chain(["_mirror.py"]).filter(|_| self.mirrored.is_some());
        let libraries: Vec<_> = mirror.map(|name| self.contained.own(name)).collect();
        let settings = json!({"plugins": self.plugins, "coverage": self.measures_coverage,
                              "args": self.arguments(), "libraries": libraries});
        self.contained.lease("pytest", "_worker.py", &settings, is_cancelled)
    }

    /// One run of the tests.
    fn run(
        &self,
        isolation: Isolation,
        module: &Module,
        mut staged: Staged,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let generation = Generation::now();
        let mut is_cancelled = || generation.is_cancelled() || is_cancelled();
        let limits = &self.contained.limits;
        let mut run = Run::new(&self.contained.python, limits.timeout(), limits.test_timeout());
        run.cpu_limit = limits.cpu();
        run.stops_at_failure = self.stops_at_failure;
        run.trust = Some(if isolation == Isolation::None { "shared" } else { "isolated" });
        run.has_coverage = self.measures_coverage;
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
        for path in &staged.outside {
            run.record
                .add_problem(format!("the candidate's file {path:?} is not a path inside its directory"));
        }
        if let Some(excess) = staged.excess.take() {
            run.record.add_error("candidate", "disk", excess);
            return run.into_suite();
        }
        let mirrored = self.mirrored.as_ref().filter(|_| isolation != Isolation::None);
        let mut mirror = mirrored
            .map(|contained| {
                let is_kept = isolation == Isolation::Session;
                Mirror::new(contained, module, is_kept, &mut staged, &mut is_cancelled)
            })
            .transpose()?;
        let mut lease = self.lease(&mut is_cancelled)?;
        run.containment = Some(lease.containment());
        run.started = Instant::now();
        let compiled = self.rewritten.of(&staged, &mut lease)?;
        let sources = if self.measures_coverage { staged.sources.as_slice() } else { &[] };
        run.finish(&mut is_cancelled, &mut |told, watch| {
            let fields = json!({"kind": "pytest", "done": told.done, "skipped": told.skipped,
                                "coverage": sources, "configured": staged.is_configured,
                                "mirror": mirror.as_ref().map(|mirror| &mirror.settings)});
            let request = Request::new(fields, staged.parcel.entries().iter().chain(compiled.iter()), &[]);
            let job = Job {
                request: request.parts(),
                stdin: &[],
                timeout: told.time,
                cpu: told.cpu,
                output_bytes: OUTPUT_BYTES,
                ends_on_flood: false,
                report_bytes: told.report_bytes,
                line_bytes: LINE_BYTES,
                more: Vec::new(),
                waits: Waits::Apart,
            };
            let (done, used) = match &mut mirror {
                None => (lease.run(&job, watch, &mut || generation.is_cancelled())?, Duration::ZERO),
                Some(mirror) => mirror.with_desk(told.time, told.cpu, |desk, waits| {
                    let job = Job { more: vec![desk], waits: Waits::TakenOff(waits), ..job };
                    Ok(lease.run(&job, watch, &mut || generation.is_cancelled())?)
                })?,
            };
            Ok(Ended {
                end: done.end,
                stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
                counted: done.counted,
                cpu: done.cpu + used,
            })
        })
    }

    /// The same for other tests; what is known of them is kept apart.
    pub(super) fn for_hidden(&self) -> &Self {
        self.of_hidden.as_deref().unwrap_or(self)
    }

    /// Prepares for hidden tests, too.
    #[must_use]
    pub fn with_hidden(mut self) -> Self {
        let (rewritten, plans) = (Rewritten::default(), Plans::default());
        let other = Self { rewritten, plans, expected: None, measures_coverage: false, ..self.clone() };
        self.of_hidden = Some(Box::new(other));
        self
    }

    fn arguments(&self) -> Vec<String> {
        let mut args = vec!["-p".to_owned(), "no:cacheprovider".to_owned()];
        for plugin in &self.plugins {
            args.extend(["-p".to_owned(), plugin.clone()]);
        }
        if self.stops_at_failure {
            args.push("--exitfirst".to_owned());
        }
        args.extend(self.args.iter().cloned());
        args
    }
}

/// What one session is told.
#[derive(Debug)]
pub(super) struct Told<'a> {
    /// The tests that have a result.
    pub(super) done: Vec<&'a str>,
    /// The files in which a session ended.
    pub(super) skipped: Vec<&'a str>,
    pub(super) time: Duration,
    pub(super) cpu: Duration,
    pub(super) report_bytes: usize,
}

/// How the process of one session ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) counted: Duration,
    pub(super) cpu: Duration,
}

/// Runs the process of one session and tells the watcher what it reports.
pub(super) type RunSession<'a> = dyn FnMut(&Told<'_>, &mut Watcher<'_>) -> Result<Ended, Error> + 'a;

/// One run: as many sessions of pytest as it takes.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) python: &'a Path,
    pub(super) record: Record,
    pub(super) trust: Option<&'static str>,
    pub(super) containment: Option<Arc<Containment>>,
    pub(super) has_coverage: bool,
    pub(super) started: Instant,
    pub(super) cpu_limit: Duration,
    pub(super) stops_at_failure: bool,
    limit: Duration,
    test_limit: Option<Duration>,
    /// Time that counts, of the sessions that have ended.
    counted: Duration,
    cpu: Duration,
    /// Bytes that the sessions still may report.
    report_bytes: usize,
}

/// Why we ended a session that had not ended itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Cancelled,
    TestTimeout,
}

impl<'a> Run<'a> {
    pub(super) fn new(python: &'a Path, limit: Duration, test_limit: Option<Duration>) -> Self {
        Self {
            python,
            record: Record::default(),
            trust: None,
            containment: None,
            has_coverage: false,
            started: Instant::now(),
            cpu_limit: Duration::MAX,
            stops_at_failure: false,
            limit,
            test_limit,
            counted: Duration::ZERO,
            cpu: Duration::ZERO,
            report_bytes: REPORT_BYTES,
        }
    }

    /// Runs sessions until every test has a result, or there is no sense in another one.
    pub(super) fn finish(
        mut self,
        is_cancelled: &mut IsCancelled<'_>,
        run_session: &mut RunSession<'_>,
    ) -> Result<SuiteResult, Error> {
        let mut is_first = true;
        loop {
            let (mut session, output, stop) = self.session(is_cancelled, run_session)?;
            if stop == Some(Stop::Cancelled) {
                return Err(Error::Interrupted);
            }
            if let Some(message) = session.full.take() {
                self.record.add_error("candidate", "disk", message);
                break;
            }
            if is_first {
                self.check(&session, &output)?;
            }
            is_first = false;
            if session.ended.is_none() && self.has_coverage {
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
            let is_complete = blamed != Blamed::File && self.record.is_complete();
            if blamed == Blamed::Nobody && (session.finished == 0 || is_complete) {
                self.record.add_problem(format!("pytest did not finish: {words}"));
                break;
            }
            if output.end == End::Flooded
                || is_complete
                || (blamed == Blamed::File && (session.interrupted.is_some() || self.is_exhausted()))
                || !self.record.goes_on()
                || self.counted >= self.limit
                || self.cpu >= self.cpu_limit
            {
                break;
            }
        }
        self.into_suite()
    }

    /// Whether there is no sense in collecting the other files.
    fn is_exhausted(&self) -> bool {
        self.stops_at_failure || self.record.skipped().len() > MOST_FILES
    }

    /// Ends the run: its record becomes the suite.
    pub(super) fn into_suite(self) -> Result<SuiteResult, Error> {
        let about = About {
            duration_ms: Some(self.started.elapsed().as_secs_f64() * 1e3),
            trust: self.trust.map(Into::into),
            containment: self.containment,
            ..About::named("pytest")
        };
        Ok(self.record.into_suite(about)?)
    }

    /// One process, from its start to its end.
    fn session(
        &mut self,
        is_cancelled: &mut IsCancelled<'_>,
        run_session: &mut RunSession<'_>,
    ) -> Result<(Session, Ended, Option<Stop>), Error> {
        let mut room = self.report_bytes;
        // The names of what is done, apart from the record that grows meanwhile.
        let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (done, skipped) = (own(self.record.done()), own(self.record.skipped()));
        let told = Told {
            done: done.iter().map(String::as_str).collect(),
            skipped: skipped.iter().map(String::as_str).collect(),
            time: self.limit.saturating_sub(self.counted),
            cpu: self.cpu_limit.saturating_sub(self.cpu),
            report_bytes: room,
        };
        let (record, test_limit) = (&mut self.record, self.test_limit);
        let is_over = |session: &Session, at: Duration| {
            let running = session.running.as_ref().zip(test_limit);
            running.is_some_and(|(run, limit)| at.saturating_sub(run.since) >= limit)
        };
        let mut session = Session::default();
        let mut stop = None;
        let output = {
            let mut watch = |event: Event<'_>| {
                match event {
                    Event::Line(line, at) => {
                        room = room.saturating_sub(line.len() + 1);
                        record.take(&mut session, line, at);
                    }
                    Event::LongLine => {
                        room = room.saturating_sub(LINE_BYTES);
                        record.add_problem(
                            "a line of the report that was longer than 1 MiB is left out".to_owned(),
                        );
                    }
                    Event::Tick(_) if is_cancelled() => stop = Some(Stop::Cancelled),
                    Event::Tick(at) if is_over(&session, at) => stop = Some(Stop::TestTimeout),
                    Event::Tick(_) => {}
                }
                if stop.is_some() || session.is_over() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            run_session(&told, &mut watch)?
        };
        self.counted += output.counted;
        self.cpu += output.cpu;
        self.report_bytes = room;
        if stop == Some(Stop::TestTimeout) && !is_over(&session, output.counted) {
            session.running = None; // it ended at the last moment, and the next one had just begun
        }
        Ok((session, output, stop))
    }

    /// Whether the session came as far as pytest: if not, it is our side that failed.
    fn check(&self, session: &Session, output: &Ended) -> Result<(), Error> {
        let python = self.python.to_owned();
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
            End::Exited(status) => format!("when {}", exit_words(status)),
            end => format!("when {}", self.words(end)),
        };
        Err(Error::NotReady { python, when, output: last_words(&[&output.stderr]) })
    }

    /// What stopped the session where it was.
    fn cause(&self, session: &Session, output: &Ended, stop: Option<Stop>) -> Cause {
        let (reason, message) = if let Some(message) = &session.interrupted {
            ("interrupted", message.clone())
        } else if let Some(message) = &session.internal_error {
            (if session.running.is_some() { "crash" } else { "collection" }, message.clone())
        } else if let Some(limit) = self.test_limit.filter(|_| stop == Some(Stop::TestTimeout)) {
            ("timeout", format!("took longer than {}, the limit for one test", seconds(limit)))
        } else {
            match output.end {
                End::Exited(status) => ("crash", exit_words(status)),
                end => (reason_of(end), self.words(end)),
            }
        };
        // Where pytest itself failed, it says so among its results; where the process crashed, Python does.
        let said = if session.internal_error.is_some() { &output.stdout } else { &output.stderr };
        Cause { at: output.counted, reason, message, details: last_words(&[said]) }
    }

    fn words(&self, end: End) -> String {
        words(end, self.limit, self.cpu_limit)
    }

    /// Says what was wrong with a session that ended itself, beyond what its tests say.
    fn explain_end(&mut self, code: Option<i32>, message: &str, output: &Ended) {
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
