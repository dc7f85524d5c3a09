//! A warm interpreter in a sandbox: it forks a child for each job, and reports the end of a job once the child
//! and all that it started are gone.
//!
//! `python/testgrad/_zygote.py` is its inside. On the control socket go `run`, with the four descriptors of a
//! job; back come the lines of the launcher, `ready`, and `ended` for each job. The child reads its request from
//! the socket of the job and reports on it, so nothing of a candidate stays in the worker.

use std::ffi::OsString;
use std::io;
use std::io::{IoSlice, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    recv, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};

use super::cgroup::Group;
use super::launch::{Plan, Walls};
use super::relay::Relay;
use super::scratch::Scratch;
use super::stream::{Kept, Lines};
use super::usage::{self, Clock};
use super::{End, Error, Event, Watcher};
use crate::containment::{Containment, LayerStatus};

const TICK: Duration = Duration::from_millis(20);
/// How long a worker may take to start, on a machine that is very busy.
const START: Duration = Duration::from_secs(120);
/// How long it may take to end a job.
const PATIENCE: Duration = Duration::from_secs(10);
/// On the wall, a run may take so many times its limit: then the machine had no time for it.
const BACKSTOP: u32 = 20;
/// After so many jobs a worker makes room for a new one, whatever it has grown to.
const MOST_JOBS: u64 = 4_000;
const MESSAGE_BYTES: usize = 64 << 10;

/// What makes workers alike.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blueprint {
    /// A program that calls [`launch`](super::launch) with the plan, its last argument.
    pub launcher: Vec<OsString>,
    /// The interpreter, by its path, and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment but for `HOME` and `TMPDIR`.
    pub env: Vec<(String, String)>,
    /// What it may read.
    pub readable: Vec<PathBuf>,
    /// What it and its jobs may use.
    pub walls: Walls,
    /// Mechanisms not to use.
    pub avoid: Vec<String>,
    /// Where a worker that sees the file system of the host has its directory.
    pub place: PathBuf,
}

/// One thing for a worker to do.
#[derive(Debug)]
pub struct Job<'a> {
    /// What its child reads.
    pub request: [&'a [u8]; 2],
    /// What it has on standard input.
    pub stdin: &'a [u8],
    /// Time that counts; see [`Clock`].
    pub timeout: Duration,
    /// Processor time of all its processes.
    pub cpu: Duration,
    /// Bytes kept of each of standard output and standard error.
    pub output_bytes: usize,
    /// Whether a job that prints more is ended; else the middle is left out.
    pub ends_on_flood: bool,
    /// Bytes of its report.
    pub report_bytes: usize,
    /// Bytes of one line of its report.
    pub line_bytes: usize,
    /// Further descriptors that it gets, at most two.
    pub more: Vec<BorrowedFd<'a>>,
    /// The time that jobs wait for one another.
    pub waits: Waits<'a>,
}

/// How the clocks of two jobs go together, where one waits for the other.
#[derive(Clone, Copy, Debug)]
pub enum Waits<'a> {
    /// They do not.
    Apart,
    /// This one is waited for: what it waits for a processor is told, in microseconds.
    Told(&'a AtomicU64),
    /// This one waits: what was told is taken off its time.
    TakenOff(&'a AtomicU64),
}

/// What is left of a job.
#[derive(Debug)]
pub struct Done {
    /// How it ended.
    pub end: End,
    /// Standard output, whole or without its middle.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Elapsed time.
    pub duration: Duration,
    /// Time that counts.
    pub counted: Duration,
    /// Processor time of all its processes.
    pub cpu: Duration,
    /// The most memory that one of its processes held.
    pub memory_bytes: u64,
}

/// A running worker; ended with the value.
#[derive(Debug)]
pub(super) struct Worker {
    pid: Pid,
    handle: Option<OwnedFd>,
    control: OwnedFd,
    /// Only where it sees the file system of the host.
    place: Option<Scratch>,
    group: Option<Group>,
    /// What it prints itself.
    output: std::fs::File,
    containment: Arc<Containment>,
    greeting: String,
    walls: Walls,
    jobs: u64,
    /// Processes that were ended for want of memory so far.
    memory_kills: u64,
    /// Processor time of all jobs so far.
    reaped: Duration,
    /// It is not to get another job.
    is_spent: bool,
}

/// Starts a process on a thread that does not end before the process does; see [`super::pool`].
pub(super) type Spawn<'a> = dyn Fn(std::process::Command) -> io::Result<std::process::Child> + 'a;

impl Worker {
    pub(super) fn start(
        blueprint: &Blueprint,
        spawn: &Spawn<'_>,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let failed = |step: &'static str| move |source: io::Error| Error::Worker { step, source };
        let place = Scratch::new(&blueprint.place).map_err(|(path, source)| Error::Place { path, source })?;
        let plan = Plan {
            argv: blueprint.argv.clone(),
            env: blueprint.env.clone(),
            place: place.path().to_owned(),
            readable: blueprint.readable.clone(),
            walls: blueprint.walls,
            avoid: blueprint.avoid.clone(),
            owner: std::process::id().cast_signed(),
            keeps_control: true,
        };
        let plan =
            serde_json::to_string(&plan).map_err(io::Error::from).map_err(failed("writing its plan"))?;
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| failed("making its control socket")(errno.into()))?;
        let output = rustix::fs::memfd_create("testgrad-worker", MemfdFlags::CLOEXEC)
            .map_err(|errno| failed("keeping what it prints")(errno.into()))?;
        let both = output.try_clone().and_then(|out| Ok((out, output.try_clone()?)));
        let (out, err) = both.map_err(failed("keeping what it prints"))?;
        let mut words = blueprint.launcher.iter();
        let mut command =
            std::process::Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
        command
            .args(words)
            .arg(plan)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err))
            .current_dir("/")
            .env_clear();
        let launcher = spawn(command).map_err(failed("starting its launcher"))?;
        let mut start = Start { launcher, pid: None, layers: None };
        let greeting = start.hear(&control, is_cancelled);
        let _ = start.launcher.kill();
        let _ = start.launcher.wait();
        let Some(pid) = start.pid else {
            return Err(greeting.err().unwrap_or(Error::Lost { words: "it did not start".to_owned() }));
        };
        let mut worker = Self {
            pid,
            handle: pidfd_open(pid, PidfdFlags::empty()).ok(),
            control,
            place: Some(place),
            group: None,
            output: output.into(),
            containment: Arc::default(),
            greeting: String::new(),
            walls: blueprint.walls,
            jobs: 0,
            memory_kills: 0,
            reaped: Duration::ZERO,
            is_spent: false,
        };
        worker.greeting = greeting.map_err(|error| worker.explained(error))?;
        let mut containment = start.layers.unwrap_or_default();
        worker.join_group(&mut containment, &blueprint.avoid);
        if containment.is_enforced("mount") {
            // It lives in a root of its own, which hung there only until it moved in.
            worker.place = None;
        }
        worker.containment = Arc::new(containment);
        Ok(worker)
    }

    /// Holds the memory of all processes together, where the system lets us.
    fn join_group(&mut self, containment: &mut Containment, avoid: &[String]) {
        let has = |name: &str| !avoid.iter().any(|avoided| avoided == name);
        let group = Group::around(self.pid.as_raw_nonzero().get(), has("memory"), has("processes"));
        if group.limit_memory(self.walls.memory_bytes) {
            containment.set("memory", LayerStatus::Enforced, "a control group for all processes together");
        }
        if group.limit_processes(self.walls.processes.saturating_add(1)) {
            containment.set("processes", LayerStatus::Enforced, "counted by a control group");
        }
        self.group = Some(group);
    }

    pub(super) fn containment(&self) -> &Arc<Containment> {
        &self.containment
    }

    /// How many processes of all its jobs the kernel has ended for want of memory.
    fn memory_kills_now(&self) -> u64 {
        self.group.as_ref().map_or(0, Group::memory_kills)
    }

    /// What the worker said when it was ready.
    pub(super) fn greeting(&self) -> &str {
        &self.greeting
    }

    /// Whether it may get another job. One that waits says nothing: if there is something to read, it has ended.
    pub(super) fn is_usable(&self) -> bool {
        !self.is_spent && self.jobs < MOST_JOBS && !is_readable(self.control.as_fd(), Duration::ZERO)
    }

    /// Does a job. Afterwards nothing is left of it.
    pub(super) fn run(
        &mut self,
        job: &Job<'_>,
        relay: Option<Relay>,
        watch: &mut Watcher<'_>,
    ) -> Result<Done, Error> {
        self.jobs += 1;
        let was_spent = std::mem::replace(&mut self.is_spent, true);
        let mut running = Running::begin(self, job, relay)?;
        let ended = running.attend(self, job, watch)?;
        running.drain(watch);
        let kills = self.memory_kills_now();
        let is_oom = kills > std::mem::replace(&mut self.memory_kills, kills);
        let end = match (&running.stop, &ended) {
            (Some((end, _)), _) => *end,
            (None, Some(_)) if is_oom => End::OutOfMemory, // also when it went on without what was killed
            (None, Some(ended)) => End::Exited(Some(ExitStatus::from_raw(ended.status))),
            (None, None) if is_oom => End::OutOfMemory,
            (None, None) => return Err(self.explained(Error::Lost { words: "it ended".to_owned() })),
        };
        self.reaped += ended.as_ref().map(|ended| ended.cpu).unwrap_or_default();
        self.is_spent = was_spent || ended.as_ref().is_none_or(|ended| !ended.is_clean);
        Ok(Done {
            end,
            stdout: running.stdout.take_bytes(),
            stderr: running.stderr.take_bytes(),
            duration: running.clock.elapsed(),
            counted: running.clock.counted(),
            cpu: ended.as_ref().map(|ended| ended.cpu).unwrap_or(running.cpu),
            memory_bytes: ended.map(|ended| ended.memory_bytes).unwrap_or_default(),
        })
    }

    /// Ends it and all below it at once.
    fn kill(&self) {
        match &self.handle {
            Some(handle) => drop(pidfd_send_signal(handle, Signal::KILL)),
            None => super::process::end_all(self.pid, super::launch::NO_MARKER),
        }
    }

    /// An error with what the worker printed last.
    fn explained(&mut self, error: Error) -> Error {
        let Error::Lost { words } = error else { return error };
        let mut printed = String::new();
        let from = self.output.metadata().map_or(0, |about| about.len().saturating_sub(4000));
        let read = self.output.seek(io::SeekFrom::Start(from)).and_then(|_| {
            let mut bytes = Vec::new();
            self.output.read_to_end(&mut bytes)?;
            printed.push_str(&String::from_utf8_lossy(&bytes));
            Ok(())
        });
        if read.is_err() || printed.trim().is_empty() {
            return Error::Lost { words };
        }
        Error::Lost { words: format!("{words}: {}", printed.trim()) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.containment.is_enforced("pid") {
            // Nothing but its group holds what it started.
            super::process::end_all(self.pid, super::launch::NO_MARKER);
        }
        self.kill();
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// A worker that has not said yet that it is ready.
struct Start {
    launcher: std::process::Child,
    pid: Option<Pid>,
    layers: Option<Containment>,
}

impl Start {
    /// Hears what the launcher and then the worker say, until it is ready.
    fn hear(&mut self, control: &OwnedFd, is_cancelled: &mut dyn FnMut() -> bool) -> Result<String, Error> {
        let patience = Instant::now() + START;
        let mut buffer = vec![0; MESSAGE_BYTES];
        loop {
            if is_cancelled() {
                return Err(Error::Cancelled);
            }
            if Instant::now() >= patience {
                let words = format!("it was not ready after {} s", START.as_secs());
                return Err(Error::Lost { words });
            }
            if !is_readable(control.as_fd(), TICK) {
                continue;
            }
            let count = match recv(control, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((_, count)) if count > 0 => count,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                _ => return Err(Error::Lost { words: "it ended before it was ready".to_owned() }),
            };
            let message = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default());
            let (word, rest) = message.trim_end().split_once(' ').unwrap_or((message.trim_end(), ""));
            match word {
                "pid" => self.pid = rest.parse().ok().and_then(Pid::from_raw),
                "layers" => self.layers = serde_json::from_str(rest).ok(),
                "failed" => return Err(Error::Build { words: rest.to_owned() }),
                "ready" if self.pid.is_some() && self.layers.is_some() => return Ok(rest.to_owned()),
                _ => {}
            }
        }
    }
}

/// What the worker says of a job's end.
#[derive(Debug)]
struct Ended {
    status: i32,
    cpu: Duration,
    memory_bytes: u64,
    /// Nothing is left of the job in the directories that it could write to.
    is_clean: bool,
}

impl Ended {
    /// Reads `ended STATUS CPU_US RSS_KIB CLEAN`.
    fn parse(message: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?;
        let mut words = text.split_ascii_whitespace();
        (words.next()? == "ended").then_some(())?;
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(Self {
            status: i32::try_from(number()?).ok()?,
            cpu: Duration::from_micros(number()?),
            memory_bytes: number()? << 10,
            is_clean: number()? == 1,
        })
    }
}

/// A job that is under way.
struct Running<'a> {
    stdout: Kept,
    stderr: Kept,
    report: Lines,
    /// What its child has not read yet.
    unsent: Vec<&'a [u8]>,
    clock: Clock,
    /// Processor time that the worker's reaped children had used before.
    cpu_before: Duration,
    cpu: Duration,
    relay: Option<Relay>,
    /// Why it was ended, and when.
    stop: Option<(End, Instant)>,
}

impl<'a> Running<'a> {
    fn begin(worker: &Worker, job: &Job<'a>, relay: Option<Relay>) -> Result<Self, Error> {
        let failed = |step: &'static str| move |errno: Errno| Error::Worker { step, source: errno.into() };
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(failed("making a pipe"));
        let ((stdout, stdout_end), (stderr, stderr_end)) = (pipe()?, pipe()?);
        let (report, report_end) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(failed("making a socket"))?;
        for end in [&stdout, &stderr, &report] {
            rustix::io::ioctl_fionbio(end, true).map_err(failed("making a pipe"))?;
        }
        let stdin =
            standard_input(job.stdin).map_err(|source| Error::Worker { step: "giving it input", source })?;
        let clock = Clock::start();
        let mut ends = vec![stdin.as_fd(), stdout_end.as_fd(), stderr_end.as_fd(), report_end.as_fd()];
        ends.extend(&job.more);
        send(&worker.control, b"run", &ends).map_err(failed("telling it what to do"))?;
        let mut running = Self {
            stdout: Kept::new(job.output_bytes),
            stderr: Kept::new(job.output_bytes),
            report: Lines::new(job.report_bytes, job.line_bytes),
            unsent: job.request.into_iter().filter(|part| !part.is_empty()).rev().collect(),
            clock,
            cpu_before: worker.reaped,
            cpu: Duration::ZERO,
            relay,
            stop: None,
        };
        running.stdout.pipe = Some(stdout);
        running.stderr.pipe = Some(stderr);
        running.report.pipe = Some(report);
        Ok(running)
    }

    /// Reads, writes and watches until the worker says that the job has ended; `None` when the worker has.
    fn attend(
        &mut self,
        worker: &Worker,
        job: &Job<'_>,
        watch: &mut Watcher<'_>,
    ) -> Result<Option<Ended>, Error> {
        let root = worker.pid.as_raw_nonzero().get();
        let mut next_tick = Instant::now() + TICK;
        loop {
            let time = next_tick.saturating_duration_since(Instant::now());
            let Ready { relay, control: can_hear, others } = self.wait(worker, time)?;
            if relay {
                self.pass_on(worker);
                if !can_hear && !others && self.stop.is_none() && Instant::now() < next_tick {
                    continue; // the usual case, and one that a test waits for
                }
            }
            self.send_request();
            self.stdout.read();
            self.stderr.read();
            let mut counted = self.counted(job);
            if self.report.read(watch, counted).is_break() {
                self.end(worker, End::Stopped);
            }
            if self.report.is_flooded()
                || (job.ends_on_flood && (self.stdout.is_cut() || self.stderr.is_cut()))
            {
                self.end(worker, End::Flooded);
            }
            if can_hear {
                match heard(worker) {
                    Heard::Ended(ended) => return Ok(Some(ended)),
                    Heard::Nothing => {}
                    Heard::Gone => return Ok(None),
                }
            }
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                if self.stop.is_some() {
                    usage::kill_children(root); // it may not have been forked the first time
                }
                let look = usage::look(root);
                let waited = self.clock.allow_for(&look, now);
                if let Waits::Told(sum) = job.waits {
                    let waited = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
                    sum.fetch_add(waited, Ordering::Relaxed);
                }
                self.cpu = look.cpu.saturating_sub(self.cpu_before);
                counted = self.counted(job);
                let is_too_big = look.memory_bytes > worker.walls.memory_bytes
                    && !worker.containment.is_enforced("memory");
                if is_too_big || worker.memory_kills_now() > worker.memory_kills {
                    self.end(worker, End::OutOfMemory);
                } else if counted >= job.timeout || self.clock.elapsed() >= job.timeout * BACKSTOP {
                    self.end(worker, End::TimedOut);
                } else if self.cpu >= job.cpu {
                    self.end(worker, End::OutOfCpu);
                } else if watch(Event::Tick(counted)).is_break() {
                    self.end(worker, End::Stopped);
                }
            } else if counted >= job.timeout && self.stop.is_none() {
                next_tick = now; // look before it is judged
            }
            if self.stop.is_some_and(|(_, since)| since.elapsed() >= PATIENCE) {
                worker.kill();
            }
        }
    }

    /// The time of the job that counts.
    fn counted(&self, job: &Job<'_>) -> Duration {
        let counted = self.clock.counted();
        match job.waits {
            Waits::TakenOff(sum) => {
                counted.saturating_sub(Duration::from_micros(sum.load(Ordering::Relaxed)))
            }
            _ => counted,
        }
    }

    /// Passes on what the job says to another process.
    fn pass_on(&mut self, worker: &Worker) {
        let Some(relay) = &mut self.relay else { return };
        relay.pump();
        let (is_broken, is_over) = (relay.is_broken(), relay.is_over());
        if is_broken {
            self.end(worker, End::Garbled);
        } else if is_over {
            self.end(worker, End::Stopped);
        }
    }

    /// Sleeps until something happens; what it is.
    fn wait(&self, worker: &Worker, time: Duration) -> Result<Ready, Error> {
        let mut fds = vec![PollFd::new(&worker.control, PollFlags::IN)];
        if let Some(report) = &self.report.pipe {
            let wants = if self.unsent.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            fds.push(PollFd::new(report, wants));
        }
        fds.extend(
            [&self.stdout.pipe, &self.stderr.pipe]
                .into_iter()
                .flatten()
                .map(|p| PollFd::new(p, PollFlags::IN)),
        );
        let own = fds.len();
        fds.extend(self.relay.iter().flat_map(Relay::interests));
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {
                let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
                let control = ready.next().unwrap_or_default();
                let others = ready.by_ref().take(own - 1).fold(false, |any, one| any | one);
                Ok(Ready { control, others, relay: ready.any(|ready| ready) })
            }
            Err(errno) => Err(Error::Worker { step: "waiting for it", source: errno.into() }),
        }
    }

    fn send_request(&mut self) {
        let Some(socket) = &self.report.pipe else { return };
        while let Some(part) = self.unsent.last_mut() {
            match rustix::net::send(socket, part, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) if count >= part.len() => drop(self.unsent.pop()),
                Ok(count) => *part = part.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.unsent.clear(), // its child has closed the socket, and will be heard of
            }
        }
    }

    /// Ends the job: its child is killed, and the worker ends the rest.
    fn end(&mut self, worker: &Worker, why: End) {
        if self.stop.is_none() {
            self.stop = Some((why, Instant::now()));
            usage::kill_children(worker.pid.as_raw_nonzero().get());
        }
    }

    /// Takes what is still in the pipes; nobody writes any more.
    fn drain(&mut self, watch: &mut Watcher<'_>) {
        self.stdout.read();
        self.stderr.read();
        let _ = self.report.read(watch, self.clock.counted());
        if let Some(relay) = &mut self.relay {
            relay.finish();
        }
    }
}

/// Who has something to say.
struct Ready {
    /// The worker.
    control: bool,
    /// The job itself.
    others: bool,
    /// The job, to another process, which may also have ended.
    relay: bool,
}

enum Heard {
    Ended(Ended),
    Nothing,
    Gone,
}

fn heard(worker: &Worker) -> Heard {
    let mut buffer = [0; 256];
    match recv(&worker.control, &mut buffer, RecvFlags::DONTWAIT) {
        Ok((_, 0)) => Heard::Gone,
        Ok((_, count)) => {
            Ended::parse(buffer.get(..count).unwrap_or_default()).map_or(Heard::Nothing, Heard::Ended)
        }
        Err(Errno::INTR | Errno::AGAIN) => Heard::Nothing,
        Err(_) => Heard::Gone,
    }
}

fn is_readable(fd: BorrowedFd<'_>, time: Duration) -> bool {
    let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    poll(&mut fds, Some(&time)).is_ok_and(|count| count > 0)
}

/// A file with this content, which lives nowhere.
fn standard_input(bytes: &[u8]) -> io::Result<OwnedFd> {
    if bytes.is_empty() {
        return Ok(std::fs::File::open("/dev/null")?.into());
    }
    let mut file = std::fs::File::from(rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Sends one message with descriptors.
fn send(control: &OwnedFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(control, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_job_is_read() {
        let ended = Ended::parse(b"ended 9 1500 2048 0").unwrap();
        assert_eq!((ended.status, ended.cpu, ended.memory_bytes), (9, Duration::from_micros(1500), 2 << 20));
        assert!(!ended.is_clean);
        for broken in ["", "ended", "ended 1 2", "ended x 1 2 3", "kill 1 2 3 4", "ended -1 2 3 4"] {
            assert!(Ended::parse(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
