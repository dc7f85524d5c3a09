//! Builds the sandbox of one worker from the inside, and becomes the worker.
//!
//! A fresh interpreter runs [`launch`] and nothing else, so the user's process is never forked. It makes
//! namespaces, a root of its own, limits and filters, notes what the kernel refused, and executes the worker,
//! which is left a direct child of the user's process.

use std::ffi::{CString, OsStr};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};

use super::containment::{Containment, LayerStatus};
use super::{landlock, mount, rlimit, seccomp};

use LayerStatus::{Enforced, Partial, Unavailable};

/// What a worker may use as long as it lives, beyond what is counted for each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Walls {
    /// Memory of all its processes together.
    pub memory_bytes: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Size of all files together.
    pub scratch_bytes: u64,
    /// Descriptors of one process.
    pub open_files: u64,
    /// The main thread's stack.
    pub stack_bytes: u64,
}

/// All that the launcher is told.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The interpreter and its arguments; one more is added, what the worker has to know of its sandbox.
    pub argv: Vec<String>,
    /// Its whole environment but for `HOME` and `TMPDIR`.
    pub env: Vec<(String, String)>,
    /// An empty directory: the mount point of the new root, or where the worker writes without one.
    pub place: PathBuf,
    /// What may be read.
    pub readable: Vec<PathBuf>,
    /// What it may use.
    pub walls: Walls,
    /// Files to write our number to.
    pub cgroups: Vec<PathBuf>,
    /// What is said of the cgroup.
    pub cgroup_layer: (LayerStatus, String),
    /// Mechanisms not to use.
    pub avoid: Vec<String>,
    /// The process that all this is for.
    pub owner: i32,
}

/// What the worker is told of its sandbox, as its last argument.
#[derive(Debug, Serialize)]
struct Told {
    work: PathBuf,
    tmp: PathBuf,
    home: PathBuf,
    /// Directories to be emptied after each run.
    emptied: Vec<PathBuf>,
    /// Whether it is the first process of a namespace, so that signal −1 ends all others.
    is_init: bool,
    /// A filter that each candidate installs, in hexadecimal; empty for none.
    filter: String,
}

/// Why a sandbox could not be built.
#[derive(Debug)]
pub(super) struct Failed {
    step: String,
    source: io::Error,
}

impl Failed {
    pub(super) fn at(step: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let step = step.into();
        move |source| Self { step, source }
    }
}

/// Becomes the worker that the plan describes; comes back only to end this process.
///
/// Standard input is the control socket; over it come two more descriptors.
pub fn launch(plan: &str) -> i32 {
    // SAFETY: this process was started with a socket as its standard input, and nothing else uses it.
    let control = unsafe { OwnedFd::from_raw_fd(0) };
    let outcome = match serde_json::from_str(plan) {
        Ok(plan) => Launcher::new(plan).run(&control),
        Err(error) => Err(Failed { step: "reading the plan".to_owned(), source: error.into() }),
    };
    if let Err(Failed { step, source }) = outcome {
        say(&control, &format!("failed {step}: {source}"));
    }
    let _ = control.into_raw_fd();
    1
}

fn say(control: &OwnedFd, line: &str) {
    let line = line.replace('\n', " ") + "\n";
    let _ = rustix::io::write(control, line.as_bytes());
}

struct Launcher {
    plan: Plan,
    is_root: bool,
    containment: Containment,
    flags: UnshareFlags,
}

impl Launcher {
    fn new(plan: Plan) -> Self {
        let mut containment = Containment::default();
        containment.set("cgroup", plan.cgroup_layer.0, plan.cgroup_layer.1.clone());
        let is_root = rustix::process::geteuid().is_root();
        Self { plan, is_root, containment, flags: UnshareFlags::empty() }
    }

    fn run(mut self, control: &OwnedFd) -> Result<(), Failed> {
        let (request, report) = receive_two(control).map_err(Failed::at("receiving descriptors"))?;
        arrange(request, report).map_err(Failed::at("arranging descriptors"))?;
        self.join_cgroups();
        self.unshare();
        // SAFETY: this process has one thread. The child shares nothing with it, runs on a copy of this stack,
        // and either executes another program or exits.
        let pid = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PARENT | libc::SIGCHLD, 0, 0, 0, 0) };
        match pid {
            -1 => Err(Failed::at("starting the worker")(io::Error::last_os_error())),
            0 => {
                let Err(Failed { step, source }) = self.become_worker(control);
                say(control, &format!("failed {step}: {source}"));
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(1) }
            }
            pid => {
                say(control, &format!("pid {pid}"));
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(0) }
            }
        }
    }

    fn wants(&mut self, name: &str) -> bool {
        let is_wanted = !self.plan.avoid.iter().any(|avoided| avoided == name);
        if !is_wanted {
            self.containment.set(name, Unavailable, "switched off by the caller");
        }
        is_wanted
    }

    fn join_cgroups(&mut self) {
        for path in std::mem::take(&mut self.plan.cgroups) {
            if let Err(error) = std::fs::write(&path, std::process::id().to_string()) {
                self.containment.set("cgroup", Unavailable, format!("{}: {error}", path.display()));
            }
        }
    }

    /// Makes every namespace that can be made, each by itself, so that one refusal costs one layer.
    fn unshare(&mut self) {
        let names = [
            ("mount", UnshareFlags::NEWNS),
            ("pid", UnshareFlags::NEWPID),
            ("network", UnshareFlags::NEWNET),
            ("ipc", UnshareFlags::NEWIPC),
            ("uts", UnshareFlags::NEWUTS),
        ];
        if !self.is_root && self.wants("user") {
            match own_user_namespace() {
                Ok(()) => {
                    self.containment.set("user", Enforced, "a namespace in which this user has no rights")
                }
                Err(error) => {
                    self.containment.set("user", Unavailable, format!("no user namespace: {error}"));
                }
            }
        }
        for (name, flag) in names {
            if !self.wants(name) {
                continue;
            }
            // SAFETY: this process has one thread and shares no descriptors with another one.
            match unsafe { unshare_unsafe(flag) } {
                Ok(()) => {
                    self.flags |= flag;
                    self.containment.set(name, Enforced, "a namespace of its own");
                }
                Err(errno) => self.containment.set(name, Unavailable, format!("no namespace: {errno}")),
            }
        }
    }

    /// What the child of the launcher does; it comes back only with an error.
    fn become_worker(mut self, control: &OwnedFd) -> Result<std::convert::Infallible, Failed> {
        let is_init = self.flags.contains(UnshareFlags::NEWPID);
        let told = self.lay_out(is_init)?;
        let spared = [self.plan.owner, rustix::process::getpid().as_raw_nonzero().get()];
        let filter = self.filter(is_init, &spared)?;
        let told = Told { filter, ..told };
        self.limit()?;
        self.drop_rights()?;
        self.close_off(&told)?;
        self.filter_calls()?;
        let layers = serde_json::to_string(&self.containment).map_err(io::Error::from);
        say(control, &format!("layers {}", layers.map_err(Failed::at("describing the sandbox"))?));
        self.execute(&told)
    }

    /// The root that the worker sees, or the directories that it writes to without one.
    fn lay_out(&mut self, is_init: bool) -> Result<Told, Failed> {
        if self.flags.contains(UnshareFlags::NEWNS) {
            match mount::own_root(
                &self.plan.place,
                &self.plan.readable,
                &self.plan.walls,
                is_init,
                self.spare_uid(),
            ) {
                Ok(has_proc) => {
                    if !has_proc {
                        self.containment.set("mount", Partial, "a root of its own, without /proc");
                    } else {
                        self.containment.set(
                            "mount",
                            Enforced,
                            "a root of its own with nothing of home in it",
                        );
                    }
                    self.containment.set("scratch", Enforced, "a file system of this size in memory");
                    let at = |name: &str| PathBuf::from(name);
                    let emptied = ["/work", "/tmp", "/home", "/dev/shm"].map(PathBuf::from).to_vec();
                    return Ok(Told {
                        work: at("/work"),
                        tmp: at("/tmp"),
                        home: at("/home"),
                        emptied,
                        is_init,
                        filter: String::new(),
                    });
                }
                Err(Failed { step, source }) => {
                    return Err(Failed {
                        step: format!("making a root ({step}); avoid=(\"mount\",) does without"),
                        source,
                    });
                }
            }
        }
        let place = self.plan.place.clone();
        self.containment.set("scratch", Partial, "each file has a greatest size, all together have none");
        let mut emptied = Vec::new();
        for name in ["work", "tmp", "home"] {
            let path = place.join(name);
            std::fs::create_dir(&path).map_err(Failed::at(format!("creating {}", path.display())))?;
            if let Some(uid) = self.spare_uid() {
                std::os::unix::fs::chown(&path, Some(uid), Some(uid))
                    .map_err(Failed::at(format!("giving away {}", path.display())))?;
            }
            emptied.push(path);
        }
        std::env::set_current_dir(place.join("work"))
            .map_err(Failed::at("entering the directory of the run"))?;
        Ok(Told {
            work: place.join("work"),
            tmp: place.join("tmp"),
            home: place.join("home"),
            emptied,
            is_init,
            filter: String::new(),
        })
    }

    /// A user that owns nothing, where root starts the worker and others may read what it needs.
    fn spare_uid(&self) -> Option<u32> {
        let is_usable = self.is_root && !self.plan.avoid.iter().any(|name| name == "user");
        let below = if self.flags.contains(UnshareFlags::NEWNS) { 1 } else { usize::MAX };
        (is_usable && self.plan.readable.iter().all(|path| is_open_to_all(path, below)))
            .then(|| 2_000_000_000 + std::process::id() % 1_000_000)
    }

    fn filter(&mut self, is_init: bool, spared: &[i32]) -> Result<String, Failed> {
        if is_init || self.plan.avoid.iter().any(|name| name == "seccomp") {
            return Ok(String::new());
        }
        let program = seccomp::group_filter(spared)
            .map_err(|error| Failed::at("building the filter of a group")(io::Error::other(error)))?;
        let bytes = program.iter().flat_map(|line| {
            let mut bytes = line.code.to_ne_bytes().to_vec();
            bytes.extend([line.jt, line.jf]);
            bytes.extend(line.k.to_ne_bytes());
            bytes
        });
        Ok(bytes.map(|byte| format!("{byte:02x}")).collect())
    }

    fn limit(&mut self) -> Result<(), Failed> {
        rlimit::set(&self.plan.walls).map_err(Failed::at("setting limits"))?;
        self.containment.set("rlimits", Enforced, "files, descriptors, stack, core, address space");
        Ok(())
    }

    fn drop_rights(&mut self) -> Result<(), Failed> {
        let spare = self.spare_uid();
        rights::drop_bounding_set();
        if let Some(uid) = spare {
            rights::become_user(uid).map_err(Failed::at(format!("becoming user {uid}")))?;
            self.containment.set("user", Enforced, format!("user {uid}, who owns nothing"));
        } else if self.is_root && self.containment.get("user").is_none() {
            self.containment.set("user", Partial, "root without rights: others may not read the interpreter");
        }
        rights::drop_capabilities().map_err(Failed::at("dropping capabilities"))?;
        self.containment.set("capabilities", Enforced, "none");
        let counts = spare.is_some() || !self.is_root;
        let in_cgroup = self.containment.is_enforced("cgroup");
        let (status, why) = match (counts, in_cgroup) {
            (_, true) => (Enforced, "counted by the cgroup"),
            (true, false) => (Enforced, "counted for its user"),
            (false, false) => (Unavailable, "the kernel does not count those of root"),
        };
        self.containment.set("processes", status, why);
        match in_cgroup {
            true => self.containment.set("memory", Enforced, "of all processes together, by the cgroup"),
            false => {
                let why = "the address space of each process; that of all together has no limit";
                self.containment.set("memory", Partial, why);
            }
        }
        rustix::thread::set_no_new_privs(true)
            .map_err(|errno| Failed::at("giving up new privileges")(errno.into()))?;
        self.containment.set("no_new_privs", Enforced, "no program gives rights back");
        let dies = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if self.flags.contains(UnshareFlags::NEWPID) {
            dies.map_err(|errno| Failed::at("tying the worker to its owner")(errno.into()))?;
        } else {
            // Its children would outlive it: it watches its owner itself, and ends them first.
            let _ = rustix::process::set_parent_process_death_signal(None);
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        }
        Ok(())
    }

    fn close_off(&mut self, told: &Told) -> Result<(), Failed> {
        if !self.wants("landlock") {
            return Ok(());
        }
        let has_root = self.flags.contains(UnshareFlags::NEWNS);
        let readable: Vec<&Path> = match has_root {
            true => vec![Path::new("/")],
            false => self.plan.readable.iter().map(PathBuf::as_path).collect(),
        };
        let (status, why) = landlock::restrict(&readable, &told.emptied)
            .map_err(|error| Failed::at("closing the file system")(io::Error::other(error)))?;
        self.containment.set("landlock", status, why);
        if !self.flags.contains(UnshareFlags::NEWNET) && self.wants("seccomp") {
            let why = "not a namespace: system calls refuse internet sockets, landlock TCP";
            self.containment.set("network", Partial, why);
        }
        Ok(())
    }

    fn filter_calls(&mut self) -> Result<(), Failed> {
        let failed = |error: io::Error| Failed { step: "filtering system calls".to_owned(), source: error };
        if !self.wants("seccomp") {
            return Ok(());
        }
        let place = match self.flags.contains(UnshareFlags::NEWNET) {
            true => seccomp::Place::WithNetworkNamespace,
            false => seccomp::Place::WithHostNetwork,
        };
        for filter in seccomp::filters(place).map_err(|error| failed(io::Error::other(error)))? {
            seccompiler::apply_filter(&filter).map_err(|error| failed(io::Error::other(error)))?;
        }
        self.containment.set(
            "seccomp",
            Enforced,
            "refuses what reaches out of the sandbox or into other processes",
        );
        Ok(())
    }

    fn execute(&self, told: &Told) -> Result<std::convert::Infallible, Failed> {
        let last =
            serde_json::to_string(told).map_err(io::Error::from).map_err(Failed::at("telling the worker"))?;
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let argv: Result<Vec<CString>, _> =
            self.plan.argv.iter().map(|word| text(word.as_bytes())).chain([text(last.as_bytes())]).collect();
        let in_sandbox = [("HOME", &told.home), ("TMPDIR", &told.tmp)];
        let pair = |name: &str, value: &OsStr| text(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        let env: Result<Vec<CString>, _> = in_sandbox
            .iter()
            .map(|(name, value)| pair(name, value.as_os_str()))
            .chain(self.plan.env.iter().map(|(name, value)| pair(name, OsStr::new(value))))
            .collect();
        let (argv, env) = argv
            .and_then(|argv| env.map(|env| (argv, env)))
            .map_err(Failed::at("building the command line"))?;
        let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
            list.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv_pointers, env_pointers) = (pointers(&argv), pointers(&env));
        if let Some(program) = argv.first() {
            // SAFETY: all strings and both null-terminated lists live until the call has failed.
            unsafe { libc::execve(program.as_ptr(), argv_pointers.as_ptr(), env_pointers.as_ptr()) };
        }
        Err(Failed::at("starting the interpreter")(io::Error::last_os_error()))
    }
}

/// Takes two descriptors that come with one byte.
fn receive_two(control: &OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    let mut bytes = [io::IoSliceMut::new(&mut byte)];
    recvmsg(control, &mut bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut both = descriptors.next().ok_or(io::ErrorKind::UnexpectedEof)?;
    match (both.next(), both.next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Puts the two at numbers 3 and 4 and closes everything above.
fn arrange(request: OwnedFd, report: OwnedFd) -> io::Result<()> {
    let high = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 10);
    let (request, report) = (high(&request)?, high(&report)?);
    for (fd, number) in [(&request, 3), (&report, 4)] {
        // SAFETY: the numbers 3 and 4 belong to nobody: this process was started with three descriptors, and
        // what else it had is closed below.
        if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    drop((request, report));
    // SAFETY: no value of this program owns a descriptor from 5 on any more.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 5, libc::c_uint::MAX, 0) };
    if closed != 0 {
        for number in 5..4096 {
            // SAFETY: as above.
            unsafe { libc::close(number) };
        }
    }
    Ok(())
}

/// A user namespace in which this user is himself, for one who is not root.
fn own_user_namespace() -> io::Result<()> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // SAFETY: this process has one thread and shares no descriptors with another one.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    let write = |name: &str, text: String| {
        std::fs::OpenOptions::new()
            .write(true)
            .open(format!("/proc/self/{name}"))
            .and_then(|mut file| file.write_all(text.as_bytes()))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))
}

/// Whether anybody may read a path; of the directories above it, `below` counts from the path itself.
fn is_open_to_all(path: &Path, below: usize) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let Ok(path) = path.canonicalize() else { return true }; // nothing there to be read
    path.ancestors().take(below).all(|part| {
        part.metadata().is_ok_and(|about| {
            let needed = if about.is_dir() { 0o005 } else { 0o004 };
            about.permissions().mode() & needed == needed
        })
    })
}

/// Users and capabilities; see capabilities(7).
mod rights {
    use super::io;

    pub(super) fn drop_bounding_set() {
        for capability in 0..64 {
            // SAFETY: takes numbers only; one that does not exist is an error that nobody needs.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
    }

    pub(super) fn become_user(uid: u32) -> io::Result<()> {
        // SAFETY: each takes numbers, and an empty list.
        let results = unsafe {
            [
                libc::setgroups(0, std::ptr::null()),
                libc::setresgid(uid, uid, uid),
                libc::setresuid(uid, uid, uid),
            ]
        };
        if results.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn drop_capabilities() -> io::Result<()> {
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
        Ok(rustix::thread::set_capabilities(None, sets)?)
    }
}
