//! [`PytestRunner`] and [`run_pytest`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::convert::{NewArgs, Tuple};
use super::enums::wrong_type;
use super::mark::on_tamper;
use super::runner::{
    Any, Holding, Many, Names, Verdict, again, at_least_one, described, existing, interpreter, limit, paired,
    stops_at_failure,
};
use crate::outcome::SuiteResult;
use crate::runner::contained::{Contained, Known, inherited_environment};
use crate::runner::plan::{Expected, Plans};
use crate::runner::pytest::Pytest;
use crate::runner::rewritten::Rewritten;
use crate::runner::{Candidate, Judge, Module, Project, Runner, Tests};
use crate::sandbox::Limits;

/// Judges candidates by a real pytest, in a process of its own, contained like the candidate's.
///
/// The tests see the candidate through a mirror of its module, and it sees nothing of them (`suite.trust` is
/// "isolated"). Tests that cannot be apart from the code share a process with it: then `suite.trust` is
/// "shared", and `suite.warnings` says why. What the tests and the reference are decides that, never a candidate.
///
/// A test that passed is PASSED; a failed assertion or an exception in it is FAILED; a broken fixture,
/// import, crash or limit is ERROR with a reason ("fixture", "collection", "crash", "timeout", "memory",
/// "output", "disk", "interrupted"). When the process dies or hangs in a test, that test is the ERROR, the
/// results before it stand, and a new process goes on with the rest. A test that got no turn is ERROR
/// "not_run", never absent. A file that cannot be imported is one ERROR named after the file, or with
/// `reference` or `expected` the ERROR of each of its tests. Severity comes from the markers
/// `severity("critical")`, `critical`, `major` and `minor`. What held both is `suite.containment`.
///
/// Args:
///     tests: A directory, a file, or a mapping of relative paths to texts; a path is read at every call.
///     module: The module that the tests import, such as "solution" or "pkg.mod".
///     isolation: "process" keeps tests and pytest in one process and the candidate in another, a fresh one for
///         each test; "none" runs both in one.
///     limits: What a candidate may use.
///     python: The interpreter, 3.8 or later with pytest; None means this one.
///     preload: Modules to import before the candidate, once for many of them, such as "numpy".
///     coverage: Measure the share of the candidate's lines that ran, with coverage.py; tests and candidate then
///         share a process.
///     args: Further arguments for pytest.
///     plugins: The pytest plugins to load, as for its option `-p`; others are not loaded.
///     env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
///     seed: Seeds `random` and the hashes of strings; None means that only the hashes are fixed.
///     readable: Paths that the tests may read beside the system and the interpreter; the candidate may where it
///         shares their process.
///     require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
///     avoid: Mechanisms of containment not to use.
///     repeat: Judge so many times; a test that changes its mind is flaky and counts as its worst outcome.
///     cache: Remember so many suites, by the content of all files. Only for runs that always end alike.
///     stop_at: "first_failure" ends the run at the first test that does not pass.
///     on_tamper: What to do with a candidate that was seen to tamper with its judge or to try what containment
///         refuses (`suite.marks`): "report" says it, with "zero" no test counts as passed, with "no_verdict"
///         there is none.
///     hidden: Further tests, which no feedback shows: their names are in `suite.hidden`. Given as `tests` are.
///     reference: A candidate that is right. It is run once, before any other: its tests are then the ones that
///         each suite has, one that it does not skip counts as failed where it is skipped, and tests that do not
///         tell the same of it in a process of its own are run in one process with the candidate.
///     expected: The tests that each suite has, by their names or by a suite, in place of the reference's.
///
/// Raises:
///     ValueError: A module that is no name, a path of the tests that leads outside, an unknown mechanism.
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
    pub(super) any: Any,
    shown: String,
    kwargs: Py<PyDict>,
}

#[pymethods]
impl PytestRunner {
    #[new]
    #[pyo3(signature = (tests, *, module="solution", isolation="process", limits=None, python=None,
                        preload=Vec::new(), coverage=false, args=Vec::new(), plugins=Vec::new(), env=None,
                        seed=None, readable=Vec::new(), require=Names::of("partial"), avoid=Names::default(),
                        repeat=1, cache=0, stop_at=None, on_tamper="report", hidden=None,
                        reference: "str | PathLike[str] | Mapping[str, str] | None"=None,
                        expected: "Iterable[str] | SuiteResult | None"=None))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        py: Python<'_>,
        tests: Tests,
        module: &str,
        isolation: &str,
        limits: Option<Limits>,
        python: Option<PathBuf>,
        preload: Vec<String>,
        coverage: bool,
        args: Vec<String>,
        plugins: Vec<String>,
        env: Option<BTreeMap<String, String>>,
        seed: Option<u64>,
        readable: Vec<PathBuf>,
        require: Names,
        avoid: Names,
        repeat: usize,
        cache: usize,
        stop_at: Option<&str>,
        on_tamper: &str,
        hidden: Option<Tests>,
        reference: Option<&Bound<'_, PyAny>>,
        expected: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let is_isolated = match isolation {
            "process" => true,
            "none" => false,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "isolation must be \"process\" or \"none\", got {isolation:?}"
                )));
            }
        };
        let no_module = || {
            PyValueError::new_err(format!(
                "module must be a dotted name such as \"pkg.mod\", got {module:?}; it is not to be that of a test file"
            ))
        };
        let kwargs = PyDict::new(py);
        let shown = described("tests", &tests, &kwargs)?;
        kwargs.set_item("module", module)?;
        kwargs.set_item("isolation", isolation)?;
        kwargs.set_item("coverage", coverage)?;
        kwargs.set_item("args", Tuple(args.clone()))?;
        kwargs.set_item("plugins", Tuple(plugins.clone()))?;
        kwargs.set_item("repeat", repeat)?;
        kwargs.set_item("cache", cache)?;
        kwargs.set_item("stop_at", stop_at)?;
        kwargs.set_item("on_tamper", on_tamper)?;
        kwargs.set_item("reference", reference)?;
        if let Some(hidden) = &hidden {
            described("hidden", hidden, &kwargs)?;
        }
        let held = Holding { limits, python, preload, env, seed, readable, require, avoid };
        held.describe(&kwargs)?;
        let mut contained = held.contained(py)?;
        let mirrored = is_isolated.then(|| Contained {
            known: Known::default(),
            readable: Vec::new(),
            ..contained.clone()
        });
        contained.env.push(("PYTEST_DISABLE_PLUGIN_AUTOLOAD".to_owned(), "1".to_owned()));
        let pytest = Pytest {
            contained,
            mirrored,
            args,
            plugins,
            measures_coverage: coverage,
            stops_at_failure: stops_at_failure(stop_at)?,
            rewritten: Rewritten::default(),
            reference: reference.map(|reference| reference.extract()).transpose()?,
            expected: expected.map(|expected| expected_of(expected, &kwargs)).transpose()?,
            plans: Plans::default(),
            of_hidden: None,
        };
        let pytest = if hidden.is_some() { pytest.with_hidden() } else { pytest };
        let module = Module::parse(module).ok_or_else(no_module)?;
        let shown = format!("<PytestRunner of {} by {shown}>", module.name());
        let judge = Judge::Pytest { pytest: Box::new(pytest), tests, hidden, module };
        let runner =
            Arc::new(Runner::new(judge, self::on_tamper(on_tamper)?, at_least_one("repeat", repeat)?, cache));
        Ok(Self { any: Any { runner, checker: None }, shown, kwargs: kwargs.unbind() })
    }

    /// Judges one candidate.
    ///
    /// Args:
    ///     candidate: The code of the module, or a mapping of relative paths to texts, or a path to the
    ///         workspace it was written in (or to the one file). It lies beside the tests and replaces none
    ///         of them; tests and pytest configuration in it are not used.
    ///
    /// Raises:
    ///     NoVerdict: Our side failed: no such interpreter, no pytest in it, less containment than
    ///         required, arguments that pytest refuses.
    ///     FileNotFoundError: There is no such workspace.
    fn __call__(&self, py: Python<'_>, candidate: Candidate) -> PyResult<SuiteResult> {
        self.any.one(py, &candidate)
    }

    /// Judges many candidates at once.
    ///
    /// Args:
    ///     candidates: The candidates, as for a single call.
    ///     workers: How many run at a time, >= 1; None means one a core.
    ///     progress: Show a bar.
    ///     deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.
    ///
    /// Returns:
    ///     One suite a candidate, in their order; where our side failed, the `NoVerdict` that says why.
    ///
    /// Raises:
    ///     KeyboardInterrupt: With what was done until then as `results`.
    #[pyo3(signature = (candidates: "Iterable[str | PathLike[str] | Mapping[str, str]]", *, workers=None,
                        progress=false, deadline_s=None))]
    fn run_many(
        &self,
        py: Python<'_>,
        candidates: &Bound<'_, PyAny>,
        workers: Option<usize>,
        progress: bool,
        deadline_s: Option<f64>,
    ) -> PyResult<Vec<Verdict>> {
        Many { workers, progress, deadline_s }.run(py, &paired(candidates, &self.any)?)
    }

    fn __repr__(&self) -> &str {
        &self.shown
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        again::<Self>(py, &self.kwargs)
    }
}

/// The tests that a run must have a result of, by a suite or by their names.
fn expected_of(expected: &Bound<'_, PyAny>, kwargs: &Bound<'_, PyDict>) -> PyResult<Vec<Expected>> {
    if let Ok(suite) = expected.cast::<SuiteResult>() {
        kwargs.set_item("expected", suite)?;
        return Ok(Expected::of(suite.get()));
    }
    if expected.is_instance_of::<PyString>() {
        return Err(wrong_type("expected", "a suite or the names of the tests", expected));
    }
    let names: Vec<String> = expected.try_iter()?.map(|name| name?.extract()).collect::<PyResult<_>>()?;
    kwargs.set_item("expected", Tuple(names.clone()))?;
    Ok(names.into_iter().map(Expected::named).collect())
}

/// Runs a project's own tests where they are, with all plugins that are installed, and contains nothing.
///
/// Nothing is copied and nothing but what the tests themselves write is changed: no bytecode, no cache.
///
/// Args:
///     directory: The project.
///     args: Arguments for pytest, such as the files to run.
///     python: The interpreter, 3.8 or later with pytest; None means this one.
///     timeout_s: Wall time of the run in seconds, > 0.
///     env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
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
    let package: PathBuf = py.import("testgrad")?.getattr("__file__")?.extract()?;
    let own = env.unwrap_or_default().into_iter();
    let project = Project {
        python: interpreter(py, python)?,
        worker: package.with_file_name("_worker.py"),
        args,
        env: inherited_environment().into_iter().chain(own).map(|(n, v)| (n.into(), v.into())).collect(),
        timeout: limit("timeout_s", timeout_s)?,
    };
    super::runner::one(py, |is_cancelled| project.run(&directory, is_cancelled))
}
