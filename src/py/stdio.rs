//! [`StdioRunner`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::convert::NewArgs;
use super::enums::wrong_type;
use super::mark::on_tamper;
use super::runner::{
    Any, CaseReader, Holding, Many, Names, Verdict, again, at_least_one, clock_of, fresh_of, paired,
    stops_at_failure,
};
use crate::outcome::SuiteResult;
use crate::runner::compare::Comparison;
use crate::runner::contained::{Contained, Known};
use crate::runner::stdio::{Case, Checking, Stdio};
use crate::runner::{Candidate, Judge, Module, Runner};
use crate::sandbox::Limits;

/// Judges programs by what they print for given inputs: each case in a fresh contained process.
///
/// The expected outputs never enter the candidate's process (`suite.trust` is "isolated"). A case whose
/// output is right is PASSED; a wrong output is FAILED and its message names the first difference; a
/// program that raises, crashes or ends with another exit code than 0 is ERROR "crash", and a limit is
/// ERROR "timeout", "memory", "output" or "disk". A case that got no turn is ERROR "not_run".
///
/// Args:
///     cases: Pairs of input and output, or mappings with "input" and "output" and, where wanted, "name",
///         "severity" and "timeout_s".
///     compare: "trimmed" (lines, blanks at their ends ignored), "exact", "tokens" (words), "floats" (words,
///         numbers within `tolerance`), or "unordered" (lines in any order).
///     tolerance: For "floats": |a - b| <= tolerance * max(1, |b|), b the expected one.
///     checker: Where several outputs are right, in place of `compare`: a function of input, output and expected
///         output that returns True, or False or a str that says what is wrong; or the words of a command, which
///         is run contained with three more, the names of files with input, output and expected output, and ends
///         with exit code 0 where it is right and with 1 or 2 where it is wrong.
///     fresh: "process" runs each case in a process of its own; "program" runs all cases of a candidate in
///         one process, which is faster and lets one case leave something for the next.
///     clock: What durations are: "elapsed" (less what the machine made the candidate wait for a processor) or
///         "cpu" (processor time, which needs `fresh="process"`).
///     module: The module that is the program: "solution" is solution.py.
///     limits: What a candidate may use; `timeout_s` is for all cases, `test_timeout_s` for each.
///     python: The interpreter, 3.8 or later; None means this one.
///     preload: Modules to import before the candidate, once for many of them, such as "numpy".
///     env: Environment variables beside PATH, HOME, TMPDIR, LANG and TZ; the caller's own are not passed on.
///     seed: Seeds `random` and the hashes of strings; None means that only the hashes are fixed.
///     readable: Paths that the candidate may read beside the system and the interpreter.
///     require: The least containment, "full", "partial" or "weak", or mechanisms that must be enforced.
///     avoid: Mechanisms of containment not to use.
///     repeat: Judge so many times; a case that changes its mind is flaky and counts as its worst outcome.
///     cache: Remember so many suites, by the content of all files. Only for runs that always end alike.
///     stop_at: "first_failure" ends the run at the first case that does not pass.
///     on_tamper: What to do with a candidate that was seen to tamper with its judge or to try what containment
///         refuses (`suite.marks`): "report" says it, with "zero" no test counts as passed, with "no_verdict"
///         there is none.
///
/// Raises:
///     ValueError: A case that is none, an unknown comparison or mechanism.
///
/// Example:
///     >>> from testgrad import StdioRunner
///     >>> run = StdioRunner([("1 2", "3"), ("2 2", "4")])
///     >>> run("print(sum(map(int, input().split())))").all_passed
///     True
///     >>> run("print(3)").failing[0].name
///     'case[1]'
#[pyclass(frozen, module = "testgrad")]
pub struct StdioRunner {
    pub(super) any: Any,
    count: usize,
    kwargs: Py<PyDict>,
}

/// The words of a command; what is a file here is named by its whole path.
fn command_of(checker: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    if checker.is_callable() {
        return Ok(None);
    }
    let takes = "a function, or the words of a command";
    if checker.is_instance_of::<PyString>() {
        return Err(wrong_type("checker", takes, checker));
    }
    let words: Vec<String> = checker.extract().map_err(|_| wrong_type("checker", takes, checker))?;
    if words.is_empty() {
        return Err(PyValueError::new_err("checker must have words, got none"));
    }
    let whole = |word: String| match std::path::Path::new(&word).canonicalize() {
        Ok(path) if path.is_file() => path.to_string_lossy().into_owned(),
        _ => word,
    };
    Ok(Some(words.into_iter().map(whole).collect()))
}

#[pymethods]
impl StdioRunner {
    #[new]
    #[pyo3(signature = (cases: "Iterable[tuple[str, str] | Mapping[str, object]]", *, compare="trimmed", tolerance=None,
                        checker: "Callable[[str, str, str], bool | str] | Sequence[str] | None"=None, fresh="process",
                        clock="elapsed", module="solution", limits=None, python=None, preload=Vec::new(), env=None, seed=None,
                        readable=Vec::new(), require=Names::of("partial"), avoid=Names::default(), repeat=1,
                        cache=0, stop_at=None, on_tamper="report"))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        py: Python<'_>,
        cases: &Bound<'_, PyAny>,
        compare: &str,
        tolerance: Option<f64>,
        checker: Option<Py<PyAny>>,
        fresh: &str,
        clock: &str,
        module: &str,
        limits: Option<Limits>,
        python: Option<PathBuf>,
        preload: Vec<String>,
        env: Option<BTreeMap<String, String>>,
        seed: Option<u64>,
        readable: Vec<PathBuf>,
        require: Names,
        avoid: Names,
        repeat: usize,
        cache: usize,
        stop_at: Option<&str>,
        on_tamper: &str,
    ) -> PyResult<Self> {
        let list: Vec<Bound<'_, PyAny>> = cases.try_iter()?.collect::<PyResult<_>>()?;
        let kwargs = PyDict::new(py);
        kwargs.set_item("cases", PyList::new(py, &list)?)?;
        kwargs.set_item("compare", compare)?;
        kwargs.set_item("tolerance", tolerance)?;
        kwargs.set_item("checker", &checker)?;
        kwargs.set_item("fresh", fresh)?;
        kwargs.set_item("clock", clock)?;
        kwargs.set_item("module", module)?;
        kwargs.set_item("repeat", repeat)?;
        kwargs.set_item("cache", cache)?;
        kwargs.set_item("stop_at", stop_at)?;
        kwargs.set_item("on_tamper", on_tamper)?;
        let cases: Vec<Case> = list
            .iter()
            .enumerate()
            .map(|(index, case)| {
                let reader = CaseReader::new(index, case, ["input", "output"])?;
                Ok(Case {
                    label: reader.label()?,
                    input: reader.bytes("input")?,
                    output: reader.bytes("output")?,
                })
            })
            .collect::<PyResult<_>>()?;
        let argv = checker.as_ref().map(|checker| command_of(checker.bind(py))).transpose()?.flatten();
        let held = Holding { limits, python, preload, env, seed, readable, require, avoid };
        held.describe(&kwargs)?;
        let no_module = || PyValueError::new_err(format!("module must be a dotted name, got {module:?}"));
        let contained = held.contained(py)?;
        let checking = argv.map(|argv| {
            let readable = argv.iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
            let contained = Contained { known: Known::default(), readable, ..contained.clone() };
            Box::new(Checking { contained, argv })
        });
        let checker = checker.filter(|_| checking.is_none());
        let stdio = Stdio {
            contained,
            checking,
            labels: cases.iter().map(|case| case.label.clone()).collect(),
            cases,
            comparison: Comparison::parse(compare, tolerance)
                .map_err(|error| PyValueError::new_err(error.to_string()))?,
            fresh: fresh_of(fresh)?,
            clock: clock_of(clock, fresh)?,
            module: Module::parse(module).ok_or_else(no_module)?,
            stops_at_failure: stops_at_failure(stop_at)?,
        };
        let count = stdio.cases.len();
        let runner = Arc::new(Runner::new(
            Judge::Stdio(stdio),
            self::on_tamper(on_tamper)?,
            at_least_one("repeat", repeat)?,
            cache,
        ));
        let any = Any { runner, checker: checker.map(Arc::new) };
        Ok(Self { any, count, kwargs: kwargs.unbind() })
    }

    /// Judges one program.
    ///
    /// Args:
    ///     candidate: The code of the program, or a mapping of relative paths to texts, or a path to the
    ///         workspace it was written in (or to the one file).
    ///
    /// Raises:
    ///     NoVerdict: Our side failed: no such interpreter, less containment than required, a checker that
    ///         raised.
    ///     FileNotFoundError: There is no such workspace.
    fn __call__(&self, py: Python<'_>, candidate: Candidate) -> PyResult<SuiteResult> {
        self.any.one(py, &candidate)
    }

    /// Judges many programs at once.
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

    fn __repr__(&self) -> String {
        format!("<StdioRunner by {} cases>", self.count)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        again::<Self>(py, &self.kwargs)
    }
}
