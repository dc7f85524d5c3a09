//! A fresh private directory for one run: made, filled with tests and candidate, and removed whatever is in
//! it.
//!
//! Links of a candidate are never followed out of what is copied; those of the tests, which are the user's own,
//! are. None is followed when the directory is removed.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, fstat, openat, statat, unlinkat};

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
    /// A file that the user named or that his tests lead to.
    CopyOf(PathBuf),
    /// A file of the candidate, no more of it than it had when it was listed.
    FirstOf(u64, PathBuf),
    LinkTo(PathBuf),
}

/// What became of a file that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    /// Something else is there, or the place has no possible name.
    Taken,
    /// The candidate's file could not be read, or is none any more.
    Unread,
}

/// The files of a tree, in a stable order, without those of tools.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// Links that lead to nothing that may be copied, and what could not be read.
    pub(super) left_out: Vec<PathBuf>,
}

/// Why the files of a tree cannot be listed.
#[derive(Debug)]
pub(super) enum NoTree {
    /// The system refused.
    File(PathBuf, io::Error),
    /// There is more of it than anybody needs, in words.
    Excess(String),
}

/// How much a candidate may bring.
const MAX_BYTES: u64 = 1 << 30;
const MAX_ENTRIES: usize = 20_000;
/// Tests are the user's own; this ends links that lead into the whole disk.
const MAX_TEST_ENTRIES: usize = 1_000_000;

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

/// The files of a candidate's workspace: links stay links where they lead to something inside, and are left out
/// otherwise.
pub(super) fn workspace_under(root: &Path) -> Result<Tree, NoTree> {
    let real_root = root.canonicalize().map_err(|error| NoTree::File(root.to_owned(), error))?;
    let mut tree = Tree::default();
    let (mut entries, mut bytes) = (0, 0_u64);
    let mut places = vec![PathBuf::new()];
    while let Some(place) = places.pop() {
        let directory = match std::fs::read_dir(real_root.join(&place)) {
            Ok(directory) => directory,
            Err(error) if place.as_os_str().is_empty() => return Err(NoTree::File(real_root, error)),
            Err(_) => {
                tree.left_out.push(place);
                continue;
            }
        };
        for entry in directory.map_while(Result::ok) {
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(NoTree::Excess(format!("the workspace has more than {MAX_ENTRIES} entries")));
            }
            let path = place.join(entry.file_name());
            let Ok(about) = entry.metadata() else {
                tree.left_out.push(path);
                continue;
            };
            if about.is_dir() {
                if !is_of_tools(&entry.path()) {
                    places.push(path);
                }
            } else if about.is_file() {
                bytes = bytes.saturating_add(about.len());
                if bytes > MAX_BYTES {
                    return Err(NoTree::Excess(format!(
                        "the files of the workspace exceed {MAX_BYTES} bytes"
                    )));
                }
                tree.files.push(File { path, content: Content::FirstOf(about.len(), entry.path()) });
            } else if about.is_symlink()
                && let Ok(target) = std::fs::read_link(entry.path())
                && target.is_relative()
                && entry.path().canonicalize().is_ok_and(|end| end.starts_with(&real_root))
            {
                tree.files.push(File { path, content: Content::LinkTo(target) });
            } else {
                tree.left_out.push(path);
            }
        }
    }
    Ok(tree.sorted())
}

/// A candidate's one file, as `path`.
pub(super) fn workspace_file(path: &Path, source: &Path) -> Result<Tree, NoTree> {
    let about = source.symlink_metadata().map_err(|error| NoTree::File(source.to_owned(), error))?;
    let mut tree = Tree::default();
    if !about.is_file() {
        tree.left_out.push(path.to_owned());
    } else if about.len() > MAX_BYTES {
        return Err(NoTree::Excess(format!("the file exceeds {MAX_BYTES} bytes")));
    } else {
        tree.files
            .push(File { path: path.to_owned(), content: Content::FirstOf(about.len(), source.to_owned()) });
    }
    Ok(tree)
}

/// The files of the tests; links are followed, wherever they lead, but not in a circle.
pub(super) fn tests_under(root: &Path) -> Result<Tree, NoTree> {
    let failed = |path: &Path, error| NoTree::File(path.to_owned(), error);
    let real_root = root.canonicalize().map_err(|error| failed(root, error))?;
    let mut tree = Tree::default();
    let mut entries = 0;
    // Where the copy is, and the real directories on the way there.
    let mut places = vec![(PathBuf::new(), vec![real_root])];
    while let Some((place, way)) = places.pop() {
        let Some(directory) = way.last() else { continue };
        for entry in std::fs::read_dir(directory).map_err(|error| failed(directory, error))? {
            let entry = entry.map_err(|error| failed(directory, error))?;
            entries += 1;
            if entries > MAX_TEST_ENTRIES {
                let what = format!("links lead to more than {MAX_TEST_ENTRIES} entries");
                return Err(failed(root, io::Error::other(what)));
            }
            let path = place.join(entry.file_name());
            let kind = entry.file_type().map_err(|error| failed(&entry.path(), error))?;
            let real = if kind.is_symlink() { entry.path().canonicalize().ok() } else { Some(entry.path()) };
            match real {
                Some(real) if real.is_dir() && way.contains(&real) => tree.left_out.push(path),
                Some(real) if real.is_dir() => {
                    if !is_of_tools(&entry.path()) {
                        places.push((path, way.iter().cloned().chain([real]).collect()));
                    }
                }
                Some(real) if real.is_file() => {
                    tree.files.push(File { path, content: Content::CopyOf(real) });
                }
                Some(_) => {}
                None => tree.left_out.push(path),
            }
        }
    }
    Ok(tree.sorted())
}

impl Tree {
    fn sorted(mut self) -> Self {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self.left_out.sort();
        self
    }
}

/// Whether a directory belongs to a tool or is a virtual environment.
fn is_of_tools(path: &Path) -> bool {
    TOOL_DIRECTORIES.iter().any(|name| path.file_name().is_some_and(|own| own == *name))
        || path.join("pyvenv.cfg").exists()
}

/// Writes a file where nothing is yet.
pub(super) fn write(root: &Path, file: &File) -> Result<Written, (PathBuf, io::Error)> {
    let path = root.join(&file.path);
    let source = match &file.content {
        Content::CopyOf(source) => {
            Some((std::fs::File::open(source).map_err(|error| (source.clone(), error))?, u64::MAX))
        }
        Content::FirstOf(bytes, source) => match open(source) {
            Ok(source) => Some((source, *bytes)),
            Err(_) => return Ok(Written::Unread),
        },
        Content::Bytes(_) | Content::LinkTo(_) => None,
    };
    let write = || match (&file.content, source) {
        (Content::Bytes(bytes), _) => create(&path)?.write_all(bytes),
        (Content::LinkTo(target), _) => std::os::unix::fs::symlink(target, &path),
        (_, Some((source, bytes))) => {
            let mode = source.metadata()?.permissions().mode() & 0o777;
            let mut copy = create(&path)?;
            io::copy(&mut source.take(bytes), &mut copy)?;
            copy.set_permissions(Permissions::from_mode(mode))
        }
        (_, None) => Ok(()),
    };
    match path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| write()) {
        Ok(()) => Ok(Written::Yes),
        Err(error) => match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                Ok(Written::Taken)
            }
            _ => Err((path, error)),
        },
    }
}

fn create(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)
}

/// Opens a file of the candidate, which may have become a link or a pipe meanwhile.
fn open(path: &Path) -> io::Result<std::fs::File> {
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
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
    fn links_of_a_candidate_are_copied_only_when_they_lead_inside() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("data")).unwrap();
        fs::write(place.path().join("data/real"), "x").unwrap();
        symlink("data/real", place.path().join("inside")).unwrap();
        symlink("../../etc/passwd", place.path().join("outside")).unwrap();
        symlink("/etc/passwd", place.path().join("absolute")).unwrap();
        let tree = workspace_under(place.path()).unwrap();
        assert_eq!(paths(&tree), ["data/real", "inside"]);
        assert_eq!(tree.left_out, [Path::new("absolute"), Path::new("outside")]);
    }

    #[test]
    fn links_of_the_tests_are_followed_but_not_in_a_circle() {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir_all(outside.path().join("tests/sub")).unwrap();
        fs::create_dir(outside.path().join("data")).unwrap();
        fs::write(outside.path().join("data/rows"), "x").unwrap();
        fs::write(outside.path().join("helper.py"), "x").unwrap();
        let tests = outside.path().join("tests");
        symlink("../helper.py", tests.join("helper.py")).unwrap();
        symlink(outside.path().join("data"), tests.join("data")).unwrap();
        symlink("..", tests.join("sub/up")).unwrap();
        symlink("..", tests.join("all")).unwrap();
        symlink("/no/such", tests.join("dead")).unwrap();
        let tree = tests_under(&tests).unwrap();
        assert_eq!(paths(&tree), ["all/data/rows", "all/helper.py", "data/rows", "helper.py"]);
        assert_eq!(tree.left_out, [Path::new("all/tests"), Path::new("dead"), Path::new("sub/up")]);
    }

    #[test]
    fn a_workspace_without_end_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let giant = fs::File::create(place.path().join("giant")).unwrap();
        giant.set_len(MAX_BYTES + 1).unwrap();
        assert!(matches!(workspace_under(place.path()), Err(NoTree::Excess(_))));
        giant.set_len(MAX_BYTES).unwrap();
        assert!(workspace_under(place.path()).is_ok());
        for index in 0..MAX_ENTRIES {
            fs::hard_link(place.path().join("giant"), place.path().join(index.to_string())).unwrap();
        }
        giant.set_len(0).unwrap();
        assert!(matches!(workspace_under(place.path()), Err(NoTree::Excess(_))));
    }

    #[test]
    fn what_is_no_file_any_more_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = place.path().join("link");
        symlink("/etc/passwd", &link).unwrap();
        for (name, source) in [("a", pipe), ("b", link)] {
            let file = File { path: name.into(), content: Content::FirstOf(10, source) };
            assert_eq!(write(place.path(), &file).unwrap(), Written::Unread);
        }
    }

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.files.iter().map(|file| file.path.to_str().unwrap()).collect()
    }

    #[test]
    fn what_tools_leave_behind_is_not_copied() {
        let tests = tempfile::tempdir().unwrap();
        for path in ["__pycache__/a.pyc", ".git/config", "env/pyvenv.cfg", "env/lib/a.py", "sub/a.py"] {
            let path = tests.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        assert_eq!(paths(&tests_under(tests.path()).unwrap()), ["sub/a.py"]);
        assert_eq!(paths(&workspace_under(tests.path()).unwrap()), ["sub/a.py"]);
    }

    #[test]
    fn what_is_there_is_not_written_over() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let file = |path: &str, text: &str| File { path: path.into(), content: Content::Bytes(text.into()) };
        let written = |path: &str, text: &str| write(scratch.path(), &file(path, text)).unwrap();
        assert_eq!(written("a/x.py", "first"), Written::Yes);
        assert_eq!(written("a/x.py", "second"), Written::Taken);
        assert_eq!(written("a/x.py/y.py", "third"), Written::Taken);
        assert_eq!(written(&"long".repeat(100), "fourth"), Written::Taken);
        assert_eq!(fs::read_to_string(scratch.path().join("a/x.py")).unwrap(), "first");
    }
}
