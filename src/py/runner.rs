//! What all runners share: candidates and settings from Python, suites to Python, many at once.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::ops::Bound as Limit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyFileNotFoundError, PyTypeError, PyValueError};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString};
use pyo3::{type_hint_identifier, type_hint_subscript, type_hint_union};

use super::command::CommandRunner;
use super::convert::{NewArgs, Tuple};
use super::enums::wrong_type;
use super::function::FunctionRunner;
use super::pytest::PytestRunner;
use super::repr::quoted;
use super::stdio::StdioRunner;
use crate::outcome::{self, SuiteResult, check_range};
use crate::runner::cases::{Clock, Fresh, Label};
use crate::runner::contained::{Contained, Known, inherited_environment, launcher};
use crate::runner::stdio::Checker;
use crate::runner::value::Value;
use crate::runner::{self, Candidate, Error, Runner, Tests};
use crate::sandbox::Limits;

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
pub(super) fn existing(argument: &str, path: &Path) -> PyResult<PathBuf> {
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
pub(super) fn limit(argument: &'static str, seconds: f64) -> Result<Duration, outcome::Error> {
    let range = (Limit::Excluded(0.0), Limit::Included(1e9));
    Ok(Duration::from_secs_f64(check_range(argument, "> 0 and at most 1e9", range, seconds)?))
}

/// The interpreter that was asked for, else this one.
pub(super) fn interpreter(py: Python<'_>, python: Option<PathBuf>) -> PyResult<PathBuf> {
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

/// One name or several.
#[derive(Clone, Debug, Default)]
pub struct Names(pub Vec<String>);

impl<'a, 'py> FromPyObject<'a, 'py> for Names {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        TEXT,
        type_hint_subscript!(type_hint_identifier!("collections.abc", "Sequence"), TEXT)
    );

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>() {
            Ok(name) => Ok(Self(vec![name])),
            Err(_) => Ok(Self(object.extract()?)),
        }
    }
}

impl Names {
    /// The names in a text, separated by blanks.
    pub fn of(names: &str) -> Self {
        Self(names.split(' ').map(str::to_owned).collect())
    }
}

/// How candidates are held, as Python says it.
pub(super) struct Holding {
    pub(super) limits: Option<Limits>,
    pub(super) python: Option<PathBuf>,
    pub(super) preload: Vec<String>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) seed: Option<u64>,
    pub(super) readable: Vec<PathBuf>,
    pub(super) require: Names,
    pub(super) avoid: Names,
}

impl Holding {
    /// The same for the core; Python lets nobody change our environment while it is read.
    pub(super) fn contained(self, py: Python<'_>) -> PyResult<Contained> {
        let package: PathBuf = py.import("testgrad")?.getattr("__file__")?.extract()?;
        let extension: PathBuf = py.import("testgrad._testgrad")?.getattr("__file__")?.extract()?;
        let own = interpreter(py, None)?;
        let mut env = inherited_environment();
        if let Some(seed) = self.seed {
            env.retain(|(name, _)| name != "PYTHONHASHSEED");
            env.push(("PYTHONHASHSEED".to_owned(), (seed % (1 << 32)).to_string()));
        }
        for (name, value) in self.env.unwrap_or_default() {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        let readable = self.readable.iter().map(|path| existing("readable", path));
        let contained = Contained {
            python: interpreter(py, self.python)?,
            limits: self.limits.unwrap_or_default(),
            preload: self.preload,
            env,
            seed: self.seed,
            readable: readable.collect::<PyResult<_>>()?,
            require: self.require.0,
            avoid: self.avoid.0,
            launcher: launcher(&own, &extension),
            package: package.parent().map(Path::to_owned).unwrap_or_default(),
            known: Known::default(),
        };
        contained.check().map_err(PyValueError::new_err)?;
        Ok(contained)
    }
}

/// Whether a run ends at the first test that does not pass.
pub(super) fn stops_at_failure(stop_at: Option<&str>) -> PyResult<bool> {
    match stop_at {
        None => Ok(false),
        Some("first_failure") => Ok(true),
        Some(other) => {
            Err(PyValueError::new_err(format!("stop_at must be \"first_failure\" or None, got {other:?}")))
        }
    }
}

/// How often a candidate is judged, >= 1.
pub(super) fn at_least_one(argument: &str, count: usize) -> PyResult<NonZeroUsize> {
    NonZeroUsize::new(count).ok_or_else(|| PyValueError::new_err(format!("{argument} must be >= 1, got 0")))
}

/// A Python function that judges outputs: `(input, output, expected) -> bool | str`.
pub(super) fn asked(checker: &Py<PyAny>) -> Box<Checker<'_>> {
    Box::new(move |input, output, expected| {
        Python::attach(|py| {
            let texts = [input, output, expected].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let [input, output, expected] = texts;
            let said = checker.bind(py).call1((input, output, expected))?;
            if let Ok(is_right) = said.extract::<bool>() {
                return Ok(if is_right { Ok(()) } else { Err("the checker refused the output".to_owned()) });
            }
            match said.extract::<String>() {
                Ok(why) => Ok(Err(why)),
                Err(_) => {
                    Err(wrong_type("what the checker returns", "True, False or a str that says why", &said))
                }
            }
        })
        .map_err(|error: PyErr| Error::Checker { words: error.to_string() })
    })
}

/// A runner of any kind, with the function that judges its outputs.
#[derive(Clone)]
pub(super) struct Any {
    pub(super) runner: Arc<Runner>,
    pub(super) checker: Option<Arc<Py<PyAny>>>,
}

impl Any {
    fn judge(
        &self,
        candidate: &Candidate,
        is_cancelled: &mut runner::IsCancelled<'_>,
    ) -> Result<SuiteResult, Error> {
        let checker = self.checker.as_deref().map(asked);
        self.runner.run(candidate, checker.as_deref(), is_cancelled)
    }

    /// Judges one candidate without the interpreter; Ctrl-C is asked for between.
    pub(super) fn one(&self, py: Python<'_>, candidate: &Candidate) -> PyResult<SuiteResult> {
        let judge = |(): &(), is_cancelled: &mut runner::IsCancelled<'_>| self.judge(candidate, is_cancelled);
        let (mut judged, interrupt) = interruptible(py, &[()], NonZeroUsize::MIN, &mut |_| Ok(()), judge)?;
        match interrupt {
            Some(error) => Err(error),
            None => Ok(judged.pop().flatten().unwrap_or(Err(Error::Interrupted))?),
        }
    }

    /// The runner that an object is, or that it makes.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(runner) = object.cast::<PytestRunner>() {
            return Ok(runner.get().any.clone());
        }
        if let Ok(runner) = object.cast::<StdioRunner>() {
            return Ok(runner.get().any.clone());
        }
        if let Ok(runner) = object.cast::<CommandRunner>() {
            return Ok(runner.get().any.clone());
        }
        if let Ok(runner) = object.cast::<FunctionRunner>() {
            return Ok(runner.get().any.clone());
        }
        match object.getattr_opt("runner")? {
            Some(make) => Self::of(&make.call0()?),
            None => Err(wrong_type("a pair's second half", "a runner or a task", object)),
        }
    }
}

/// Judges many items without the interpreter; the exception that stopped it, with what was done until then.
///
/// Only this thread waits for the interpreter, which another thread may keep for long; those that read what a
/// candidate says never do.
fn interruptible<T: Sync, R: Send>(
    py: Python<'_>,
    items: &[T],
    workers: NonZeroUsize,
    look: &mut (dyn FnMut(&[Option<R>]) -> PyResult<()> + Send),
    judge: impl Fn(&T, &mut runner::IsCancelled<'_>) -> R + Sync,
) -> PyResult<(Vec<Option<R>>, Option<PyErr>)> {
    let mut interrupt = None;
    let results = py.detach(|| {
        let mut is_cancelled = |results: &[Option<R>]| {
            let asked = Python::attach(|py| py.check_signals()).and_then(|()| look(results));
            match asked {
                Ok(()) => interrupt.is_some(),
                Err(error) => {
                    interrupt.get_or_insert(error);
                    true
                }
            }
        };
        runner::run_many(items, workers, &mut is_cancelled, &judge)
    })?;
    Ok((results, interrupt))
}

/// Many candidates, each with its runner.
pub(super) struct Many {
    pub(super) workers: Option<usize>,
    pub(super) progress: bool,
    pub(super) deadline_s: Option<f64>,
}

impl Many {
    pub(super) fn run(self, py: Python<'_>, pairs: &[(Candidate, Any)]) -> PyResult<Vec<Verdict>> {
        let workers = match self.workers {
            Some(workers) => at_least_one("workers", workers)?,
            None => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        let deadline = self.deadline_s.map(|seconds| limit("deadline_s", seconds)).transpose()?;
        let bar = match self.progress {
            true => Some(
                py.import("testgrad._progress")?.getattr("CandidatesBar")?.call1((pairs.len(),))?.unbind(),
            ),
            false => None,
        };
        let (started, mut is_late, mut shown) = (Instant::now(), false, usize::MAX);
        let mut look = |results: &[Option<Result<SuiteResult, Error>>]| {
            let done = results.iter().flatten().count();
            if let Some(bar) = bar.as_ref().filter(|_| done != shown) {
                shown = done;
                let passed = results.iter().flatten().flatten().filter(|suite| suite.all_passed()).count();
                let failed = results.iter().flatten().filter(|result| result.is_err()).count();
                Python::attach(|py| bar.call_method1(py, "update", (done, passed, failed)))?;
            }
            if deadline.is_some_and(|deadline| started.elapsed() >= deadline) && done < results.len() {
                is_late = true;
                return Err(PyTypeError::new_err("late"));
            }
            Ok(())
        };
        let judged = interruptible(py, pairs, workers, &mut look, |(candidate, any), is_cancelled| {
            any.judge(candidate, is_cancelled)
        });
        if let Some(bar) = &bar {
            bar.call_method0(py, "close")?;
        }
        let (results, interrupt) = judged?;
        let undone = || if is_late { Error::Late } else { Error::Interrupted };
        let verdicts: Vec<Verdict> = results
            .into_iter()
            .map(|result| match result {
                None | Some(Err(Error::Interrupted)) => Verdict(Err(undone())),
                Some(result) => Verdict(result),
            })
            .collect();
        match interrupt {
            Some(error) if !is_late => {
                // What is done is not lost with the interruption.
                let _ = error.value(py).setattr("results", verdicts.into_pyobject(py)?);
                Err(error)
            }
            _ => Ok(verdicts),
        }
    }
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

/// Judges many candidates at once, each by its own runner.
///
/// Args:
///     pairs: A candidate and a runner each; a task of `testgrad.tasks` stands for its runner.
///     workers: How many run at a time, >= 1; None means one a core.
///     progress: Show a bar.
///     deadline_s: Seconds for all together, > 0; what is not done then is `NoVerdict`.
///
/// Returns:
///     One suite a pair, in their order; where our side failed, the `NoVerdict` that says why.
///
/// Raises:
///     KeyboardInterrupt: With what was done until then as `results`.
#[pyfunction]
#[pyo3(signature = (pairs: "Iterable[tuple[str | PathLike[str] | Mapping[str, str], object]]", *, workers=None, progress=false, deadline_s=None))]
pub fn run_many(
    py: Python<'_>,
    pairs: &Bound<'_, PyAny>,
    workers: Option<usize>,
    progress: bool,
    deadline_s: Option<f64>,
) -> PyResult<Vec<Verdict>> {
    // Objects are told apart by identity; the list keeps them alive meanwhile.
    let mut known: HashMap<usize, (Any, Bound<'_, PyAny>)> = HashMap::new();
    let mut inner = Vec::new();
    for pair in pairs.try_iter()? {
        let (candidate, object): (Candidate, Bound<'_, PyAny>) = pair?.extract()?;
        let id = object.as_ptr() as usize;
        let any = match known.get(&id) {
            Some((any, _)) => any.clone(),
            None => {
                let any = Any::of(&object)?;
                known.insert(id, (any.clone(), object));
                any
            }
        };
        inner.push((candidate, any));
    }
    Many { workers, progress, deadline_s }.run(py, &inner)
}

/// The candidates of any iterable, each with the same runner.
pub(super) fn paired(candidates: &Bound<'_, PyAny>, any: &Any) -> PyResult<Vec<(Candidate, Any)>> {
    candidates.try_iter()?.map(|item| Ok((item?.extract()?, any.clone()))).collect()
}

/// Notes where the tests come from, and says it in a few words.
pub(super) fn described(argument: &str, tests: &Tests, kwargs: &Bound<'_, PyDict>) -> PyResult<String> {
    let py = kwargs.py();
    Ok(match tests {
        Tests::Path(path) => {
            kwargs.set_item(argument, path)?;
            quoted(py, &path.display().to_string())
        }
        Tests::Files(files) => {
            let texts = PyDict::new(py);
            for (path, text) in files {
                texts.set_item(path.as_os_str(), text)?;
            }
            kwargs.set_item(argument, texts)?;
            format!("{} files", files.len())
        }
    })
}

/// Keyword arguments to make an object again.
pub(super) fn again<'py, T: pyo3::PyTypeInfo>(
    py: Python<'py>,
    kwargs: &Py<PyDict>,
) -> PyResult<NewArgs<'py>> {
    Ok(NewArgs(py.get_type::<T>(), kwargs.bind(py).copy()?))
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

/// The same for one judgement that is no candidate's.
pub(super) fn one(
    py: Python<'_>,
    judge: impl Fn(&mut runner::IsCancelled<'_>) -> Result<SuiteResult, Error> + Sync,
) -> PyResult<SuiteResult> {
    let judge = |(): &(), is_cancelled: &mut runner::IsCancelled<'_>| judge(is_cancelled);
    let (mut judged, interrupt) = interruptible(py, &[()], NonZeroUsize::MIN, &mut |_| Ok(()), judge)?;
    match interrupt {
        Some(error) => Err(error),
        None => Ok(judged.pop().flatten().unwrap_or(Err(Error::Interrupted))?),
    }
}

impl Holding {
    /// The arguments that make it again.
    pub(super) fn describe(&self, kwargs: &Bound<'_, PyDict>) -> PyResult<()> {
        kwargs.set_item("limits", self.limits)?;
        kwargs.set_item("python", &self.python)?;
        kwargs.set_item("preload", Tuple(self.preload.clone()))?;
        kwargs.set_item("env", &self.env)?;
        kwargs.set_item("seed", self.seed)?;
        kwargs.set_item("readable", Tuple(self.readable.clone()))?;
        kwargs.set_item("require", Tuple(self.require.0.clone()))?;
        kwargs.set_item("avoid", Tuple(self.avoid.0.clone()))
    }
}

/// What a process is good for, by name.
pub(super) fn fresh_of(name: &str) -> PyResult<Fresh> {
    Fresh::parse(name).ok_or_else(|| {
        PyValueError::new_err(format!("fresh must be \"process\" or \"program\", got {name:?}"))
    })
}

/// What durations are, by name.
pub(super) fn clock_of(name: &str, fresh: &str) -> PyResult<Clock> {
    match Clock::parse(name) {
        Some(Clock::Cpu) if fresh != Fresh::Process.as_str() => {
            Err(PyValueError::new_err("clock=\"cpu\" needs fresh=\"process\""))
        }
        Some(clock) => Ok(clock),
        None => Err(PyValueError::new_err(format!("clock must be \"elapsed\" or \"cpu\", got {name:?}"))),
    }
}

/// One case as Python gives it: a mapping, or a pair of two of its values.
pub(super) struct CaseReader<'a, 'py> {
    index: usize,
    case: &'a Bound<'py, PyAny>,
    pair: [&'static str; 2],
    is_mapping: bool,
}

impl<'a, 'py> CaseReader<'a, 'py> {
    pub(super) fn new(index: usize, case: &'a Bound<'py, PyAny>, pair: [&'static str; 2]) -> PyResult<Self> {
        let is_mapping = case.cast::<PyMapping>().is_ok();
        if !is_mapping && (case.is_instance_of::<PyString>() || case.len().ok() != Some(2)) {
            let words = format!("a mapping or a pair of {} and {}", pair[0], pair[1]);
            return Err(wrong_type(&format!("cases[{index}]"), &words, case));
        }
        Ok(Self { index, case, pair, is_mapping })
    }

    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.is_mapping {
            return match self.case.contains(name)? {
                true => Ok(Some(self.case.get_item(name)?)),
                false => Ok(None),
            };
        }
        self.pair.iter().position(|own| *own == name).map(|place| self.case.get_item(place)).transpose()
    }

    /// Text or bytes that must be there.
    pub(super) fn bytes(&self, name: &str) -> PyResult<Vec<u8>> {
        let value = self
            .get(name)?
            .ok_or_else(|| PyValueError::new_err(format!("cases[{}] has no {name:?}", self.index)))?;
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(bytes.as_bytes().to_vec());
        }
        match value.cast::<PyString>() {
            Ok(text) => bytes_of(text),
            Err(_) => Err(wrong_type(&format!("cases[{}][{name:?}]", self.index), "str or bytes", &value)),
        }
    }

    pub(super) fn text(&self, name: &str) -> PyResult<Option<String>> {
        self.get(name)?.filter(|value| !value.is_none()).map(|value| value.extract()).transpose()
    }

    /// Plain data.
    pub(super) fn value(&self, name: &str) -> PyResult<Option<Value>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let read: PyResult<Value> = value.extract();
        read.map(Some)
            .map_err(|error| PyValueError::new_err(format!("cases[{}][{name:?}]: {error}", self.index)))
    }

    pub(super) fn label(&self) -> PyResult<Label> {
        let severity = self.get("severity")?.map(|value| value.extract()).transpose()?.unwrap_or_default();
        let timeout_s: Option<f64> = self
            .get("timeout_s")?
            .filter(|value| !value.is_none())
            .map(|value| value.extract())
            .transpose()?;
        timeout_s.map(|seconds| limit("timeout_s", seconds)).transpose()?;
        let name = self.text("name")?.unwrap_or_else(|| format!("case[{}]", self.index));
        Ok(Label { name, severity, timeout_s })
    }
}
