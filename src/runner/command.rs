//! Judges a candidate by a command: it is laid beside the tests, the command runs contained, and its exit code
//! is all that is believed of it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;
use serde_json::json;

use super::cases::Finding;
use super::contained::{Contained, Request};
use super::ending::{exit_words, last_words, reason_of, words};
use super::tree::{self, Content, File, NoTree, Parcel, Written, inside};
use super::{Candidate, Error, Generation, IsCancelled, Tests};
use crate::outcome::{About, SuiteResult, TestResult};
use crate::sandbox::{End, Event, Job, Waits};

/// How a command is run.
#[derive(Clone, Debug)]
pub struct Command {
    /// What holds it.
    pub contained: Contained,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The files that the candidate is laid beside.
    pub tests: Tests,
    /// The files of the tests that the candidate may replace; code alone becomes the first of them.
    pub replaces: Vec<PathBuf>,
}

impl Command {
    /// Runs the command for one candidate.
    pub fn judge(
        &self,
        candidate: &Candidate,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let name = self.argv.join(" ");
        let limits = &self.contained.limits;
        let mut about = About { trust: Some("reported".into()), ..About::named("command") };
        let Packed { parcel, warnings, problems, excess } = self.pack(candidate)?;
        about.warnings = warnings;
        about.problems = problems;
        if let Some(excess) = excess {
            return suite(&name, &Finding::error("disk", excess, ""), about);
        }
        let mut lease = self.contained.lease("program", "_program.py", &json!({}), is_cancelled)?;
        about.containment = Some(lease.containment());
        let fields = json!({"kind": "program", "how": "command", "main": "", "argv": self.argv});
        let request = Request::new(fields, parcel.entries(), &[]);
        let job = Job {
            request: request.parts(),
            stdin: &[],
            timeout: limits.timeout(),
            cpu: limits.cpu(),
            output_bytes: usize::try_from(limits.output_bytes).unwrap_or(usize::MAX),
            ends_on_flood: false,
            report_bytes: 1 << 20,
            line_bytes: 1 << 20,
            more: Vec::new(),
            waits: Waits::Apart,
        };
        let (generation, mut is_interrupted, started) = (Generation::now(), false, Instant::now());
        let mut missing = None;
        let mut watch = |event: Event<'_>| {
            if let Event::Line(line, _) = event
                && let Ok(Line::Missing { message }) = serde_json::from_slice(line)
            {
                missing = Some(message);
            }
            if matches!(event, Event::Tick(_)) && (generation.is_cancelled() || is_cancelled()) {
                is_interrupted = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let done = lease.run(&job, &mut watch, &mut || generation.is_cancelled())?;
        if is_interrupted {
            return Err(Error::Interrupted);
        }
        if let Some(message) = missing {
            return Err(Error::NoCommand { message });
        }
        about.duration_ms = Some(started.elapsed().as_secs_f64() * 1e3);
        let said = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let said = last_words(&[&said[0], &said[1]]);
        let finding = match done.end {
            End::Exited(Some(status)) if status.success() => Finding::passed(),
            End::Exited(status) => Finding::failed(exit_words(status), said),
            end => Finding::error(reason_of(end), words(end, limits.timeout(), limits.cpu()), said),
        };
        suite(&name, &finding, about)
    }

    pub(super) fn pack(&self, candidate: &Candidate) -> Result<Packed, Error> {
        let mut packed = Packed::default();
        let first = self.replaces.first().cloned().unwrap_or_default();
        let files = match candidate {
            Candidate::Code(code) => vec![File { path: first, content: Content::Bytes(code.clone()) }],
            Candidate::Files(files) => {
                let mut inner = Vec::new();
                for (path, bytes) in files {
                    match inside(path) {
                        Some(path) => inner.push(File { path, content: Content::Bytes(bytes.clone()) }),
                        None => packed.problems.push(format!(
                            "the candidate's file {path:?} is not a path inside its directory"
                        )),
                    }
                }
                inner
            }
            Candidate::Workspace(path) => {
                let tree = match path.is_dir() {
                    true => tree::workspace_under(path),
                    false => tree::workspace_file(&first, path),
                };
                match tree {
                    Ok(tree) => tree.files,
                    Err(NoTree::File(path, error)) => return Err((path, error).into()),
                    Err(NoTree::Excess(what)) => {
                        packed.excess = Some(what);
                        return Ok(packed);
                    }
                }
            }
        };
        for file in super::stage::test_files(&self.tests)?.files {
            let is_replaced =
                self.replaces.contains(&file.path) && files.iter().any(|own| own.path == file.path);
            if !is_replaced {
                packed.parcel.add(&file)?;
            }
        }
        let mut unused = Vec::new();
        for file in files {
            if packed.parcel.add(&file)? != Written::Yes {
                unused.push(file.path.display().to_string());
            }
        }
        if !unused.is_empty() {
            let names = unused.join(", ");
            packed
                .warnings
                .push(format!("of the candidate's files, those of the tests are not used: {names}"));
        }
        let most = self.contained.limits.scratch_bytes;
        if packed.parcel.bytes() > most {
            packed.excess = Some(format!("the files of the run exceed {most} bytes"));
        }
        Ok(packed)
    }
}

/// What the child says before it is the command.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Missing { message: String },
}

/// The files of a run, and what was left out of them.
#[derive(Default)]
pub(super) struct Packed {
    pub(super) parcel: Parcel,
    warnings: Vec<String>,
    problems: Vec<String>,
    excess: Option<String>,
}

fn suite(name: &str, finding: &Finding, about: About) -> Result<SuiteResult, Error> {
    let test = TestResult::new(name, finding.status)
        .with_message(&finding.message)
        .with_details(&finding.details)
        .with_reason(finding.reason)
        .with_duration_ms(about.duration_ms.unwrap_or_default())?;
    Ok(SuiteResult::new(vec![test], about)?)
}
