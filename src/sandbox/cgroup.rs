//! A control group for each worker, where this process may make one: the memory of all its processes together,
//! and how many there are.
//!
//! Source: the kernel's documentation, admin-guide/cgroup-v1/memory, cgroup-v1/pids and cgroup-v2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The directories of one group: one a controller with version 1, one in all with version 2.
#[derive(Debug)]
pub(super) struct Group {
    memory: Option<Directory>,
    processes: Option<Directory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    version: Version,
}

impl Group {
    /// A group for a process, with as many of the controllers as may be had.
    pub(super) fn around(pid: i32, limits_memory: bool, limits_processes: bool) -> Self {
        let enter = |controller: &str, limit: [&str; 2]| {
            let directory = Directory::new(controller, limit)?;
            directory.write("cgroup.procs", &pid.to_string()).ok()?;
            Some(directory)
        };
        Self {
            memory: limits_memory.then(|| enter("memory", ["memory.limit_in_bytes", "memory.max"])).flatten(),
            processes: limits_processes.then(|| enter("pids", ["pids.max", "pids.max"])).flatten(),
        }
    }

    /// Allows so much memory beside what is used already; whether the group limits memory.
    pub(super) fn limit_memory(&self, bytes: u64) -> bool {
        let Some(memory) = &self.memory else { return false };
        let used = memory.number(memory.named("memory.usage_in_bytes", "memory.current")).unwrap_or_default();
        let limit = used.saturating_add(bytes).to_string();
        let is_set = memory.write(memory.named("memory.limit_in_bytes", "memory.max"), &limit).is_ok();
        // Without these, what does not fit goes to the disk; a kernel without swap does not have them.
        let _ = match memory.version {
            Version::One => memory.write("memory.memsw.limit_in_bytes", &limit),
            Version::Two => memory.write("memory.swap.max", "0"),
        };
        is_set
    }

    /// Allows so many processes and threads; whether the group limits them.
    pub(super) fn limit_processes(&self, count: u64) -> bool {
        self.processes.as_ref().is_some_and(|group| group.write("pids.max", &count.to_string()).is_ok())
    }

    /// How many processes the kernel has ended for want of memory.
    pub(super) fn memory_kills(&self) -> u64 {
        let Some(memory) = &self.memory else { return 0 };
        let text = fs::read_to_string(memory.path.join(memory.named("memory.oom_control", "memory.events")));
        let text = text.unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or_default()
    }
}

impl Directory {
    fn new(controller: &str, limit: [&str; 2]) -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("testgrad-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        places(controller).into_iter().find_map(|(place, version)| {
            sweep(&place);
            let path = place.join(&name);
            fs::create_dir(&path).ok()?;
            let directory = Self { path, version };
            let file = directory.named(limit[0], limit[1]);
            directory.path.join(file).exists().then_some(directory)
        })
    }

    fn named<'a>(&self, one: &'a str, two: &'a str) -> &'a str {
        if self.version == Version::One { one } else { two }
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::OpenOptions::new()
            .write(true)
            .open(self.path.join(file))
            .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.path.join(file)).ok()?.trim().parse().ok()
    }
}

impl Drop for Directory {
    /// It can go once its last process has been reaped, which may take a moment.
    fn drop(&mut self) {
        for _ in 0..200 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }
}

/// Removes what a process that was killed has left.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("testgrad-")?.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where a group with this controller may be made: inside the own group, with version 2 also beside it, since
/// a group with processes in it cannot hand controllers on.
fn places(controller: &str) -> Vec<(PathBuf, Version)> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut places = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(own)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.split(',').any(|name| name == controller) {
            let is_its = |kind: &str, options: &str| {
                kind == "cgroup" && options.split(',').any(|name| name == controller)
            };
            places.extend(mounted(&mounts, own, is_its).map(|path| (path, Version::One)));
        } else if controllers.is_empty() {
            let own = mounted(&mounts, own, |kind, _| kind == "cgroup2");
            let above = own.as_ref().and_then(|path| path.parent()).map(Path::to_owned);
            places.extend(own.into_iter().chain(above).map(|path| (path, Version::Two)));
        }
    }
    places
}

/// The directory of a group, by the mount of its hierarchy; see proc_pid_mountinfo(5).
fn mounted(mounts: &str, own: &str, is_its: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let (kind, options) = (file_system.next()?, file_system.nth(1)?);
        let inner = Path::new(own).strip_prefix(root).ok()?;
        is_its(kind, options).then(|| Path::new(point).join(inner))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_mount() {
        let mounts = "\
30 20 0:26 / /sys/fs/cgroup/memory rw,relatime shared:8 - cgroup cgroup rw,memory
31 20 0:27 /box /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let is = |name: &'static str| move |_: &str, options: &str| options.split(',').any(|o| o == name);
        let found = |own, name| mounted(mounts, own, is(name));
        assert_eq!(found("/a/b", "memory"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(found("/box/b", "pids"), Some("/sys/fs/cgroup/pids/b".into()));
        assert_eq!(found("/elsewhere", "pids"), None);
        assert_eq!(
            mounted(mounts, "/x", |kind, _| kind == "cgroup2"),
            Some("/sys/fs/cgroup/unified/x".into())
        );
    }
}
