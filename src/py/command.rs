//! [`CommandRunner`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{NewArgs, Tuple};
use super::runner::{Any, Holding, Many, Names, Verdict, again, at_least_one, described, paired};
use crate::mark::OnTamper;
use crate::outcome::SuiteResult;
use crate::runner::command::Command;
use crate::runner::{Candidate, Judge, Runner, Tests};
use crate::sandbox::Limits;

/// Judges candidates by a command, contained, in a fresh directory beside a copy of the tests.
///
/// The suite has one test, named after the command: PASSED when it ends with exit code 0, else FAILED with
/// the end of what it printed, or ERROR with a reason when it met a limit. Nothing but the exit code is
/// read, which a candidate that runs inside the command can forge (`suite.trust` is "reported").
///
/// Args:
///     argv: The program, by a path or a name to be looked up in PATH, and its arguments.
///     tests: A directory, a file, or a mapping of relative paths to texts; a path is read at every call.
///     replaces: The files of the tests that a candidate may replace; a candidate that is only code
///         becomes the first of them.
///     limits: What the command may use.
///     python: The interpreter whose worker starts the command; None means this one.
///     env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
///     readable: Paths that may be read beside the system: tool chains, caches of packages.
///     require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
///     avoid: Mechanisms of containment not to use.
///     repeat: Judge so many times; a command that changes its mind is flaky.
///     cache: Remember so many suites, by the content of all files. Only for runs that always end alike.
///
/// Raises:
///     ValueError: No command, a path that leads outside, an unknown mechanism.
///     FileNotFoundError: There are no such tests.
///
/// Example:
///     >>> from testgrad import CommandRunner
///     >>> run = CommandRunner(["grep", "-q", "hello", "greeting.txt"], {}, replaces=["greeting.txt"])
///     >>> run("hello world").all_passed, run("good bye").all_passed
///     (True, False)
#[pyclass(frozen, module = "testgrad")]
pub struct CommandRunner {
    pub(super) any: Any,
    shown: String,
    kwargs: Py<PyDict>,
}

#[pymethods]
impl CommandRunner {
    #[new]
    #[pyo3(signature = (argv: "Sequence[str]", tests, *, replaces: "Sequence[str]"=vec!["solution.py".to_owned()], limits=None, python=None, env=None,
                        readable=Vec::new(), require=Names::of("partial"), avoid=Names::default(), repeat=1,
                        cache=0))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        py: Python<'_>,
        argv: Vec<String>,
        tests: Tests,
        replaces: Vec<String>,
        limits: Option<Limits>,
        python: Option<PathBuf>,
        env: Option<BTreeMap<String, String>>,
        readable: Vec<PathBuf>,
        require: Names,
        avoid: Names,
        repeat: usize,
        cache: usize,
    ) -> PyResult<Self> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(PyValueError::new_err("argv must name a program"));
        }
        let inner: Result<Vec<PathBuf>, &String> =
            replaces.iter().map(|path| crate::runner::inside(path).ok_or(path)).collect();
        let inner = inner.map_err(|path| {
            PyValueError::new_err(format!("replaces: {path:?} is not a relative path that stays inside"))
        })?;
        if inner.is_empty() {
            return Err(PyValueError::new_err("replaces must name at least one file"));
        }
        let kwargs = PyDict::new(py);
        kwargs.set_item("argv", Tuple(argv.clone()))?;
        described("tests", &tests, &kwargs)?;
        kwargs.set_item("replaces", Tuple(replaces))?;
        kwargs.set_item("repeat", repeat)?;
        kwargs.set_item("cache", cache)?;
        let held = Holding { limits, python, preload: Vec::new(), env, seed: None, readable, require, avoid };
        held.describe(&kwargs)?;
        for name in ["preload", "seed"] {
            kwargs.del_item(name)?;
        }
        let shown = format!("<CommandRunner of {}>", argv.join(" "));
        let command = Command { contained: held.contained(py)?, argv, tests, replaces: inner };
        let runner = Arc::new(Runner::new(
            Judge::Command(command),
            OnTamper::Report,
            at_least_one("repeat", repeat)?,
            cache,
        ));
        Ok(Self { any: Any { runner, checker: None }, shown, kwargs: kwargs.unbind() })
    }

    /// Judges one candidate.
    ///
    /// Args:
    ///     candidate: Code, or a mapping of relative paths to texts, or a path to a workspace or to one file.
    ///         It lies beside the tests and replaces none of them but those in `replaces`.
    ///
    /// Raises:
    ///     NoVerdict: Our side failed: no such interpreter, less containment than required.
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
