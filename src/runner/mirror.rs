//! Gives the tests of a judge the candidate in another process, a fresh one whenever they ask for it.
//!
//! The judge's process has a desk, a socket to this side: on `new` it gets two pipes to a new process of the
//! candidate, on `why` it hears how the last one ended. What the judge says goes straight to the candidate;
//! what the candidate says is looked at first (see [`super::wire`]). `python/testgrad/_mirror.py` and
//! `_mirrored.py` are the two ends.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    SocketType, recv, sendmsg, shutdown, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::contained::{Contained, Request};
use super::ending::{exit_words, reason_of, words};
use super::stage::{Module, Staged};
use super::tree::Entry;
use super::{Error, Generation, IsCancelled};
use crate::sandbox::{Done, End, Event, Job, Lease, Relay, Waits};

/// What is kept of what a candidate writes past its streams.
const OUTPUT_BYTES: usize = 64 << 10;

/// What both ends load.
pub(super) const LIBRARIES: [&str; 2] = ["_wire.py", "_surroundings.py"];

/// The candidate's side of one run.
pub(super) struct Mirror {
    /// Its files.
    request: Request,
    lease: Lease,
    /// What the judge is told of it.
    pub(super) settings: Json,
}

/// What one session of the judge has to do with the candidate's processes.
#[derive(Clone, Copy)]
struct Session<'a> {
    desk: &'a OwnedFd,
    time: Duration,
    cpu: Duration,
    waits: &'a AtomicU64,
    /// The judge has ended.
    is_over: &'a AtomicBool,
}

impl Mirror {
    /// The candidate's side, and the files that are left for the judge's.
    pub(super) fn new(
        contained: &Contained,
        module: &Module,
        is_kept: bool,
        staged: &mut Staged,
        is_cancelled: &mut IsCancelled<'_>,
    ) -> Result<Self, Error> {
        let files = staged.take_candidate(module);
        let fields = json!({"kind": "mirrored", "main": module.main(&files)});
        let settings = json!({
            "module": module.name(),
            "others": others(&files),
            "output_bytes": contained.limits.output_bytes,
            "is_kept": is_kept,
        });
        let libraries = LIBRARIES.map(|name| contained.own(name));
        let told = json!({"libraries": libraries});
        let lease = contained.lease("mirrored", "_mirrored.py", &told, is_cancelled)?;
        let request = Request::new(fields, &files, &[]);
        Ok(Self { request, lease, settings })
    }

    /// Does something with a desk at hand, whose descriptor is the judge's end; with what came of it, the processor
    /// time of the candidate's processes.
    pub(super) fn with_desk<T>(
        &mut self,
        time: Duration,
        cpu: Duration,
        run: impl FnOnce(BorrowedFd<'_>, &AtomicU64) -> Result<T, Error>,
    ) -> Result<(T, Duration), Error> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| Error::Thread(errno.into()))?;
        let waits = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = std::thread::Builder::new()
                .name("testgrad-mirror".to_owned())
                .spawn_scoped(scope, || {
                    let (waits, is_over) = (&waits, &is_over);
                    let served = self.serve(Session { desk: &ours, time, cpu, waits, is_over });
                    // A judge that still waits is not to wait for nothing.
                    let _ = shutdown(&ours, Shutdown::Both);
                    served
                })
                .map_err(Error::Thread)?;
            let result = run(theirs.as_fd(), &waits);
            is_over.store(true, Ordering::Release);
            drop(theirs);
            let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (result, served) {
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(result), Ok(used)) => Ok((result, used)),
            }
        })
    }

    /// Answers the judge until its process is gone; the processor time of all processes of the candidate.
    fn serve(&mut self, session: Session<'_>) -> Result<Duration, Error> {
        let Session { desk, time, cpu, .. } = session;
        let mut used = Duration::ZERO;
        let mut why = why(&End::Exited(None), None, time, cpu);
        let mut buffer = [0; 64];
        loop {
            let count = match recv(desk, &mut buffer, RecvFlags::empty()) {
                Ok((_, count)) => count,
                Err(Errno::INTR) => continue,
                Err(_) => 0,
            };
            match buffer.get(..count) {
                Some(b"new") => {
                    let (done, full) = self.one(Session { cpu: cpu.saturating_sub(used), ..session })?;
                    used += done.cpu;
                    why = self::why(&done.end, full, time, cpu);
                }
                Some(b"why") => say(desk, why.as_bytes(), &[])?,
                _ => return Ok(used),
            }
        }
    }

    /// One process of the candidate, from its start to its end.
    fn one(&mut self, session: Session<'_>) -> Result<(Done, Option<String>), Error> {
        let Session { desk, time, cpu, waits, is_over } = session;
        let failed = |errno: Errno| Error::Thread(errno.into());
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(failed);
        let ((asked, asking), (said, saying), (heard, hearing)) = (pipe()?, pipe()?, pipe()?);
        let relay =
            Relay::new(said, hearing, super::wire::MOST_BYTES, super::wire::is_sound).map_err(failed)?;
        say(desk, b"here", &[heard.as_fd(), asking.as_fd()])?;
        drop((heard, asking));
        let mut full = None;
        let mut watch = |event: Event<'_>| {
            if let Event::Line(line, _) = event
                && let Ok(Line::Full { message }) = serde_json::from_slice(line)
            {
                full = Some(message);
            }
            match is_over.load(Ordering::Acquire) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let job = Job {
            request: self.request.parts(),
            stdin: &[],
            timeout: time,
            cpu,
            output_bytes: OUTPUT_BYTES,
            ends_on_flood: false,
            report_bytes: 1 << 16,
            line_bytes: 1 << 16,
            more: vec![asked.as_fd(), saying.as_fd()],
            waits: Waits::Told(waits),
        };
        let generation = Generation::now();
        // The worker has its own copies of both once it is told of the job, and ours must not keep them open;
        // they go with `job` only at its end, which the judge does not wait for.
        let done =
            self.lease.run_relayed(&job, Some(relay), &mut watch, &mut || generation.is_cancelled())?;
        Ok((done, full))
    }
}

/// The names of the modules and packages at the top of the candidate's files.
fn others(files: &[Entry]) -> Vec<String> {
    let names = files.iter().filter_map(|file| {
        let first = file.path.iter().next()?.to_str()?;
        let is_package = file.path.iter().nth(1).is_some();
        if is_package { Some(first) } else { first.strip_suffix(".py") }
    });
    names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// What the child says before it serves.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Full { message: String },
}

/// How a process of the candidate ended, for the judge.
fn why(end: &End, full: Option<String>, time: Duration, cpu: Duration) -> String {
    let (reason, message) = match (full, end) {
        (Some(message), _) => ("disk", message),
        (None, End::Exited(status)) => ("crash", exit_words(*status)),
        (None, end) => (reason_of(*end), words(*end, time, cpu)),
    };
    let is_odd = *end == End::Garbled;
    json!({"reason": reason, "message": message, "is_odd": is_odd}).to_string()
}

/// Says something to the judge; that it has ended is found out when it is next listened to.
fn say(desk: &OwnedFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Error> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    match sendmsg(desk, &[std::io::IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL) {
        Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
        Err(errno) => Err(Error::Thread(errno.into())),
    }
}
