//! Puts the tests and the candidate together, as they are to lie in the directory of a run.
//!
//! The tests are trusted and come first. The candidate adds files beside them and replaces only its own
//! module; what it brings in tests and configuration is left out.

use std::path::{Path, PathBuf};

use super::tree::{self, Content, Entry, File, NoTree, Parcel, Tree, Written, inside};
use super::{Candidate, Error, IsCancelled};

/// Files that tell pytest what to do.
const CONFIGURATION: [&str; 8] = [
    ".pytest.ini",
    ".pytest.toml",
    "conftest.py",
    "pyproject.toml",
    "pytest.ini",
    "pytest.toml",
    "setup.cfg",
    "tox.ini",
];

/// Where the tests come from.
#[derive(Clone, Debug)]
pub enum Tests {
    /// A directory, or one file, read at every run.
    Path(PathBuf),
    /// Paths, relative and staying inside, and contents.
    Files(Vec<(PathBuf, String)>),
}

impl Tests {
    /// Tests given as paths and contents; the path that does not stay inside, when there is one.
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let files =
            files.into_iter().map(|(path, text)| inside(&path).map(|inner| (inner, text)).ok_or(path));
        Ok(Self::Files(files.collect::<Result<_, _>>()?))
    }
}

/// The module that the tests import, as `pkg.mod`.
#[derive(Clone, Debug)]
pub struct Module {
    /// Where its package would be: `pkg/mod`.
    stem: PathBuf,
    /// Where its file would be: `pkg/mod.py`.
    file: PathBuf,
}

impl Module {
    /// Its name.
    pub fn name(&self) -> String {
        let parts: Vec<_> = self.stem.iter().map(|part| part.to_string_lossy()).collect();
        parts.join(".")
    }

    /// The module of this name; `None` for what cannot be the name of a module.
    pub fn parse(name: &str) -> Option<Self> {
        let is_name = |part: &str| {
            part.chars().all(|c| c == '_' || c.is_alphanumeric())
                && !part.starts_with(|c: char| c.is_ascii_digit())
        };
        let stem: PathBuf = name.split('.').collect();
        let is_module = name.split('.').all(|part| !part.is_empty() && is_name(part));
        // A candidate under the name of a test file or a conftest would be its own judge.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_test = last == "conftest" || last.starts_with("test_") || last.ends_with("_test");
        (is_module && !is_test).then(|| Self { file: stem.with_extension("py"), stem })
    }

    /// The file that is the module: a package's own where there is one.
    pub(super) fn main(&self, files: &[Entry]) -> String {
        let package = self.stem.join("__init__.py");
        let is_package = files.iter().any(|file| file.path == package);
        let path = if is_package { &package } else { &self.file };
        path.to_string_lossy().into_owned()
    }

    /// Whether a file is the module itself or part of it, if it is a package.
    pub(super) fn has(&self, path: &Path) -> bool {
        path.starts_with(&self.stem) || path == self.file
    }
}

/// The files of a run, and what was left out of them.
#[derive(Debug, Default)]
pub(super) struct Staged {
    /// All that is to be laid out.
    pub(super) parcel: Parcel,
    /// Python files that are the candidate's.
    pub(super) sources: Vec<PathBuf>,
    /// Files of the candidate that were left out, by their names.
    pub(super) left_out: Vec<String>,
    /// Links of the candidate that lead outside, and what of it could not be read.
    pub(super) unread: Vec<String>,
    /// Links of the tests that lead nowhere or in a circle.
    pub(super) dead_links: Vec<String>,
    /// Paths of the candidate that lead outside.
    pub(super) outside: Vec<String>,
    /// How many of the files are the tests'; these come first.
    pub(super) tests: usize,
    /// Whether the tests bring configuration.
    pub(super) is_configured: bool,
    /// What the candidate has too much of; nothing is laid out then.
    pub(super) excess: Option<String>,
}

/// Puts tests and candidate together; `most_bytes` is the room that there is.
pub(super) fn stage(
    tests: &Tests,
    module: &Module,
    candidate: &Candidate,
    most_bytes: u64,
    is_cancelled: &mut IsCancelled<'_>,
) -> Result<Staged, Error> {
    let mut staged = Staged::default();
    let files = match candidate_files(module, candidate, &mut staged) {
        Ok(tree) => {
            staged.unread = names(&tree.left_out);
            tree.files
        }
        Err(NoTree::Excess(what)) => {
            staged.excess = Some(what);
            return Ok(staged);
        }
        Err(NoTree::File(path, error)) => return Err((path, error).into()),
    };
    let tests = test_files(tests)?;
    staged.dead_links = names(&tests.left_out);
    for file in tests.files {
        if is_cancelled() {
            return Err(Error::Interrupted);
        }
        let is_replaced = module.has(&file.path) && files.iter().any(|own| own.path == file.path);
        if !is_replaced {
            staged.is_configured |= is_configuration(&file.path);
            staged.parcel.add(&file)?;
        }
    }
    staged.tests = staged.parcel.entries().len();
    for file in files {
        if is_cancelled() {
            return Err(Error::Interrupted);
        }
        let is_used = module.has(&file.path) || !is_reserved(&file.path);
        match if is_used { staged.parcel.add(&file)? } else { Written::Taken } {
            Written::Yes if file.path.extension().is_some_and(|extension| extension == "py") => {
                staged.sources.push(file.path);
            }
            Written::Yes => {}
            Written::Taken => staged.left_out.push(file.path.display().to_string()),
            Written::Unread => staged.unread.push(file.path.display().to_string()),
        }
        if staged.parcel.bytes() > most_bytes {
            staged.excess = Some(format!("the files of the run exceed {most_bytes} bytes"));
            return Ok(staged);
        }
    }
    Ok(staged)
}

impl Staged {
    /// Takes out what a process without tests needs: the candidate's files, and of the tests' what belongs to
    /// its module or to the packages that it is in.
    pub(super) fn take_candidate(&mut self, module: &Module) -> Vec<Entry> {
        let package = module.stem.iter().next().filter(|_| module.stem.iter().nth(1).is_some());
        let is_around = |path: &Path| {
            module.has(path)
                || (package.is_some_and(|package| path.starts_with(package)) && !is_reserved(path))
        };
        let (tests, own) = self.parcel.entries().split_at(self.tests.min(self.parcel.entries().len()));
        let around = tests.iter().filter(|file| is_around(&file.path));
        let files: Vec<Entry> = around.chain(own).cloned().collect();
        let own: Vec<PathBuf> = own.iter().map(|file| file.path.clone()).collect();
        self.parcel.retain(|path| !module.has(path) && !own.iter().any(|own| own == path));
        self.tests = self.parcel.entries().len();
        files
    }
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

pub(super) fn test_files(tests: &Tests) -> Result<Tree, Error> {
    match tests {
        Tests::Path(path) if path.is_dir() => tree::tests_under(path).map_err(|error| match error {
            NoTree::File(path, error) => Error::from((path, error)),
            NoTree::Excess(what) => Error::from((path.clone(), std::io::Error::other(what))),
        }),
        Tests::Path(path) => {
            let name = path.file_name().map(PathBuf::from).unwrap_or_default();
            Ok(tree_of(vec![File { path: name, content: Content::CopyOf(path.clone()) }]))
        }
        Tests::Files(files) => Ok(tree_of(
            files
                .iter()
                .map(|(path, text)| File { path: path.clone(), content: Content::Bytes(text.clone().into()) })
                .collect(),
        )),
    }
}

fn candidate_files(module: &Module, candidate: &Candidate, staged: &mut Staged) -> Result<Tree, NoTree> {
    match candidate {
        Candidate::Code(code) => {
            Ok(tree_of(vec![File { path: module.file.clone(), content: Content::Bytes(code.clone()) }]))
        }
        Candidate::Files(files) => {
            let mut inner = Vec::new();
            for (path, bytes) in files {
                match inside(path) {
                    Some(path) => inner.push(File { path, content: Content::Bytes(bytes.clone()) }),
                    None => staged.outside.push(path.clone()),
                }
            }
            Ok(tree_of(inner))
        }
        Candidate::Workspace(path) if path.is_dir() => tree::workspace_under(path),
        Candidate::Workspace(path) => tree::workspace_file(&module.file, path),
    }
}

fn tree_of(files: Vec<File>) -> Tree {
    Tree { files, left_out: Vec::new() }
}

/// Whether a file tells pytest what to do.
fn is_configuration(path: &Path) -> bool {
    path.file_name().is_some_and(|name| CONFIGURATION.iter().any(|own| name == *own))
}

/// Whether a file is a test, or bytecode that could stand for one, or tells pytest what to do.
fn is_reserved(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_configuration(path)
        || path.iter().any(|part| part == "__pycache__")
        || path.extension().is_some_and(|extension| extension == "pyc")
        || name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn files(files: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
    }

    /// Stages and returns what was left out, and the paths with their contents.
    fn staged(
        tests: &[(&str, &str)],
        module: &str,
        candidate: &Candidate,
    ) -> (Staged, Vec<(String, String)>) {
        let tests = tests.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let (tests, module) = (Tests::of(tests).unwrap(), Module::parse(module).unwrap());
        let staged = stage(&tests, &module, candidate, 1 << 20, &mut || false).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let entries = staged.parcel.entries().iter();
        let mut found: Vec<_> =
            entries.map(|entry| (entry.path.display().to_string(), text(&entry.body))).collect();
        found.sort();
        (staged, found)
    }

    fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn code_becomes_the_module_and_replaces_the_stub_of_the_tests() {
        let tests = [("pkg/mod.py", "stub"), ("pkg/__init__.py", ""), ("test_a.py", "t")];
        let (_, found) = staged(&tests, "pkg.mod", &Candidate::Code(b"code".to_vec()));
        assert_eq!(found, pairs(&[("pkg/__init__.py", ""), ("pkg/mod.py", "code"), ("test_a.py", "t")]));
    }

    #[test]
    fn a_candidate_cannot_touch_the_tests() {
        let candidate = Candidate::Files(files(&[
            ("solution.py", "code"),
            ("data.json", "forged"),
            ("./test_a.py", "forged"),
            ("test_more.py", "forged"),
            ("sub/conftest.py", "forged"),
            ("pytest.ini", "forged"),
            ("__pycache__/test_a.cpython-311-pytest-9.0.0.pyc", "forged"),
            ("test_a.pyc", "forged"),
            ("../outside.py", "forged"),
            ("helper.py", "fine"),
        ]));
        let (staged, found) = staged(&[("test_a.py", "t"), ("data.json", "d")], "solution", &candidate);
        assert_eq!(
            found,
            pairs(&[("data.json", "d"), ("helper.py", "fine"), ("solution.py", "code"), ("test_a.py", "t")])
        );
        assert_eq!(
            staged.left_out,
            [
                "data.json",
                "test_a.py",
                "test_more.py",
                "sub/conftest.py",
                "pytest.ini",
                "__pycache__/test_a.cpython-311-pytest-9.0.0.pyc",
                "test_a.pyc"
            ]
        );
        assert_eq!(staged.outside, ["../outside.py"]);
        assert_eq!(staged.sources.len(), 2);
    }

    #[test]
    fn a_package_is_the_candidates_as_a_whole() {
        let candidate = Candidate::Files(files(&[("pkg/__init__.py", "new"), ("pkg/util.py", "new")]));
        let tests = [("pkg/__init__.py", "old"), ("pkg/util.py", "old"), ("pkg/data.txt", "old")];
        let (_, found) = staged(&tests, "pkg", &candidate);
        assert_eq!(
            found,
            pairs(&[("pkg/__init__.py", "new"), ("pkg/data.txt", "old"), ("pkg/util.py", "new")])
        );
    }

    #[test]
    fn a_link_of_the_candidate_cannot_lead_into_the_tests() {
        let workspace = tempfile::tempdir().unwrap();
        fs::write(workspace.path().join("solution.py"), "code").unwrap();
        fs::create_dir(workspace.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", workspace.path().join("tests")).unwrap();
        let candidate = Candidate::Workspace(workspace.path().to_owned());
        let (staged, _) = staged(&[("tests/test_a.py", "t")], "solution", &candidate);
        assert_eq!(staged.left_out, ["tests"]);
    }

    #[test]
    fn a_candidate_without_end_is_refused() {
        let candidate = Candidate::Code(vec![b'#'; (1 << 20) + 1]);
        assert!(staged(&[], "solution", &candidate).0.excess.is_some());
    }

    #[test]
    fn only_names_of_modules_are_modules() {
        assert!(["a", "a.b_2", "_x", "é"].iter().all(|name| Module::parse(name).is_some()));
        assert!(
            ["", ".", "a.", "..a", "a/b", "2a", "a-b", "a b"]
                .iter()
                .all(|name| Module::parse(name).is_none())
        );
    }
}
