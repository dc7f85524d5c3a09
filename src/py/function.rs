//! [`FunctionRunner`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::convert::NewArgs;
use super::mark::on_tamper;
use super::repr::quoted;
use super::runner::{
    Any, CaseReader, Holding, Many, Names, Verdict, again, at_least_one, clock_of, fresh_of, paired,
    stops_at_failure,
};
use crate::outcome::SuiteResult;
use crate::runner::compare::{DEFAULT_TOLERANCE, check_tolerance};
use crate::runner::function::{Case, Expected, Function};
use crate::runner::value::{Agreement, Value};
use crate::runner::{Candidate, Judge, Module, Runner};
use crate::sandbox::Limits;

/// Judges a function by what it returns for given arguments: each case in a fresh contained process.
///
/// The expected values never enter the candidate's process (`suite.trust` is "isolated"): it gets the
/// arguments, hands back plain data, and the comparison is done outside. A right value, or the expected
/// exception, is PASSED; another value or exception is FAILED; a module that cannot be imported is ERROR
/// "collection" in every case; a crash or a limit is ERROR "crash", "timeout", "memory", "output" or
/// "disk" in the case it happened in, and the next cases run in a fresh process.
///
/// Args:
///     entry_point: What to call: "f", "Class.method" (of an instance made without arguments for each
///         call), or a name that only the candidate's class `Solution` has.
///     cases: Mappings with "args" (a sequence), "kwargs" (a mapping), and "expected" (plain data) or
///         "raises" (the name of an exception class), and where wanted "name", "severity" and "timeout_s";
///         or pairs of args and expected value; or the same as JSON text.
///     compare: "exact" (1, 1.0 and True are three values), "floats" (numbers within `tolerance`), or
///         "unordered" (the outermost list in any order).
///     tolerance: |a - b| <= tolerance * max(1, |b|), b the expected one; None means exact, or 1e-6 with
///         "floats".
///     nan_equal: Whether NaN is what a case that expects NaN wants.
///     sequences_equal: Whether a list is the same as a tuple of the same items, as for expected values
///         that came from JSON.
///     fresh: "process" calls each case in a process of its own; "program" all cases of a candidate in one,
///         which is faster and lets one call leave something for the next.
///     clock: What durations are: "elapsed" (less what the machine made the candidate wait for a processor) or
///         "cpu" (processor time, which needs `fresh="process"`).
///     module: The name under which the candidate is imported.
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
///     ValueError: A case that is none or not plain data, an unknown comparison or mechanism.
///
/// Example:
///     >>> from testgrad import FunctionRunner
///     >>> run = FunctionRunner("add", [((1, 2), 3), {"args": ["a", 1], "raises": "TypeError"}])
///     >>> run("def add(a, b): return a + b").all_passed
///     True
///     >>> run("def add(a, b): return 3").failing[0].message
///     'returned 3, expected TypeError to be raised'
#[pyclass(frozen, module = "testgrad")]
pub struct FunctionRunner {
    pub(super) any: Any,
    shown: String,
    kwargs: Py<PyDict>,
}

#[pymethods]
impl FunctionRunner {
    #[new]
    #[pyo3(signature = (entry_point, cases: "str | Iterable[tuple[Sequence[object], object] | Mapping[str, object]]", *,
                        compare="exact", tolerance=None, nan_equal=true, sequences_equal=false,
                        fresh="process", clock="elapsed", module="solution", limits=None, python=None, preload=Vec::new(),
                        env=None, seed=None, readable=Vec::new(), require=Names::of("partial"),
                        avoid=Names::default(), repeat=1, cache=0, stop_at=None, on_tamper="report"))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        py: Python<'_>,
        entry_point: String,
        cases: &Bound<'_, PyAny>,
        compare: &str,
        tolerance: Option<f64>,
        nan_equal: bool,
        sequences_equal: bool,
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
        let cases = match cases.is_instance_of::<PyString>() {
            true => py.import("json")?.call_method1("loads", (cases,))?,
            false => cases.clone(),
        };
        let list: Vec<Bound<'_, PyAny>> = cases.try_iter()?.collect::<PyResult<_>>()?;
        let kwargs = PyDict::new(py);
        kwargs.set_item("entry_point", &entry_point)?;
        kwargs.set_item("cases", PyList::new(py, &list)?)?;
        kwargs.set_item("compare", compare)?;
        kwargs.set_item("tolerance", tolerance)?;
        kwargs.set_item("nan_equal", nan_equal)?;
        kwargs.set_item("sequences_equal", sequences_equal)?;
        kwargs.set_item("fresh", fresh)?;
        kwargs.set_item("clock", clock)?;
        kwargs.set_item("module", module)?;
        kwargs.set_item("repeat", repeat)?;
        kwargs.set_item("cache", cache)?;
        kwargs.set_item("stop_at", stop_at)?;
        kwargs.set_item("on_tamper", on_tamper)?;
        let cases: Vec<Case> =
            list.iter().enumerate().map(|(index, case)| case_of(index, case)).collect::<PyResult<_>>()?;
        let held = Holding { limits, python, preload, env, seed, readable, require, avoid };
        held.describe(&kwargs)?;
        let no_module = || PyValueError::new_err(format!("module must be a dotted name, got {module:?}"));
        let agreement = agreement(compare, tolerance)?;
        let function = Function {
            contained: held.contained(py)?,
            entry_point,
            labels: cases.iter().map(|case| case.label.clone()).collect(),
            cases,
            agreement: Agreement { nan_equal, sequences_equal, ..agreement },
            fresh: fresh_of(fresh)?,
            clock: clock_of(clock, fresh)?,
            module: Module::parse(module).ok_or_else(no_module)?,
            stops_at_failure: stops_at_failure(stop_at)?,
        };
        let shown = format!(
            "<FunctionRunner of {} by {} cases>",
            quoted(py, &function.entry_point),
            function.cases.len()
        );
        let runner = Arc::new(Runner::new(
            Judge::Function(function),
            self::on_tamper(on_tamper)?,
            at_least_one("repeat", repeat)?,
            cache,
        ));
        Ok(Self { any: Any { runner, checker: None }, shown, kwargs: kwargs.unbind() })
    }

    /// Judges one candidate.
    ///
    /// Args:
    ///     candidate: The code of the module, or a mapping of relative paths to texts, or a path to the
    ///         workspace it was written in (or to the one file).
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

fn case_of(index: usize, case: &Bound<'_, PyAny>) -> PyResult<Case> {
    let reader = CaseReader::new(index, case, ["args", "expected"])?;
    let values = reader.value("args")?.unwrap_or(Value::List(Vec::new()));
    let positional = match values {
        Value::List(items) | Value::Tuple(items) => items,
        other => {
            return Err(PyValueError::new_err(format!(
                "cases[{index}]: args must be a list or tuple of arguments, got {}",
                other.type_name()
            )));
        }
    };
    let named = match reader.value("kwargs")? {
        None => Value::Dict(Vec::new()),
        Some(named @ Value::Dict(_)) => named,
        Some(other) => {
            let words = format!("cases[{index}]: kwargs must be a dict, got {}", other.type_name());
            return Err(PyValueError::new_err(words));
        }
    };
    let expected = match (reader.text("raises")?, reader.value("expected")?) {
        (Some(name), None) => Expected::Raises(name),
        (None, Some(value)) => Expected::Value(value),
        _ => {
            let words = format!("cases[{index}]: one of \"expected\" and \"raises\" must be there");
            return Err(PyValueError::new_err(words));
        }
    };
    let arguments = Value::Tuple(vec![Value::List(positional), named]);
    Ok(Case { label: reader.label()?, arguments, expected })
}

fn agreement(compare: &str, tolerance: Option<f64>) -> PyResult<Agreement> {
    let tolerance =
        tolerance.map(check_tolerance).transpose().map_err(|e| PyValueError::new_err(e.to_string()))?;
    let (tolerance, unordered) = match compare {
        "exact" => (tolerance, false),
        "floats" => (tolerance.or(Some(DEFAULT_TOLERANCE)), false),
        "unordered" => (tolerance, true),
        other => {
            return Err(PyValueError::new_err(format!(
                "compare must be \"exact\", \"floats\" or \"unordered\", got {other:?}"
            )));
        }
    };
    Ok(Agreement { tolerance, unordered, ..Agreement::default() })
}
