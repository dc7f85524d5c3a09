//! A fresh private directory for one run: made, filled with tests and candidate, and removed whatever is in
//! it.
//!
//! Links are never followed out of what is copied, and never followed when it is removed.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fstat, openat, statat, unlinkat};

/// Directories of tools, which are never copied; virtual environments are not either.
const TOOL_DIRECTORIES: [&str; 6] =
    [".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "node_modules"];

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A file of a tree: its path inside, and where its bytes are.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    CopyOf(PathBuf),
    LinkTo(PathBuf),
}

/// The directory of one run; removed with the value.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    is_removed: bool,
}

impl Scratch {
    /// A new directory in `place` that only this user can enter.
    pub(super) fn new(place: &Path) -> Result<Self, (PathBuf, io::Error)> {
        loop {
            let path = place.join(format!("testgrad-{:016x}", RandomState::new().build_hasher().finish()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, is_removed: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err((path, error)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all that is in it.
    pub(super) fn remove(mut self) -> io::Result<()> {
        self.is_removed = true;
        remove_tree(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_removed {
            let _ = remove_tree(&self.path);
        }
    }
}

/// A relative path that stays inside; `None` for any other.
pub(super) fn inside(path: &str) -> Option<PathBuf> {
    let parts: Option<PathBuf> = Path::new(path)
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| matches!(part, Component::Normal(_)).then_some(part))
        .collect();
    parts.filter(|path| !path.as_os_str().is_empty() && !path.as_os_str().as_encoded_bytes().contains(&0))
}

/// The files under a directory, in a stable order, without those of tools; links stay links where they lead
/// to something inside, and are left out otherwise.
pub(super) fn files_under(root: &Path) -> Result<Vec<File>, (PathBuf, io::Error)> {
    let real_root = root.canonicalize().map_err(|error| (root.to_owned(), error))?;
    let mut files = Vec::new();
    let mut places = vec![PathBuf::new()];
    while let Some(place) = places.pop() {
        let directory = real_root.join(&place);
        let entries = std::fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(|error| (directory.clone(), error))? {
            let kind = entry.file_type().map_err(|error| (entry.path(), error))?;
            let path = place.join(entry.file_name());
            if kind.is_dir() {
                let is_tools = TOOL_DIRECTORIES.iter().any(|name| entry.file_name() == *name)
                    || entry.path().join("pyvenv.cfg").exists();
                if !is_tools {
                    places.push(path);
                }
            } else if kind.is_file() {
                files.push(File { path, content: Content::CopyOf(entry.path()) });
            } else if kind.is_symlink()
                && let Ok(target) = std::fs::read_link(entry.path())
                && target.is_relative()
                && entry.path().canonicalize().is_ok_and(|end| end.starts_with(&real_root))
            {
                files.push(File { path, content: Content::LinkTo(target) });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Writes a file where nothing is yet; `false` when something is there.
pub(super) fn write(root: &Path, file: &File) -> Result<bool, (PathBuf, io::Error)> {
    let path = root.join(&file.path);
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| match &file.content {
        Content::Bytes(bytes) => io::copy(&mut bytes.as_slice(), &mut create(&path)?).map(drop),
        Content::CopyOf(source) => {
            let mut source = open(source)?;
            let mode = source.metadata()?.permissions().mode() & 0o777;
            let mut copy = create(&path)?;
            io::copy(&mut source, &mut copy)?;
            copy.set_permissions(Permissions::from_mode(mode))
        }
        Content::LinkTo(target) => std::os::unix::fs::symlink(target, &path),
    });
    match written {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err((path, error)),
    }
}

fn create(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
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
        if identity(&open)? != above.identity {
            return Err(io::Error::other("a directory was moved while it was being removed"));
        }
        unlinkat(&open, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(CWD, root, AtFlags::REMOVEDIR)?)
}

/// A directory on the way down, with only directories left in it.
struct Level {
    name: OsString,
    identity: (u64, u64),
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
        Ok(Self { name, identity: identity(directory)?, directories })
    }
}

fn identity(directory: &OwnedFd) -> io::Result<(u64, u64)> {
    let about = fstat(directory)?;
    Ok((about.st_dev, about.st_ino))
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
    use std::fs;
    use std::os::unix::fs::symlink;

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
        scratch.remove().unwrap();
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
        scratch.remove().unwrap();
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

    #[test]
    fn paths_that_leave_the_directory_are_refused() {
        for path in ["../x", "a/../../x", "/etc/x", "", ".", "a\0b"] {
            assert_eq!(inside(path), None, "{path:?}");
        }
        assert_eq!(inside("./a/b.py"), Some(PathBuf::from("a/b.py")));
    }

    #[test]
    fn links_are_copied_only_when_they_lead_inside() {
        let tests = tempfile::tempdir().unwrap();
        fs::create_dir(tests.path().join("data")).unwrap();
        fs::write(tests.path().join("data/real"), "x").unwrap();
        symlink("data/real", tests.path().join("inside")).unwrap();
        symlink("../../etc/passwd", tests.path().join("outside")).unwrap();
        symlink("/etc/passwd", tests.path().join("absolute")).unwrap();
        let files = files_under(tests.path()).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["data/real", "inside"]);
    }

    #[test]
    fn what_tools_leave_behind_is_not_copied() {
        let tests = tempfile::tempdir().unwrap();
        for path in ["__pycache__/a.pyc", ".git/config", "env/pyvenv.cfg", "env/lib/a.py", "sub/a.py"] {
            let path = tests.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let files = files_under(tests.path()).unwrap();
        assert_eq!(files.iter().map(|file| file.path.to_str().unwrap()).collect::<Vec<_>>(), ["sub/a.py"]);
    }

    #[test]
    fn what_is_there_is_not_written_over() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let file = |path: &str, text: &str| File { path: path.into(), content: Content::Bytes(text.into()) };
        assert!(write(scratch.path(), &file("a/x.py", "first")).unwrap());
        assert!(!write(scratch.path(), &file("a/x.py", "second")).unwrap());
        assert!(!write(scratch.path(), &file("a/x.py/y.py", "third")).unwrap());
        assert_eq!(fs::read_to_string(scratch.path().join("a/x.py")).unwrap(), "first");
    }
}
