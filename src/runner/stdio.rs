//! Judges a program by what it prints for given inputs.

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;

use serde_json::json;

use super::cases::{Ask, Clock, Finding, Fresh, Label, Line, Run};
use super::compare::{Comparison, compare};
use super::contained::{Contained, Request};
use super::ending::{exit_words, last_words, words};
use super::stage::Module;
use super::tree::Entry;
use super::{Candidate, Error, Generation, IsCancelled};
use crate::outcome::SuiteResult;
use crate::sandbox::{Done, End, Event, Job, Waits};

/// What is kept of what a checker prints.
const CHECKER_BYTES: usize = 64 << 10;

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name, weight and time.
    pub label: Label,
    /// Standard input.
    pub input: Vec<u8>,
    /// What must be printed.
    pub output: Vec<u8>,
}

/// Says whether an output is right where several are: input, output, expected output; the error says why not.
pub type Checker<'a> = dyn Fn(&[u8], &[u8], &[u8]) -> Result<Result<(), String>, Error> + Sync + 'a;

/// How programs are judged.
#[derive(Clone, Debug)]
pub struct Stdio {
    /// What holds the candidate.
    pub contained: Contained,
    /// The cases; see [`Self::labels`].
    pub cases: Vec<Case>,
    /// The labels of the cases.
    pub labels: Vec<Label>,
    /// When an output is right.
    pub comparison: Comparison,
    /// What a process is good for.
    pub fresh: Fresh,
    /// What the duration of a case is.
    pub clock: Clock,
    /// The file that is run.
    pub module: Module,
    /// Whether to end the run at the first case that does not pass.
    pub stops_at_failure: bool,
    /// A program that says when an output is right, in place of `comparison`.
    pub checking: Option<Box<Checking>>,
}

/// A program that judges outputs; see [`Checking::check`].
#[derive(Clone, Debug)]
pub struct Checking {
    /// What holds it: it reads what a candidate has printed.
    pub contained: Contained,
    /// The program and its arguments.
    pub argv: Vec<String>,
}

impl Checking {
    /// Runs it as `ARGV input output expected`: exit code 0 is right, 1 and 2 are wrong, and what it prints is why.
    fn check(&self, input: &[u8], output: &[u8], expected: &[u8]) -> Result<Result<(), String>, Error> {
        let files = [("input", input), ("output", output), ("expected", expected)]
            .map(|(name, body)| Entry { path: name.into(), mode: Some(0o644), body: body.to_vec() });
        let names = files.iter().map(|file| file.path.display().to_string());
        let argv: Vec<String> = self.argv.iter().cloned().chain(names).collect();
        let fields = json!({"kind": "program", "how": "command", "main": "", "argv": argv});
        let request = Request::new(fields, &files, &[]);
        let limits = &self.contained.limits;
        let job = Job {
            request: request.parts(),
            stdin: &[],
            timeout: limits.timeout(),
            cpu: limits.cpu(),
            output_bytes: CHECKER_BYTES,
            ends_on_flood: false,
            report_bytes: CHECKER_BYTES,
            line_bytes: CHECKER_BYTES,
            more: Vec::new(),
            waits: Waits::Apart,
        };
        let generation = Generation::now();
        let mut missing = None;
        let mut watch = |event: Event<'_>| {
            if let Event::Line(line, _) = event
                && let Ok(said) = serde_json::from_slice::<serde_json::Value>(line)
            {
                missing = said.get("message").and_then(|message| message.as_str()).map(str::to_owned);
            }
            if generation.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut lease = self.contained.lease("program", "_program.py", &json!({}), &mut || false)?;
        let done = lease.run(&job, &mut watch, &mut || generation.is_cancelled())?;
        let said =
            last_words(&[&String::from_utf8_lossy(&done.stdout), &String::from_utf8_lossy(&done.stderr)]);
        match (missing, done.end) {
            (Some(words), _) => Err(Error::Checker { words }),
            (None, End::Exited(Some(status))) if status.success() => Ok(Ok(())),
            (None, End::Exited(Some(status))) if matches!(status.code(), Some(1 | 2)) => {
                Ok(Err(if said.is_empty() { "the checker says that it is wrong".to_owned() } else { said }))
            }
            (None, end) => {
                let words = words(end, limits.timeout(), limits.cpu());
                Err(Error::Checker { words: format!("{words}: {said}") })
            }
        }
    }
}

impl Stdio {
    /// Judges one program.
    pub fn judge(
        &self,
        candidate: &Candidate,
        checker: Option<&Checker<'_>>,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let limits = &self.contained.limits;
        let mut run = Run::new(limits, &self.labels, self.clock, self.stops_at_failure);
        let Some(staged) = run.stage(&self.module, candidate, is_cancelled)? else {
            return run.into_suite("stdio");
        };
        let mut lease = run.lease(&self.contained, is_cancelled)?;
        let files = staged.parcel.entries();
        let judge = |case: usize, exit: Exit<'_>| self.finding(case, &exit, checker);
        let main = self.module.main(files);
        let alone = Request::new(json!({"kind": "program", "how": "program", "main": main}), files, &[]);
        while run.goes_on() {
            match self.fresh {
                Fresh::Process => {
                    let Some(index) = run.next() else { break };
                    let stdin = self.cases.get(index).map(|case| case.input.as_slice()).unwrap_or_default();
                    let ask = Ask { request: &alone, stdin, cases: vec![index] };
                    run.one(&mut lease, &ask, is_cancelled, &mut |case, done| judge(case, Exit::of(done)))?;
                }
                Fresh::Program => {
                    let open = run.open();
                    let inputs: Vec<(usize, &[u8])> = open
                        .iter()
                        .filter_map(|index| Some((*index, self.cases.get(*index)?.input.as_slice())))
                        .collect();
                    let sizes: Vec<_> = inputs.iter().map(|(index, input)| (index, input.len())).collect();
                    let texts: Vec<&[u8]> = inputs.iter().map(|(_, input)| *input).collect();
                    let fields = json!({"kind": "program", "how": "programs", "main": main,
                                        "inputs": sizes, "output_bytes": limits.output_bytes});
                    let request = Request::new(fields, files, &texts);
                    let ask = Ask { request: &request, stdin: &[], cases: open };
                    run.many(&mut lease, &ask, is_cancelled, &mut |case, line| match line {
                        Line::Output { status, stdout, stderr, .. } => {
                            match (from_base64(stdout), from_base64(stderr)) {
                                (Some(stdout), Some(stderr)) => judge(
                                    case,
                                    Exit {
                                        status: Some(*status),
                                        words: None,
                                        stdout: &stdout,
                                        stderr: &stderr,
                                    },
                                ),
                                _ => Ok(Finding::error("crash", "the process wrote over its report", "")),
                            }
                        }
                        _ => Ok(Finding::error("crash", "the process wrote over its report", "")),
                    })?;
                }
            }
        }
        run.into_suite("stdio")
    }

    fn finding(&self, case: usize, exit: &Exit<'_>, checker: Option<&Checker<'_>>) -> Result<Finding, Error> {
        let Some(case) = self.cases.get(case) else {
            return Ok(Finding::error("crash", "there is no such case", ""));
        };
        let stderr = || last_words(&[&String::from_utf8_lossy(exit.stderr)]);
        if exit.stdout.len() as u64 > self.contained.limits.output_bytes {
            return Ok(Finding::error("output", "printed more than allowed", ""));
        }
        if exit.status != Some(0) {
            let said = stderr();
            let last = said.lines().last().unwrap_or_default().trim();
            let reason = if last.starts_with("MemoryError") { "memory" } else { "crash" };
            let message = match (&exit.words, last) {
                (Some(words), _) => words.clone(),
                (None, "") => format!("the program ended with exit code {}", exit.status.unwrap_or_default()),
                (None, last) => last.to_owned(),
            };
            return Ok(Finding::error(reason, message, said));
        }
        let verdict = match (checker, &self.checking) {
            (Some(checker), _) => checker(&case.input, exit.stdout, &case.output)?,
            (None, Some(checking)) => checking.check(&case.input, exit.stdout, &case.output)?,
            (None, None) => compare(exit.stdout, &case.output, &self.comparison),
        };
        Ok(match verdict {
            Ok(()) => Finding::passed(),
            Err(difference) => Finding::failed(difference, stderr()),
        })
    }
}

/// How a program ended and what it printed.
struct Exit<'a> {
    status: Option<i32>,
    /// What there is to say of a program that was killed.
    words: Option<String>,
    stdout: &'a [u8],
    stderr: &'a [u8],
}

impl<'a> Exit<'a> {
    fn of(done: &'a Done) -> Self {
        let status = match done.end {
            End::Exited(status) => status,
            _ => None,
        };
        let is_killed = status.is_none_or(|status| status.signal().is_some());
        Self {
            status: status.and_then(|status| status.code()),
            words: is_killed.then(|| exit_words(status)),
            stdout: &done.stdout,
            stderr: &done.stderr,
        }
    }
}

/// Bytes from base64 with padding; `None` when it is none.
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(from_base64("aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(from_base64("/+8A"), Some(vec![0xff, 0xef, 0]));
        assert_eq!(from_base64(""), Some(Vec::new()));
        assert_eq!(from_base64("a b"), None);
    }
}
