//! Builds the sandbox of one program from the inside, and becomes the program.
//!
//! A fresh interpreter runs [`launch`] and nothing else, so the user's process is never forked. It makes
//! namespaces, a root of its own, limits and filters, notes what the kernel refused, and executes the program,
//! which is left a direct child of the user's process and leads a process group.

use std::ffi::{CString, OsStr};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};

use super::{landlock, mount, process, rlimit, seccomp};
use crate::containment::{Containment, LayerStatus, NAMES};

use LayerStatus::{Enforced, Partial, Unavailable};

/// What a program may use.
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
    /// The program, by its path, and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment but for `HOME` and `TMPDIR`.
    pub env: Vec<(String, String)>,
    /// An empty directory: the mount point of the new root, or where the program writes without one.
    pub place: PathBuf,
    /// What may be read.
    pub readable: Vec<PathBuf>,
    /// What it may use.
    pub walls: Walls,
    /// Mechanisms not to use.
    pub avoid: Vec<String>,
    /// The process that all this is for.
    pub owner: i32,
    /// Whether the program takes over the control socket, as descriptor 3, and puts its children into groups of
    /// their own, each closed by the filter in [`GROUP_FILTER`] where there is no process namespace.
    pub keeps_control: bool,
}

/// The variable with a filter of system calls, in hexadecimal.
pub const GROUP_FILTER: &str = "TESTGRAD_GROUP_FILTER";

const FIRST_SPARE_UID: u32 = 2_000_000_000;
const SPARE_UIDS: u64 = 1_000_000_000;

/// A launched program is found by its session, not by a mark; no process has this one.
pub(super) const NO_MARKER: &str = "\n";

/// Where the program writes.
#[derive(Debug)]
struct Rooms {
    tmp: PathBuf,
    home: PathBuf,
    all: Vec<PathBuf>,
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

/// Becomes the program that the plan describes; comes back only to end this process.
///
/// Standard input is the control socket. On it come lines: `pid` with the program's number, `level` and `layers`
/// with what holds it, or `failed` with the reason. It is closed when the program begins, which cannot write to it.
pub fn launch(plan: &str) -> i32 {
    let outcome = own_control().map_err(Failed::at("taking the control socket")).and_then(|control| {
        let outcome = serde_json::from_str(plan)
            .map_err(io::Error::from)
            .map_err(Failed::at("reading the plan"))
            .and_then(|plan| Launcher::new(plan)?.run(&control));
        if let Err(Failed { step, source }) = &outcome {
            say(&control, &format!("failed {step}: {source}"));
        }
        outcome
    });
    i32::from(outcome.is_err())
}

/// Ends a launched program, which is still to be reaped, and all it started.
pub fn end(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        process::end_all(pid, NO_MARKER);
    }
}

/// The control socket under another number, closed on exec; standard input becomes empty.
fn own_control() -> io::Result<OwnedFd> {
    // SAFETY: this process was started with an open standard input, and nothing else uses it.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    // SAFETY: no value of this program owns a descriptor above the first three yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if closed != 0 {
        for number in 3..4096 {
            // SAFETY: as above.
            unsafe { libc::close(number) };
        }
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(control)
}

fn say(control: &OwnedFd, line: &str) {
    let line = line.replace('\n', " ") + "\n";
    let _ = rustix::io::write(control, line.as_bytes());
}

struct Launcher {
    plan: Plan,
    is_root: bool,
    /// A user for this program alone: the kernel counts processes by user.
    spare: u32,
    containment: Containment,
    flags: UnshareFlags,
}

impl Launcher {
    fn new(plan: Plan) -> Result<Self, Failed> {
        if let Some(name) = plan.avoid.iter().find(|name| !NAMES.contains(&name.as_str())) {
            let words = format!("no mechanism {name:?}; there is {}", NAMES.join(", "));
            return Err(Failed::at("avoid")(io::Error::other(words)));
        }
        let is_root = rustix::process::geteuid().is_root();
        // By chance, since process numbers are not unique across namespaces.
        let chance = RandomState::new().build_hasher().finish() % SPARE_UIDS;
        let spare = FIRST_SPARE_UID + u32::try_from(chance).unwrap_or_default();
        let containment = Containment::default();
        Ok(Self { plan, is_root, spare, containment, flags: UnshareFlags::empty() })
    }

    fn run(mut self, control: &OwnedFd) -> Result<(), Failed> {
        self.unshare()?;
        // SAFETY: this process has one thread. The child shares nothing with it, runs on a copy of this stack,
        // and either executes another program or exits.
        let pid = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_PARENT | libc::SIGCHLD, 0, 0, 0, 0) };
        match pid {
            -1 => Err(Failed::at("starting the program")(io::Error::last_os_error())),
            0 => {
                let Err(Failed { step, source }) = self.become_program(control);
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

    fn avoids(&self, name: &str) -> bool {
        self.plan.avoid.iter().any(|avoided| avoided == name)
    }

    /// Whether a mechanism is to be used; notes it when it is not.
    fn wants(&mut self, name: &str) -> bool {
        if self.avoids(name) {
            self.containment.set(name, Unavailable, "switched off by the caller");
        }
        !self.avoids(name)
    }

    fn has(&self, flag: UnshareFlags) -> bool {
        self.flags.contains(flag)
    }

    /// Makes every namespace that can be made, each by itself, so that one refusal costs one layer.
    fn unshare(&mut self) -> Result<(), Failed> {
        let names = [
            ("mount", UnshareFlags::NEWNS),
            ("pid", UnshareFlags::NEWPID),
            ("network", UnshareFlags::NEWNET),
            ("ipc", UnshareFlags::NEWIPC),
            ("uts", UnshareFlags::NEWUTS),
        ];
        if !self.is_root && self.wants("user") {
            let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
            // SAFETY: this process has one thread and shares no descriptors with another one.
            match unsafe { unshare_unsafe(UnshareFlags::NEWUSER) } {
                Ok(()) => {
                    // Without a map this user is nobody, and there is no way back.
                    map_user(uid, gid).map_err(Failed::at(
                        "mapping the user into its namespace; avoid=(\"user\",) does without",
                    ))?;
                    self.flags |= UnshareFlags::NEWUSER;
                    self.containment.set("user", Enforced, "a namespace in which this user has no rights");
                }
                Err(errno) => {
                    self.containment.set("user", Unavailable, format!("no user namespace: {errno}"));
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
        Ok(())
    }

    /// What the child of the launcher does; it comes back only with an error.
    fn become_program(mut self, control: &OwnedFd) -> Result<std::convert::Infallible, Failed> {
        rustix::process::setsid().map_err(|errno| Failed::at("leading a session")(errno.into()))?;
        let rooms = self.lay_out()?;
        self.limit()?;
        self.drop_rights()?;
        self.close_off(&rooms)?;
        self.filter_calls()?;
        let layers = serde_json::to_string(&self.containment).map_err(io::Error::from);
        say(control, &format!("level {}", self.containment.level()));
        say(control, &format!("layers {}", layers.map_err(Failed::at("describing the sandbox"))?));
        self.execute(&rooms, control)
    }

    /// The root that the program sees, or the directories that it writes to without one.
    fn lay_out(&mut self) -> Result<Rooms, Failed> {
        let at = |place: &Path, home: &str, names: &[&str]| Rooms {
            tmp: place.join("tmp"),
            home: place.join(home),
            all: names.iter().map(|name| place.join(name)).collect(),
        };
        let Plan { place, readable, walls, .. } = &self.plan;
        if self.has(UnshareFlags::NEWNS) {
            let has_proc =
                mount::own_root(place, readable, walls, self.has(UnshareFlags::NEWPID), self.spare_uid())
                    .map_err(|Failed { step, source }| Failed {
                        step: format!("making a root ({step}); avoid=(\"mount\",) does without"),
                        source,
                    })?;
            let (status, why) = match has_proc {
                true => (Enforced, "a root of its own with nothing of home in it"),
                false => (Partial, "a root of its own, without /proc"),
            };
            self.containment.set("mount", status, why);
            self.containment.set("scratch", Enforced, "a file system of this size in memory");
            return Ok(at(Path::new("/"), "box/home", &mount::WRITABLE));
        }
        let rooms = at(place, "home", &["work", "tmp", "home"]);
        for path in &rooms.all {
            std::fs::create_dir(path).map_err(Failed::at(format!("creating {}", path.display())))?;
            if let Some(uid) = self.spare_uid() {
                std::os::unix::fs::chown(path, Some(uid), Some(uid))
                    .map_err(Failed::at(format!("giving away {}", path.display())))?;
            }
        }
        std::env::set_current_dir(place.join("work"))
            .map_err(Failed::at("entering the directory of the run"))?;
        self.containment.set("scratch", Partial, "each file has a greatest size, all together have none");
        Ok(rooms)
    }

    /// A user that owns nothing, where root starts the worker and others may read what it needs.
    fn spare_uid(&self) -> Option<u32> {
        let is_usable = self.is_root && !self.avoids("user");
        let below = if self.has(UnshareFlags::NEWNS) { 1 } else { usize::MAX };
        (is_usable && self.plan.readable.iter().all(|path| is_open_to_all(path, below))).then_some(self.spare)
    }

    fn limit(&mut self) -> Result<(), Failed> {
        // The kernel counts processes by user: root's not at all, and another's together with all he runs.
        let is_counted = self.spare_uid().is_some() || self.has(UnshareFlags::NEWUSER);
        rlimit::set(&self.plan.walls, is_counted).map_err(Failed::at("setting limits"))?;
        let (status, why) = match is_counted {
            true => (Enforced, "counted for its user"),
            false => (Unavailable, "the kernel would count the caller's too, or none"),
        };
        self.containment.set("processes", status, why);
        self.containment.set("rlimits", Enforced, "files, descriptors, stack, core, address space");
        let why = "the address space of each process; that of all together has no limit";
        self.containment.set("memory", Partial, why);
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
        rustix::thread::set_no_new_privs(true)
            .map_err(|errno| Failed::at("giving up new privileges")(errno.into()))?;
        self.containment.set("no_new_privs", Enforced, "no program gives rights back");
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(|errno| Failed::at("tying the program to its owner")(errno.into()))?;
        Ok(())
    }

    fn close_off(&mut self, rooms: &Rooms) -> Result<(), Failed> {
        if !self.wants("landlock") {
            return Ok(());
        }
        let has_root = self.has(UnshareFlags::NEWNS);
        let readable: Vec<&Path> = match has_root {
            true => vec![Path::new("/")],
            false => self.plan.readable.iter().map(PathBuf::as_path).collect(),
        };
        let (status, why) = landlock::restrict(&readable, &rooms.all)
            .map_err(|error| Failed::at("closing the file system")(io::Error::other(error)))?;
        self.containment.set("landlock", status, why);
        Ok(())
    }

    fn filter_calls(&mut self) -> Result<(), Failed> {
        let failed = |error: io::Error| Failed { step: "filtering system calls".to_owned(), source: error };
        if !self.wants("seccomp") {
            return Ok(());
        }
        let has_network = self.has(UnshareFlags::NEWNET);
        let place = match has_network {
            true => seccomp::Place::WithNetworkNamespace,
            false => seccomp::Place::WithHostNetwork,
        };
        let mut filters = seccomp::filters(place).map_err(|error| failed(io::Error::other(error)))?;
        if !self.has(UnshareFlags::NEWPID) {
            let filter = seccomp::group_filter(&[self.plan.owner, std::process::id().cast_signed()])
                .map_err(|error| failed(io::Error::other(error)))?;
            if self.plan.keeps_control {
                self.plan.env.push((GROUP_FILTER.to_owned(), seccomp::to_hex(&filter)));
            } else {
                filters.push(filter);
            }
            self.containment.set("pid", Partial, "no namespace, but a process group that nobody can leave");
        }
        if !has_network {
            self.containment.set("network", Partial, "no namespace, but no internet sockets");
        }
        for filter in filters {
            seccompiler::apply_filter(&filter).map_err(|error| failed(io::Error::other(error)))?;
        }
        self.containment.set(
            "seccomp",
            Enforced,
            "refuses what reaches out of the sandbox or into other processes",
        );
        Ok(())
    }

    fn execute(&self, rooms: &Rooms, control: &OwnedFd) -> Result<std::convert::Infallible, Failed> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let argv: Result<Vec<CString>, _> = self.plan.argv.iter().map(|word| text(word.as_bytes())).collect();
        let in_sandbox = [("HOME", &rooms.home), ("TMPDIR", &rooms.tmp)];
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
        if self.plan.keeps_control {
            // SAFETY: takes numbers only; what is closed as descriptor 3 nobody uses any more.
            let kept = unsafe {
                let above = libc::fcntl(control.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 4);
                libc::dup2(above, 3)
            };
            if kept != 3 {
                return Err(Failed::at("handing on the control socket")(io::Error::last_os_error()));
            }
        }
        if let Some(program) = argv.first() {
            // SAFETY: all strings and both null-terminated lists live until the call has failed.
            unsafe { libc::execve(program.as_ptr(), argv_pointers.as_ptr(), env_pointers.as_ptr()) };
        }
        Err(Failed::at("starting the interpreter")(io::Error::last_os_error()))
    }
}

/// Makes this user himself in his new namespace, which he entered as nobody.
fn map_user(uid: u32, gid: u32) -> io::Result<()> {
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
