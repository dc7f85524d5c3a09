//! A fresh private directory, and its removal whatever has become of it.
//!
//! No link is followed when it is removed.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, fstat, openat, statat, unlinkat};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The directory of one run; removed with the value.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new directory in `place` that only this user can enter.
    pub(crate) fn new(place: &Path) -> Result<Self, (PathBuf, io::Error)> {
        loop {
            let path = place.join(format!("testgrad-{:016x}", RandomState::new().build_hasher().finish()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err((path, error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

/// Removes a tree of any depth, also one whose directories were made unreadable.
///
/// One directory is open at a time; the way back up is checked, so that a directory moved meanwhile leads
/// nowhere.
fn remove_tree(root: &Path) -> io::Result<()> {
    let mut open = open_directory(CWD, root.as_os_str())?;
    let mut levels = vec![Level::clear(&open, OsString::new())?];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.directories.pop() {
            open = open_directory(&open, &name)?;
            levels.push(Level::clear(&open, name)?);
            continue;
        }
        let name = std::mem::take(&mut level.name);
        levels.pop();
        let Some(above) = levels.last() else { break };
        open = openat(&open, "..", DIRECTORY, Mode::empty())?;
        if !is_same(&fstat(&open)?, &above.about) {
            return Err(io::Error::other("a directory was moved while it was being removed"));
        }
        unlinkat(&open, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(CWD, root, AtFlags::REMOVEDIR)?)
}

/// A directory on the way down, with only directories left in it.
struct Level {
    name: OsString,
    about: Stat,
    directories: Vec<OsString>,
}

impl Level {
    /// Removes all but the directories.
    fn clear(directory: &OwnedFd, name: OsString) -> io::Result<Self> {
        let (directories, others): (Vec<_>, Vec<_>) =
            entries(directory)?.into_iter().partition(|(_, kind)| *kind == FileType::Directory);
        for (other, _) in others {
            unlinkat(directory, other, AtFlags::empty())?;
        }
        let directories = directories.into_iter().map(|(name, _)| name).collect();
        Ok(Self { name, about: fstat(directory)?, directories })
    }
}

/// Whether two looks saw one directory; the types of the numbers differ from system to system.
fn is_same(a: &Stat, b: &Stat) -> bool {
    a.st_dev == b.st_dev && a.st_ino == b.st_ino
}

fn open_directory(place: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    chmodat(&place, name, Mode::RWXU, AtFlags::empty())?;
    Ok(openat(&place, name, DIRECTORY, Mode::empty())?)
}

fn entries(directory: &OwnedFd) -> io::Result<Vec<(OsString, FileType)>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            kind => kind,
        };
        entries.push((name.to_owned(), kind));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_tree_made_to_resist_is_removed_and_nothing_else() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let root = scratch.path().to_owned();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "x").unwrap();
        symlink(outside.path(), root.join("a/link")).unwrap();
        fs::set_permissions(root.join("a/b"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(root.join("a"), Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o500)).unwrap();
        drop(scratch);
        assert!(!root.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let root = scratch.path().to_owned();
        let mut place = open_directory(CWD, root.as_os_str()).unwrap();
        let name = "deep".repeat(50);
        for _ in 0..30 {
            rustix::fs::mkdirat(&place, &name, Mode::RWXU).unwrap();
            place = open_directory(&place, OsStr::new(&name)).unwrap();
        }
        drop(scratch);
        assert!(!root.exists());
    }

    #[test]
    fn a_dropped_directory_is_removed() {
        let root = Scratch::new(&std::env::temp_dir()).unwrap().path().to_owned();
        assert!(!root.exists());
    }

    #[test]
    fn only_its_owner_can_enter_it() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        assert_eq!(scratch.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
