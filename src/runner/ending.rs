//! How a process ended: in words, and as the reason of an error.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;

use super::seconds;
use crate::sandbox::End;

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

/// The reason that a test gets whose process ended so.
pub(super) fn reason_of(end: End) -> &'static str {
    match end {
        End::Exited(_) | End::Garbled => "crash",
        End::Flooded => "output",
        End::OutOfMemory => "memory",
        End::TimedOut | End::OutOfCpu | End::Stopped => "timeout",
    }
}

/// How a process ended, in words.
pub(super) fn exit_words(status: Option<ExitStatus>) -> String {
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
pub(super) fn last_words(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    let words = parts.join("\n");
    words.chars().skip(words.chars().count().saturating_sub(OUTPUT_CHARS)).collect()
}

/// How the process of a run ended, in words; the limits are those of the run.
pub(super) fn words(end: End, limit: Duration, cpu_limit: Duration) -> String {
    match end {
        End::Exited(status) => exit_words(status),
        End::Flooded => "printed or reported more than allowed".to_owned(),
        End::Garbled => "the process wrote over what it says to the judge".to_owned(),
        End::OutOfMemory => "the processes of the run held more memory than allowed".to_owned(),
        End::OutOfCpu => format!("used {} of processor time, the limit of the run", seconds(cpu_limit)),
        End::TimedOut | End::Stopped => format!("not done after {}, the limit of the run", seconds(limit)),
    }
}
