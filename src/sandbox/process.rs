//! One child process from its start to the end of its last descendant: spawn, read, time out, kill.
//!
//! Nothing here waits for the end of a pipe, since a descendant may hold it, and the child is reaped last, so
//! that its number cannot mean another process while we signal it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid, getrlimit, kill_process,
    kill_process_group, setrlimit, setsid, waitid,
};

use super::descendants::{self, MARKER};
use super::stream::{Kept, Lines};
use super::{Command, End, Error, Event, Output, Watcher};

const TICK: Duration = Duration::from_millis(20);
const MAX_LINE_BYTES: usize = 1 << 20;

/// Runs a program to its end, or to the end of its time, and ends everything it started.
pub fn run(command: &Command, watch: &mut Watcher<'_>) -> Result<Output, Error> {
    let mut running = Running::start(command)?;
    let ended = running.attend(watch);
    running.end_all();
    let end = ended.map_err(|(step, errno)| Error::Watch {
        program: command.program.clone(),
        step,
        source: errno.into(),
    })?;
    running.drain(watch);
    let status = running.child.wait().ok();
    running.is_reaped = true;
    Ok(Output {
        end: if matches!(end, End::Exited(_)) { End::Exited(status) } else { end },
        stdout: running.stdout.take_text(),
        stderr: running.stderr.take_text(),
        duration: running.started.elapsed(),
    })
}

/// A child that is running or not yet reaped.
struct Running {
    child: Child,
    pid: Pid,
    marker: String,
    stdout: Kept,
    stderr: Kept,
    report: Lines,
    started: Instant,
    timeout: Duration,
    /// Its number may mean another process by now.
    is_reaped: bool,
}

impl Running {
    fn start(command: &Command) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Start {
            program: command.program.clone(),
            directory: command.directory.clone(),
            source,
        };
        let (report, report_end) = io::pipe().map_err(failed)?;
        // Not one of the first three, which the child replaces.
        let report_end = fcntl_dupfd_cloexec(&report_end, 3).map_err(|errno| failed(errno.into()))?;
        let marker = marker();
        let mut spawn = std::process::Command::new(&command.program);
        spawn
            .args(&command.args)
            .arg(report_end.as_raw_fd().to_string())
            .current_dir(&command.directory)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .env(MARKER, &marker)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let parent = getpid();
        let file_size = file_size(command.bounds.file_bytes);
        let prepare = move || prepare_child(parent, file_size, &report_end);
        // SAFETY: `prepare` runs in the forked child before exec; it makes system calls on values copied
        // before the fork and neither allocates nor takes a lock.
        unsafe { spawn.pre_exec(prepare) };
        let started = Instant::now();
        let mut child = spawn.spawn().map_err(failed)?;
        drop(spawn); // closes our copy of the report's writing end
        let pipes = (child.stdout.take(), child.stderr.take());
        let mut running = Self {
            pid: Pid::from_child(&child),
            child,
            marker,
            stdout: Kept::new(command.bounds.output_bytes),
            stderr: Kept::new(command.bounds.output_bytes),
            report: Lines::new(command.bounds.report_bytes, MAX_LINE_BYTES),
            started,
            timeout: command.bounds.timeout,
            is_reaped: false,
        };
        running.stdout.pipe = pipes.0.map(OwnedFd::from);
        running.stderr.pipe = pipes.1.map(OwnedFd::from);
        running.report.pipe = Some(report.into());
        for pipe in [&running.stdout.pipe, &running.stderr.pipe, &running.report.pipe].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|errno| failed(errno.into()))?;
        }
        Ok(running)
    }

    /// Reads until the child has exited, its time is up, or the watcher has had enough.
    fn attend(&mut self, watch: &mut Watcher<'_>) -> Result<End, (&'static str, Errno)> {
        let deadline = self.started + self.timeout;
        let exit = exit_descriptor(self.pid);
        let mut next_tick = self.started + TICK;
        loop {
            // What came in time counts, however late we look: the time is judged after a last look.
            let now = Instant::now();
            let time = next_tick.min(deadline).saturating_duration_since(now);
            self.wait(exit.as_ref(), time).map_err(|errno| ("waiting for output", errno))?;
            let exited = self.has_exited();
            self.stdout.read();
            self.stderr.read();
            if self.report.read(watch, self.started.elapsed()).is_break() {
                return Ok(End::Stopped);
            }
            if self.report.is_flooded() {
                return Ok(End::Flooded);
            }
            if exited {
                return Ok(End::Exited(None));
            }
            if now >= deadline {
                return Ok(End::TimedOut);
            }
            if now >= next_tick {
                next_tick = now + TICK;
                if watch(Event::Tick(self.started.elapsed())).is_break() {
                    return Ok(End::Stopped);
                }
            }
        }
    }

    /// Whether the child has exited; it stays to be reaped, unless somebody else in this program has done so.
    fn has_exited(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(status) => status.is_some(),
            Err(Errno::INTR) => false,
            Err(_) => {
                self.is_reaped = true;
                true
            }
        }
    }

    /// Sleeps until there is something to read, the child exits, or the time is over.
    fn wait(&self, exit: Option<&OwnedFd>, time: Duration) -> Result<(), Errno> {
        let pipes = [&self.stdout.pipe, &self.stderr.pipe, &self.report.pipe];
        let mut descriptors: Vec<PollFd<'_>> =
            pipes.into_iter().flatten().chain(exit).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut descriptors, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Ends the child and everything it started.
    ///
    /// The child adopts its orphaned descendants (see `prepare_child`), so it is only stopped, not ended,
    /// while they are looked for.
    fn end_all(&self) {
        if self.is_reaped {
            descendants::end_all(self.pid, &self.marker);
        } else {
            end_all(self.pid, &self.marker);
        }
    }

    /// Takes what is still in the pipes.
    fn drain(&mut self, watch: &mut Watcher<'_>) {
        self.stdout.read();
        self.stderr.read();
        let _ = self.report.read(watch, self.started.elapsed());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.end_all();
            let _ = self.child.wait();
        }
    }
}

/// Ends a child that nobody has reaped yet and everything it started; all but the child are gone then.
pub(super) fn end_all(pid: Pid, marker: &str) {
    let _ = kill_process(pid, Signal::STOP);
    descendants::end_all(pid, marker);
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = kill_process(pid, Signal::KILL); // in case it had no time to form its group
}

/// What happens in the child between fork and exec.
fn prepare_child(parent: Pid, file_size: Rlimit, report_end: &OwnedFd) -> io::Result<()> {
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        // It dies with the thread that started it, which is the one that waits for it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        rustix::process::set_child_subreaper(Some(getpid()))?;
    }
    if getppid() != Some(parent) {
        return Err(Errno::SRCH.into()); // the parent was gone before it could be the parent
    }
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    setrlimit(Resource::Fsize, file_size)?;
    fcntl_setfd(report_end, FdFlags::empty())?;
    Ok(())
}

/// The wanted limit, or the one in force where that is lower.
fn file_size(wanted: u64) -> Rlimit {
    let bytes = getrlimit(Resource::Fsize).maximum.map_or(wanted, |maximum| maximum.min(wanted));
    Rlimit { current: Some(bytes), maximum: Some(bytes) }
}

/// A word no other run has.
fn marker() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{}-{now}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A descriptor that becomes readable when the process exits, where the kernel has such.
fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    return rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command as Plain;

    use std::ops::ControlFlow;

    use super::*;
    use crate::sandbox::Bounds;

    fn shell(script: &str, timeout_ms: u64) -> Command {
        Command {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), script.into()], // the descriptor's number becomes $0
            directory: PathBuf::from("/"),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            bounds: Bounds::with_timeout(Duration::from_millis(timeout_ms)),
        }
    }

    fn lines(command: &Command) -> (Output, Vec<String>) {
        let mut lines = Vec::new();
        let output = run(command, &mut |event| {
            if let Event::Line(line, _) = event {
                lines.push(String::from_utf8_lossy(line).into_owned());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        (output, lines)
    }

    #[cfg(target_os = "linux")]
    fn is_running(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    #[test]
    fn output_and_report_come_apart() {
        let (output, lines) =
            lines(&shell("echo out; echo err >&2; eval \"printf 'a\\nb\\nc' >/dev/fd/$0\"; exit 3", 5000));
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(lines, ["a", "b"]);
        assert!(matches!(output.end, End::Exited(Some(status)) if status.code() == Some(3)));
    }

    #[test]
    fn the_environment_is_exact() {
        let (output, _) = lines(&shell("/usr/bin/env | /usr/bin/cut -d= -f1 | /usr/bin/sort", 5000));
        assert_eq!(output.stdout, "PATH\nPWD\nTESTGRAD_RUN\n");
    }

    #[test]
    fn a_program_that_hangs_costs_its_time_limit() {
        let (output, _) = lines(&shell("trap '' TERM INT; echo before; while :; do /bin/sleep 1; done", 200));
        assert_eq!(output.end, End::TimedOut);
        assert_eq!(output.stdout, "before\n");
        assert!(output.duration < Duration::from_millis(800), "{:?}", output.duration);
    }

    #[test]
    fn a_watcher_can_stop_it() {
        let mut ticks = 0;
        let output = run(&shell("/bin/sleep 60", 60_000), &mut |_| {
            ticks += 1;
            if ticks == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert_eq!(output.end, End::Stopped);
        assert!(output.duration < Duration::from_secs(1), "{:?}", output.duration);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_held_by_a_grandchild_is_not_waited_for() {
        let (output, lines) = lines(&shell("/bin/sleep 60 & eval \"echo $! >/dev/fd/$0\"", 30_000));
        assert!(output.duration < Duration::from_secs(2), "{:?}", output.duration);
        assert!(!is_running(&lines[0]));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn descendants_that_left_the_session_are_ended() {
        let deaf = r#"trap \"\" TERM HUP; echo \$\$; while :; do /bin/sleep 1; done"#;
        let script = format!(r#"eval "/usr/bin/setsid /bin/sh -c '{deaf}' >/dev/fd/$0 &"; /bin/sleep 0.3"#);
        let (_, lines) = lines(&shell(&script, 5000));
        assert_eq!(lines.len(), 1);
        assert!(!is_running(&lines[0]), "{lines:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn descendants_without_our_mark_are_ended_while_their_parent_lives() {
        let nameless = r"env -i /usr/bin/setsid /bin/sh -c 'echo \$\$; exec /bin/sleep 60'";
        let (_, lines) = lines(&shell(&format!(r#"eval "{nameless} >/dev/fd/$0 &"; /bin/sleep 60"#), 400));
        assert!(!is_running(&lines[0]), "{lines:?}");
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let (output, _) = lines(&shell(
            "echo first; /usr/bin/head -c 3000000 /dev/zero | /usr/bin/tr '\\0' x; echo last",
            20_000,
        ));
        assert!(output.stdout.starts_with("first\nxxx") && output.stdout.ends_with("xlast\n"));
        assert!(
            output.stdout.contains("... 2934475 bytes left out ..."),
            "{}",
            &output.stdout[32_700..32_900]
        );
    }

    #[test]
    fn a_report_that_is_too_long_ends_the_program() {
        let mut command = shell("eval \"/usr/bin/yes >/dev/fd/$0\"", 20_000);
        command.bounds.report_bytes = 100_000;
        let (output, lines) = lines(&command);
        assert_eq!(output.end, End::Flooded);
        assert!(lines.len() <= 50_000, "{}", lines.len());
    }

    #[test]
    fn a_line_that_is_too_long_is_told_of_and_the_next_one_is_heard() {
        let script =
            "eval \"/usr/bin/head -c 3000000 /dev/zero >/dev/fd/$0; printf '\\nnext\\n' >/dev/fd/$0\"";
        let mut heard = Vec::new();
        run(&shell(script, 20_000), &mut |event| {
            match event {
                Event::Line(line, _) => heard.push(String::from_utf8_lossy(line).into_owned()),
                Event::LongLine => heard.push("too long".to_owned()),
                Event::Tick(_) => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(heard, ["too long", "next"]);
    }

    #[test]
    fn what_came_in_time_counts_however_late_it_is_read() {
        let mut lines = 0;
        let output = run(&shell("/bin/sleep 0.1; eval \"echo late >/dev/fd/$0\"", 300), &mut |event| {
            match event {
                Event::Line(..) => lines += 1,
                _ => std::thread::sleep(Duration::from_millis(500)),
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(matches!(output.end, End::Exited(_)), "{:?}", output.end);
        assert_eq!(lines, 1);
    }

    #[test]
    fn a_file_cannot_grow_without_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut command =
            shell(&format!("/usr/bin/head -c 5000000 /dev/zero > {}", file.path().display()), 5000);
        command.bounds.file_bytes = 1_000_000;
        lines(&command);
        assert_eq!(file.path().metadata().unwrap().len(), 1_000_000);
    }

    #[test]
    fn a_missing_program_is_named() {
        let mut command = shell("", 1000);
        command.program = "/no/such/program".into();
        let error = run(&command, &mut |_| ControlFlow::Continue(())).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/program: cannot be started in /: "), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn no_descriptor_is_left_open() {
        let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        lines(&shell("exit 0", 1000));
        let before = count();
        for _ in 0..20 {
            lines(&shell("exit 0", 1000));
        }
        // Other tests run beside this one and have some open.
        assert!(count() <= before + 8, "{} descriptors, {before} before", count());
    }

    #[test]
    fn processes_of_others_are_left_alone() {
        let mut bystander = Plain::new("/bin/sleep").arg("60").spawn().unwrap();
        lines(&shell("exit 0", 1000));
        assert!(bystander.try_wait().unwrap().is_none());
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}
