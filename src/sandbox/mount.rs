//! A root of its own: what may be read, read-only; what may be written, in memory and of a limited size.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use super::launch::{Failed, Walls};

/// Files and directories at a time.
const INODES: u64 = 20_000;

/// Directories that the candidate may write to.
pub(super) const WRITABLE: [&str; 4] = ["box/work", "tmp", "box/home", "dev/shm"];

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Programs look up who they are.
const USERS: &str = "root:x:0:0:root:/:/bin/sh\n";

/// Makes the root at `place`, goes to live there, and says whether it has a `/proc`.
pub(super) fn own_root(
    place: &Path,
    readable: &[PathBuf],
    walls: &Walls,
    has_processes: bool,
    uid: Option<u32>,
) -> Result<bool, Failed> {
    let uid = uid.unwrap_or_else(|| rustix::process::getuid().as_raw());
    let step = |what: &str, path: &Path| Failed::at(format!("{what} {}", path.display()));
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|e| step("making private", Path::new("/"))(e.into()))?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    let options = |text: String| std::ffi::CString::new(text).unwrap_or_default();
    mount("tmpfs", place, "tmpfs", quiet, options("mode=0755,size=4m,nr_inodes=4000".to_owned()).as_c_str())
        .map_err(|e| step("mounting", place)(e.into()))?;
    // What lies where the candidate writes is shown on top of that.
    let (on_top, below): (Vec<_>, Vec<_>) = readable.iter().partition(|path| is_where_it_writes(path));
    for path in below {
        show(place, path).map_err(step("showing", path))?;
    }
    let scratch = place.join(".scratch");
    let text = format!("mode=0700,size={},nr_inodes={INODES},uid={uid},gid={uid}", walls.scratch_bytes);
    let prepare = || -> io::Result<()> {
        std::fs::create_dir_all(&scratch)?;
        mount("tmpfs", &scratch, "tmpfs", quiet, options(text.clone()).as_c_str()).or_else(|_| {
            // The group may be unknown in this namespace.
            let text = format!("mode=0700,size={},nr_inodes={INODES}", walls.scratch_bytes);
            mount("tmpfs", &scratch, "tmpfs", quiet, options(text).as_c_str())
        })?;
        for name in WRITABLE {
            let (inner, outer) = (scratch.join(name.replace('/', "-")), place.join(name));
            std::fs::create_dir(&inner)?;
            let _ = std::os::unix::fs::chown(&inner, Some(uid), Some(uid));
            std::fs::create_dir_all(&outer)?;
            mount_bind(&inner, &outer)?;
        }
        unmount(&scratch, UnmountFlags::DETACH)?;
        std::fs::remove_dir(&scratch)?;
        for name in DEVICES {
            let device = place.join("dev").join(name);
            std::fs::write(&device, "")?;
            mount_bind(Path::new("/dev").join(name), &device)?;
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            symlink(target, place.join("dev").join(name))?;
        }
        std::fs::create_dir_all(place.join("etc"))?;
        let users = format!("{USERS}candidate:x:{uid}:{uid}::/box/home:/bin/sh\n");
        write_new(&place.join("etc/passwd"), &users)?;
        write_new(&place.join("etc/group"), &format!("root:x:0:\ncandidate:x:{uid}:\n"))?;
        write_new(&place.join("etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
        std::fs::create_dir_all(place.join("proc"))
    };
    prepare().map_err(step("filling", place))?;
    for path in on_top {
        show(place, path).map_err(step("showing", path))?;
    }
    let has_proc =
        has_processes && mount("proc", place.join("proc"), "proc", quiet | MountFlags::NOEXEC, None).is_ok();
    enter(place).map_err(step("entering", place))?;
    Ok(has_proc)
}

fn is_where_it_writes(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    WRITABLE.iter().any(|name| real.starts_with(Path::new("/").join(name)))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Ok(()), // shown from outside
        Err(_) => std::fs::write(path, text),
    }
}

/// Shows a file or directory at the same place of the new root, read-only; what is not there is left out.
fn show(root: &Path, path: &Path) -> io::Result<()> {
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    if real == Path::new("/") {
        return Err(io::Error::other("the whole disk is not to be shown"));
    }
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    if real != path && inside(path).symlink_metadata().is_err() {
        let link = inside(path);
        link.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        // A link above this one may have made it already.
        let _ = symlink(&real, link);
    }
    let target = inside(&real);
    if target.symlink_metadata().is_ok() && is_shown(root, &target) {
        return Ok(());
    }
    if real.is_dir() {
        std::fs::create_dir_all(&target)?;
    } else {
        target.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&target, "")?;
    }
    mount_bind_recursive(&real, &target)?;
    read_only(&target)
}

/// Whether something above or at the target has been shown, so that it lies on another file system.
fn is_shown(root: &Path, target: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| path.metadata().map(|about| about.dev()).ok();
    device(target) != device(root)
}

/// Makes a mount and those below it read-only, without devices and set-user-id programs.
fn read_only(target: &Path) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        namespace: u64,
    }
    const RDONLY_NOSUID_NODEV: u64 = 1 | 2 | 4;
    let attributes = Attributes { set: RDONLY_NOSUID_NODEV, clear: 0, propagation: 0, namespace: 0 };
    let path = std::ffi::CString::new(target.as_os_str().as_encoded_bytes())?;
    // SAFETY: the path and the attributes live through the call, and the size is theirs.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match result {
        0 => Ok(()),
        // Before Linux 5.12 only the mount itself can be told, and only with the flags it has.
        _ => Ok(mount_remount(
            target,
            MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
            "",
        )?),
    }
}

/// Makes `place` the root and leaves the old one.
fn enter(place: &Path) -> io::Result<()> {
    std::env::set_current_dir(place)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    mount_remount("/", MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, "")?;
    std::env::set_current_dir("/box/work")
}
