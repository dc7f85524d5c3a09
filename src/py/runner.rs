//! [`PytestRunner`] and [`run_pytest`]: candidates and settings from Python, suites to Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::ops::Bound as Limit;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};
use pyo3::{type_hint_identifier, type_hint_subscript, type_hint_union};

use super::convert::{NewArgs, Tuple};
use super::enums::wrong_type;
use super::repr::quoted;
use crate::outcome::{self, SuiteResult, check_range};
use crate::runner::pytest::{Pytest, inherited_environment};
use crate::runner::{self, Candidate, Error, Module, Tests};

const TEXT: PyStaticExpr = type_hint_identifier!("builtins", "str");
const TEXT_PATH_OR_FILES: PyStaticExpr = type_hint_union!(
    TEXT,
    type_hint_subscript!(type_hint_identifier!("os", "PathLike"), TEXT),
    type_hint_subscript!(type_hint_identifier!("collections.abc", "Mapping"), TEXT, TEXT)
);

impl<'a, 'py> FromPyObject<'a, 'py> for Tests {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = TEXT_PATH_OR_FILES;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(files) = object.cast::<PyMapping>() {
            let files: Vec<(String, String)> = files.items()?.extract()?;
            return Self::of(files).map_err(|path| {
                PyValueError::new_err(format!("tests: {path:?} is not a relative path that stays inside"))
            });
        }
        match object.extract::<PathBuf>() {
            Ok(path) => Ok(Self::Path(existing("tests", &path)?)),
            Err(_) => Err(wrong_type("tests", "a path or a mapping of paths to texts", &object)),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Candidate {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = TEXT_PATH_OR_FILES;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(code) = object.cast::<PyString>() {
            return Ok(Self::Code(bytes_of(&code)?));
        }
        if let Ok(files) = object.cast::<PyMapping>() {
            let mut inner = Vec::new();
            for item in files.items()? {
                let (path, text): (Bound<'_, PyString>, Bound<'_, PyString>) = item.extract()?;
                inner.push((String::from_utf8_lossy(&bytes_of(&path)?).into_owned(), bytes_of(&text)?));
            }
            return Ok(Self::Files(inner));
        }
        match object.extract::<PathBuf>() {
            Ok(path) => Ok(Self::Workspace(existing("candidate", &path)?)),
            Err(_) => Err(wrong_type("candidate", "str, a path or a mapping of paths to texts", &object)),
        }
    }
}

/// The bytes of a text, also of one that is no UTF-8: a broken candidate is the candidate's fault, not ours.
fn bytes_of(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    if let Ok(text) = text.to_str() {
        return Ok(text.as_bytes().to_vec());
    }
    let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// An absolute path to something that is there; links stay as they are.
fn existing(argument: &str, path: &Path) -> PyResult<PathBuf> {
    if path.exists() {
        Ok(std::path::absolute(path)?)
    } else {
        Err(PyFileNotFoundError::new_err(format!(
            "{argument}: {}: no such file or directory",
            path.display()
        )))
    }
}

/// A limit in seconds, > 0 and at most 30 years.
fn limit(argument: &'static str, seconds: f64) -> Result<Duration, outcome::Error> {
    let range = (Limit::Excluded(0.0), Limit::Included(1e9));
    Ok(Duration::from_secs_f64(check_range(argument, "> 0 and at most 1e9", range, seconds)?))
}

/// The interpreter that was asked for, else this one.
fn interpreter(py: Python<'_>, python: Option<PathBuf>) -> PyResult<PathBuf> {
    let python = match python {
        Some(python) => python,
        None => py.import("sys")?.getattr("executable")?.extract::<Option<PathBuf>>()?.unwrap_or_default(),
    };
    match python.components().count() {
        0 => Err(PyValueError::new_err("this interpreter does not know its own path; give python=")),
        1 => Ok(python), // a name to be looked up in PATH
        _ => Ok(std::path::absolute(python)?),
    }
}

/// The environment of a run; Python lets nobody change ours while it is read.
fn environment(own: &BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    let own = own.iter().map(|(name, value)| (name.into(), value.into()));
    inherited_environment().into_iter().chain(own).collect()
}

/// `_worker.py` of this package.
fn worker(py: Python<'_>) -> PyResult<PathBuf> {
    let package: PathBuf = py.import("testgrad")?.getattr("__file__")?.extract()?;
    Ok(package.with_file_name("_worker.py"))
}

/// Judges many items without the interpreter; Ctrl-C is asked for between.
///
/// Only this thread waits for the interpreter, which another thread may keep for long; those that read what a
/// candidate says never do.
fn interruptible<T: Sync, R: Send>(
    py: Python<'_>,
    items: &[T],
    workers: NonZeroUsize,
    judge: impl Fn(&T, &mut runner::IsCancelled<'_>) -> R + Sync,
) -> PyResult<Vec<R>> {
    let mut interrupt = None;
    let result = py.detach(|| {
        let mut is_cancelled = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                interrupt = Some(error);
                true
            }
        };
        runner::run_many(items, workers, &mut is_cancelled, &judge)
    });
    match interrupt {
        Some(error) => Err(error),
        None => Ok(result?),
    }
}

/// The same for one judgement.
fn one(
    py: Python<'_>,
    judge: impl Fn(&mut runner::IsCancelled<'_>) -> Result<SuiteResult, Error> + Sync,
) -> PyResult<SuiteResult> {
    let judged = interruptible(py, &[()], NonZeroUsize::MIN, |(), is_cancelled| judge(is_cancelled))?;
    Ok(judged.into_iter().next().unwrap_or(Err(Error::Interrupted))?)
}

/// `SuiteResult | NoVerdict`: our own failure as a value.
pub struct Verdict(Result<SuiteResult, Error>);

impl<'py> IntoPyObject<'py> for Verdict {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr =
        type_hint_union!(SuiteResult::OUTPUT_TYPE, type_hint_identifier!("testgrad.errors", "NoVerdict"));

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0 {
            Ok(suite) => Ok(Bound::new(py, suite)?.into_any()),
            Err(error) => Ok(PyErr::from(error).into_value(py).into_bound(py).into_any()),
        }
    }
}

/// Judges candidates by a real pytest: each in a process of its own, in a fresh directory beside a copy
/// of the tests.
///
/// A test that passed is PASSED; a failed assertion or an exception in it is FAILED; a broken fixture,
/// import, crash or time limit is ERROR with a reason ("fixture", "collection", "crash", "timeout",
/// "interrupted"). When the process dies or hangs in a test, that test is the ERROR, the results before
/// it stand, and a new process goes on with the rest. A test that got no turn is ERROR "not_run", never
/// absent. A file that cannot be imported is one ERROR named after the file. Severity comes from the
/// markers `severity("critical")`, `critical`, `major` and `minor`. Tests and candidate share a process
/// (`suite.trust` is "shared"): a candidate that wants to cheat can.
///
/// Args:
///     tests: A directory, a file, or a mapping of relative paths to texts; a path is read at every call.
///     module: The module that the tests import, such as "solution" or "pkg.mod".
///     isolation: "none".
///     python: The interpreter, 3.8 or later with pytest; None means this one.
///     timeout_s: Wall time of a run in seconds, > 0.
///     test_timeout_s: Wall time of one test in seconds, > 0; None means the run's.
///     coverage: Measure the share of the candidate's lines that ran, with coverage.py.
///     args: Further arguments for pytest.
///     plugins: The pytest plugins to load, as for its option `-p`; others are not loaded.
///     env: Environment variables beside PATH, HOME, TMPDIR and LANG; the caller's own are not passed on.
///
/// Raises:
///     ValueError: A limit that is not > 0, a module that is no name, a path of the tests that leads
///         outside.
///     FileNotFoundError: There are no such tests.
///
/// Example:
///     >>> from testgrad import PytestRunner
///     >>> tests = {"test_add.py": "from solution import add\ndef test_add(): assert add(1, 2) == 3"}
///     >>> run = PytestRunner(tests)
///     >>> run("def add(a, b): return a + b").all_passed
///     True
///     >>> run("def add(a, b): return a - b").failing[0].message
///     'assert -1 == 3\n +  where -1 = add(1, 2)'
#[pyclass(frozen, module = "testgrad")]
pub struct PytestRunner {
    tests: Tests,
    module: Module,
    python: Option<PathBuf>,
    env: BTreeMap<String, String>,
    pytest: Pytest,
}

#[pymethods]
impl PytestRunner {
    #[new]
    #[pyo3(signature = (tests, *, module="solution", isolation="none", python=None, timeout_s=10.0,
                        test_timeout_s=None, coverage=false, args=Vec::new(), plugins=Vec::new(), env=None))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        py: Python<'_>,
        tests: Tests,
        module: &str,
        isolation: &str,
        python: Option<PathBuf>,
        timeout_s: f64,
        test_timeout_s: Option<f64>,
        coverage: bool,
        args: Vec<String>,
        plugins: Vec<String>,
        env: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        if isolation != "none" {
            return Err(PyValueError::new_err(format!(
                "isolation must be \"none\", got {isolation:?}: tests and candidate run in one process"
            )));
        }
        let no_module = || {
            PyValueError::new_err(format!(
                "module must be a dotted name such as \"pkg.mod\", got {module:?}; it is not to be that of a test file"
            ))
        };
        let env = env.unwrap_or_default();
        Ok(Self {
            tests,
            module: Module::parse(module).ok_or_else(no_module)?,
            pytest: Pytest {
                python: interpreter(py, python.clone())?,
                worker: worker(py)?,
                args,
                plugins: Some(plugins),
                env: environment(&env),
                place: std::env::temp_dir(),
                timeout: limit("timeout_s", timeout_s)?,
                test_timeout: test_timeout_s.map(|s| limit("test_timeout_s", s)).transpose()?,
                measures_coverage: coverage,
            },
            python,
            env,
        })
    }

    /// Judges one candidate.
    ///
    /// Args:
    ///     candidate: The code of the module, or a mapping of relative paths to texts, or a path to the
    ///         workspace it was written in (or to the one file). It lies beside the tests and replaces none
    ///         of them; tests and pytest configuration in it are not used.
    ///
    /// Raises:
    ///     NoVerdict: Our side failed: no such interpreter, no pytest in it, no room, arguments that pytest
    ///         refuses.
    ///     FileNotFoundError: There is no such workspace.
    fn __call__(&self, py: Python<'_>, candidate: Candidate) -> PyResult<SuiteResult> {
        one(py, |is_cancelled| self.pytest.judge(&self.tests, &self.module, &candidate, is_cancelled))
    }

    /// Judges many candidates at once.
    ///
    /// Args:
    ///     candidates: The candidates, as for a single call.
    ///     workers: How many run at a time, >= 1; None means one a core.
    ///
    /// Returns:
    ///     One suite a candidate, in their order; where our side failed, the `NoVerdict` that says why.
    #[pyo3(signature = (candidates: "Iterable[str | PathLike[str] | Mapping[str, str]]", *, workers=None))]
    fn run_many(
        &self,
        py: Python<'_>,
        candidates: &Bound<'_, PyAny>,
        workers: Option<usize>,
    ) -> PyResult<Vec<Verdict>> {
        let candidates: Vec<Candidate> =
            candidates.try_iter()?.map(|item| item?.extract()).collect::<PyResult<_>>()?;
        let no_workers = || PyValueError::new_err("workers must be >= 1, got 0");
        let workers = match workers {
            Some(workers) => NonZeroUsize::new(workers).ok_or_else(no_workers)?,
            None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        let judge = |candidate: &Candidate, is_cancelled: &mut runner::IsCancelled<'_>| {
            Verdict(self.pytest.judge(&self.tests, &self.module, candidate, is_cancelled))
        };
        interruptible(py, &candidates, workers, judge)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let tests = match &self.tests {
            Tests::Path(path) => quoted(py, &path.display().to_string()),
            Tests::Files(files) => format!("{} files", files.len()),
        };
        format!("<PytestRunner of {} by {tests}>", self.module.name())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let pytest = &self.pytest;
        let kwargs = PyDict::new(py);
        match &self.tests {
            Tests::Path(path) => kwargs.set_item("tests", path)?,
            Tests::Files(files) => {
                let tests = PyDict::new(py);
                for (path, text) in files {
                    tests.set_item(path.as_os_str(), text)?;
                }
                kwargs.set_item("tests", tests)?;
            }
        }
        kwargs.set_item("module", self.module.name())?;
        kwargs.set_item("python", &self.python)?;
        kwargs.set_item("timeout_s", pytest.timeout.as_secs_f64())?;
        kwargs.set_item("test_timeout_s", pytest.test_timeout.map(|t| t.as_secs_f64()))?;
        kwargs.set_item("coverage", pytest.measures_coverage)?;
        kwargs.set_item("args", Tuple(pytest.args.clone()))?;
        kwargs.set_item("plugins", Tuple(pytest.plugins.clone().unwrap_or_default()))?;
        kwargs.set_item("env", &self.env)?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}

/// Runs a project's own tests where they are, with all plugins that are installed.
///
/// Nothing is copied and nothing but what the tests themselves write is changed: no bytecode, no cache.
///
/// Args:
///     directory: The project.
///     args: Arguments for pytest, such as the files to run.
///     python: The interpreter, 3.8 or later with pytest; None means this one.
///     timeout_s: Wall time of the run in seconds, > 0.
///     env: Environment variables beside PATH, HOME, TMPDIR and LANG; the caller's own are not passed on.
///
/// Raises:
///     NoVerdict: Our side failed: no such interpreter, no pytest in it, arguments that pytest refuses.
///     FileNotFoundError: There is no such directory.
#[pyfunction]
#[pyo3(signature = (directory, *, args=Vec::new(), python=None, timeout_s=600.0, env=None))]
pub fn run_pytest(
    py: Python<'_>,
    directory: PathBuf,
    args: Vec<String>,
    python: Option<PathBuf>,
    timeout_s: f64,
    env: Option<BTreeMap<String, String>>,
) -> PyResult<SuiteResult> {
    let directory = existing("directory", &directory)?;
    let pytest = Pytest {
        python: interpreter(py, python)?,
        worker: worker(py)?,
        args,
        plugins: None,
        env: environment(&env.unwrap_or_default()),
        place: std::env::temp_dir(),
        timeout: limit("timeout_s", timeout_s)?,
        test_timeout: None,
        measures_coverage: false,
    };
    one(py, |is_cancelled| pytest.run_project(&directory, is_cancelled))
}

/// Ends all runs of this process that are under way, on whatever thread: each raises `NoVerdict`.
///
/// Waits at most `patience_s` seconds for them to have cleaned up.
#[pyfunction]
#[pyo3(signature = (patience_s=0.0))]
pub fn _cancel_runs(py: Python<'_>, patience_s: f64) -> PyResult<()> {
    let patience = Duration::from_secs_f64(check_range("patience_s", "0 to 60", 0.0..=60.0, patience_s)?);
    py.detach(|| runner::cancel_all(patience));
    Ok(())
}
