//! The files that a run begins with: those of the tests, those of the candidate, packed to be laid out.
//!
//! Links of a candidate are never followed out of what is copied; those of the tests, which are the user's own,
//! are.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

/// Directories of tools, which are never copied; virtual environments are not either.
const TOOL_DIRECTORIES: [&str; 6] =
    [".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "node_modules"];

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
/// As long as file systems allow.
const MAX_NAME_BYTES: usize = 255;
const MAX_PATH_BYTES: usize = 4000;
/// Tests are the user's own; this ends links that lead into the whole disk.
const MAX_TEST_ENTRIES: usize = 1_000_000;

/// A relative path that stays inside; `None` for any other.
pub fn inside(path: &str) -> Option<PathBuf> {
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

/// The files of one run, packed to be laid out inside the sandbox.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    entries: Vec<Entry>,
    /// Every path that is taken, and whether it is a directory.
    taken: HashMap<PathBuf, bool>,
    bytes: u64,
}

/// One file or link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    /// Where it is to be.
    pub(super) path: PathBuf,
    /// Its permissions; `None` for a link.
    pub(super) mode: Option<u32>,
    /// Its bytes, or where the link leads.
    pub(super) body: Vec<u8>,
}

impl Parcel {
    /// Packs a file where nothing is yet.
    pub(super) fn add(&mut self, file: &File) -> Result<Written, (PathBuf, io::Error)> {
        if !self.is_free(&file.path) {
            return Ok(Written::Taken);
        }
        let (mode, body) = match &file.content {
            Content::Bytes(bytes) => (Some(0o644), bytes.clone()),
            Content::LinkTo(target) => (None, target.as_os_str().as_bytes().to_vec()),
            Content::CopyOf(source) => std::fs::File::open(source)
                .and_then(|file| copy(file, u64::MAX))
                .map_err(|error| (source.clone(), error))?,
            Content::FirstOf(bytes, source) => match open(source).and_then(|file| copy(file, *bytes)) {
                Ok(copy) => copy,
                Err(_) => return Ok(Written::Unread),
            },
        };
        for above in file.path.ancestors().skip(1) {
            self.taken.insert(above.to_owned(), true);
        }
        self.taken.insert(file.path.clone(), false);
        self.bytes += body.len() as u64;
        self.entries.push(Entry { path: file.path.clone(), mode, body });
        Ok(Written::Yes)
    }

    fn is_free(&self, path: &Path) -> bool {
        !self.taken.contains_key(path)
            && path
                .ancestors()
                .skip(1)
                .all(|above| self.taken.get(above).is_none_or(|is_directory| *is_directory))
            && path.iter().all(|name| name.len() <= MAX_NAME_BYTES)
            && path.as_os_str().len() <= MAX_PATH_BYTES
    }

    /// Keeps only some of it; the paths of what was left out.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let (kept, left_out): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.entries).into_iter().partition(|entry| is_kept(&entry.path));
        self.entries = kept;
        left_out.into_iter().map(|entry| entry.path).collect()
    }

    /// All of it, in the order in which it was packed.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How much it is.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Permissions and bytes of an open file.
fn copy(file: std::fs::File, bytes: u64) -> io::Result<(Option<u32>, Vec<u8>)> {
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut body = Vec::new();
    file.take(bytes).read_to_end(&mut body)?;
    Ok((Some(mode), body))
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn pack(parcel: &mut Parcel, path: &str, text: &str) -> Written {
        let content = Content::Bytes(text.into());
        parcel.add(&File { path: path.into(), content }).unwrap()
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
    fn what_is_no_file_any_more_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let link = place.path().join("link");
        symlink("/etc/passwd", &link).unwrap();
        for (name, source) in [("a", pipe), ("b", link)] {
            let file = File { path: name.into(), content: Content::FirstOf(10, source) };
            assert_eq!(Parcel::default().add(&file).unwrap(), Written::Unread);
        }
    }

    #[test]
    fn what_is_there_is_not_written_over() {
        let mut parcel = Parcel::default();
        assert_eq!(pack(&mut parcel, "a/x.py", "first"), Written::Yes);
        assert_eq!(pack(&mut parcel, "a/x.py", "second"), Written::Taken);
        assert_eq!(pack(&mut parcel, "a/x.py/y.py", "third"), Written::Taken);
        assert_eq!(pack(&mut parcel, "a", "fourth"), Written::Taken);
        assert_eq!(pack(&mut parcel, &"long".repeat(100), "fifth"), Written::Taken);
        let kept: Vec<_> = parcel.entries().iter().map(|entry| entry.body.as_slice()).collect();
        assert_eq!(kept, [b"first"]);
    }

    #[test]
    fn nothing_is_laid_behind_a_link() {
        let mut parcel = Parcel::default();
        let link = File { path: "link".into(), content: Content::LinkTo("real".into()) };
        assert_eq!(parcel.add(&link).unwrap(), Written::Yes);
        assert_eq!(pack(&mut parcel, "link/x.py", "x"), Written::Taken);
    }
}
