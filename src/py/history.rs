//! [`History`] for Python: the turns of one run, growing while it is under way.
//!
//! No Python is called, and no Python object let go of, while one of the mutexes here is held: it could come back.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::type_hint_identifier;
use pyo3::types::{PyDict, PyTuple};

use super::convert::{FloatsOut, Iter, NewArgs, Tuple, from_json, to_json};
use super::enums::wrong_type;
use super::outcome::{item, place_in, place_of};
use crate::agent_loop::{self as core, StopReason};
use crate::curve::{self, LearningPoint};
use crate::feedback::FeedbackEntry;
use crate::outcome::{check_range, check_whole};
use crate::store;

/// The guard of a mutex; whoever panicked while holding it left a whole value behind.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entries of a `History`, or of any iterable of entries.
pub(super) fn entries_of(history: &Bound<'_, PyAny>) -> PyResult<Vec<FeedbackEntry>> {
    if let Ok(history) = history.cast::<History>() {
        return Ok(lock(&history.get().state).entries().to_vec());
    }
    let mut entries = Vec::new();
    for (place, entry) in history.try_iter()?.enumerate() {
        let entry = entry?;
        match entry.cast::<FeedbackEntry>() {
            Ok(entry) => entries.push(entry.get().clone()),
            Err(_) => return Err(wrong_type(&format!("history[{place}]"), "FeedbackEntry", &entry)),
        }
    }
    Ok(entries)
}

/// All turns of one run: a sequence of `FeedbackEntry` that grows while the run is under way.
///
/// Args:
///     entries: The turns, in order.
///     task: What the run was asked to do.
///     stopped_by: Why it ended: "all_passed", "max_iterations", "patience", "max_time", "stop_when",
///         "interrupted" or "exception"; None while it is under way.
///     duration_ms: Its wall time in milliseconds, >= 0.
///     error: The exception that ended it.
#[pyclass(frozen, module = "testgrad")]
pub struct History {
    pub(super) state: Mutex<core::History>,
    pub(super) task: Py<PyAny>,
    pub(super) error: Mutex<Option<Py<PyAny>>>,
    pub(super) duration_ms: Mutex<f64>,
}

impl History {
    pub(super) fn of(task: Py<PyAny>, state: core::History, duration_ms: f64) -> Self {
        Self { state: Mutex::new(state), task, error: Mutex::new(None), duration_ms: Mutex::new(duration_ms) }
    }

    fn entries(&self) -> Vec<FeedbackEntry> {
        lock(&self.state).entries().to_vec()
    }
}

const STOP_REASONS: [StopReason; 7] = [
    StopReason::AllPassed,
    StopReason::MaxIterations,
    StopReason::Patience,
    StopReason::MaxTime,
    StopReason::StopWhen,
    StopReason::Interrupted,
    StopReason::Exception,
];

#[pymethods]
impl History {
    /// The columns of `to_numpy`.
    #[classattr]
    const COLUMNS: (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str) =
        ("pass_rate", "severity_score", "progression", "coverage_score", "speed_score", "total");

    #[new]
    #[pyo3(signature = (entries: "Iterable[FeedbackEntry] | None"=None, *, task: "object"=None,
                        stopped_by=None, duration_ms=0.0, error: "BaseException | None"=None))]
    fn py_new(
        py: Python<'_>,
        entries: Option<&Bound<'_, PyAny>>,
        task: Option<Py<PyAny>>,
        stopped_by: Option<&str>,
        duration_ms: f64,
        error: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let mut state = core::History::default();
        if let Some(entries) = entries {
            entries_of(entries)?.into_iter().for_each(|entry| state.push(entry));
        }
        if let Some(word) = stopped_by {
            let reason = STOP_REASONS.into_iter().find(|r| r.as_str() == word).ok_or_else(|| {
                let allowed = STOP_REASONS.map(StopReason::as_str).join(", ");
                PyValueError::new_err(format!("stopped_by must be one of {allowed}, got {word:?}"))
            })?;
            state.stop(Some(reason));
        }
        let duration_ms = check_range("duration_ms", "finite and >= 0", 0.0.., duration_ms)?;
        let history = Self::of(task.unwrap_or_else(|| py.None()), state, duration_ms);
        *lock(&history.error) = error;
        Ok(history)
    }

    /// What the run was asked to do.
    #[getter]
    fn task(&self, py: Python<'_>) -> Py<PyAny> {
        self.task.clone_ref(py)
    }

    /// Why the run ended; None while it is under way.
    #[getter]
    fn stopped_by(&self) -> Option<&'static str> {
        lock(&self.state).stopped_by().map(StopReason::as_str)
    }

    /// The exception that ended the run, if one did.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Exception> {
        lock(&self.error).as_ref().map(|e| Exception(e.clone_ref(py)))
    }

    /// Wall time so far, in milliseconds.
    #[getter]
    pub(super) fn duration_ms(&self) -> f64 {
        *lock(&self.duration_ms)
    }

    /// The turn with the highest total, the first of equals; None before the first turn.
    #[getter]
    fn best(&self) -> Option<FeedbackEntry> {
        lock(&self.state).best().cloned()
    }

    /// One point an iteration: pass rate, total, cumulative reward, tests fixed and broken.
    fn learning_curve(&self, py: Python<'_>) -> Tuple<LearningPoint> {
        let entries = self.entries();
        Tuple(py.detach(|| curve::learning_curve(&entries)))
    }

    /// The mean gain in pass rate an iteration; None for fewer than two iterations.
    fn convergence_rate(&self) -> Option<f64> {
        curve::convergence_rate(lock(&self.state).entries())
    }

    /// The slope of the total reward over the last `window` (>= 2) iterations; 0.0 for fewer than two.
    #[pyo3(signature = (window=3))]
    fn reward_trend(&self, window: i64) -> PyResult<f64> {
        let window = check_whole("window", ">= 2", 2, window)? as usize;
        Ok(curve::reward_trend(lock(&self.state).entries(), window)?)
    }

    /// The rewards as an array.
    ///
    /// Returns:
    ///     float64, shape (n, 6), columns named in `History.COLUMNS`.
    fn to_numpy(&self) -> FloatsOut {
        let state = lock(&self.state);
        let row = |e: &FeedbackEntry| e.reward.components().into_iter().chain([e.reward.total]);
        FloatsOut::rows(state.entries().iter().flat_map(row).collect(), 6)
    }

    /// The learning curve as a matplotlib figure; needs the extra `plot`.
    ///
    /// Args:
    ///     ax: The matplotlib axes to draw on; None makes a new figure.
    ///
    /// Returns:
    ///     The axes.
    #[pyo3(signature = (ax: "Any"=None))]
    fn plot<'py>(slf: &Bound<'py, Self>, ax: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("testgrad.plot")?.call_method1("plot_history", (slf, ax))
    }

    /// The entries and why the run ended, as JSON; `from_json` reads it back. The task must be JSON too.
    #[pyo3(name = "to_json")]
    fn py_to_json(&self, py: Python<'_>) -> PyResult<String> {
        let task = task_json(self.task.bind(py))?;
        let json = HistoryJson { task, duration_ms: self.duration_ms(), run: lock(&self.state).clone() };
        py.detach(|| to_json(&json))
    }

    /// The history that `to_json` wrote.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let json: HistoryJson = from_json("History", text)?;
        let duration_ms = check_range("duration_ms", "finite and >= 0", 0.0.., json.duration_ms)?;
        Ok(Self::of(task_object(py, &json.task)?, json.run, duration_ms))
    }

    /// The history in a journal, as far as it got; neither locks nor changes the file.
    ///
    /// Raises:
    ///     FileNotFoundError: There is no such file.
    ///     StoreError: The file is not a journal, with the line that is wrong.
    #[staticmethod]
    #[pyo3(signature = (path))]
    fn from_journal(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let recovered = py.detach(|| store::jsonl::read(&path))?;
        let task = recovered.header.as_ref().map(|h| task_object(py, &h.task)).transpose()?;
        let mut state = core::History::default();
        recovered.entries.into_iter().for_each(|entry| state.push(entry));
        state.stop(recovered.stopped_by);
        Ok(Self::of(task.unwrap_or_else(|| py.None()), state, recovered.duration_ms))
    }

    pub(super) fn __len__(&self) -> usize {
        lock(&self.state).entries().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(place) = index.extract::<i64>() {
            let entry = place_in(lock(&self.state).entries(), place).cloned();
            return match entry {
                Some(entry) => entry.into_bound_py_any(py),
                None => Err(PyIndexError::new_err("history index out of range")),
            };
        }
        item(py, "history", &self.entries(), index)
    }

    /// The place of the first entry equal to `value`.
    ///
    /// Raises:
    ///     ValueError: There is none.
    #[pyo3(signature = (value: "object"))]
    fn index(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        place_of(&self.entries(), value).next().ok_or_else(|| PyValueError::new_err("no such entry"))
    }

    /// How many entries are equal to `value`.
    #[pyo3(signature = (value: "object"))]
    fn count(&self, value: &Bound<'_, PyAny>) -> usize {
        place_of(&self.entries(), value).count()
    }

    fn __reversed__(&self) -> Iter<FeedbackEntry> {
        let mut entries = self.entries();
        entries.reverse();
        Iter(entries)
    }

    fn __iter__(&self) -> Iter<FeedbackEntry> {
        Iter(self.entries())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        if std::ptr::eq(self, other.get()) {
            return true;
        }
        let mine = lock(&self.state).clone();
        mine == *lock(&other.get().state)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.task)?;
        match self.error.try_lock() {
            Ok(error) => visit.call(&*error),
            Err(_) => Ok(()), // it is being set, so it is not garbage
        }
    }

    fn __clear__(&self) {
        let error = lock(&self.error).take();
        drop(error);
    }

    fn __repr__(&self) -> String {
        let state = lock(&self.state);
        let best = state.best().map_or_else(String::new, |b| format!(", best reward {:.3}", b.reward.total));
        let end = state.stopped_by().map_or("under way", StopReason::as_str);
        format!("<History of {} iterations{best}, {end}>", state.entries().len())
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("testgrad._html")?.call_method1("history_html", (slf,))?.extract()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("entries", PyTuple::new(py, self.entries())?)?;
        kwargs.set_item("task", self.task(py))?;
        kwargs.set_item("stopped_by", self.stopped_by())?;
        kwargs.set_item("duration_ms", self.duration_ms())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct HistoryJson {
    task: String,
    duration_ms: f64,
    #[serde(flatten)]
    run: core::History,
}

pub(super) fn task_json(task: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = task.py();
    let json = py.import("json")?;
    let strict = PyDict::new(py);
    strict.set_item("allow_nan", false)?;
    let text = json.call_method("dumps", (task,), Some(&strict)).map_err(|error| {
        let said = error.value(py).to_string();
        let problem =
            PyTypeError::new_err(format!("task must be plain JSON data to be written down: {said}"));
        problem.set_cause(py, Some(error));
        problem
    })?;
    if !json.call_method1("loads", (&text,))?.eq(task)? {
        return Err(PyTypeError::new_err(
            "task must be plain JSON data to be written down: it comes back as something else (tuples become \
             lists, keys become text)",
        ));
    }
    text.extract()
}

pub(super) fn task_object(py: Python<'_>, task: &str) -> PyResult<Py<PyAny>> {
    Ok(py.import("json")?.call_method1("loads", (task,))?.unbind())
}

/// `BaseException`, for the stub.
pub struct Exception(Py<PyAny>);

impl<'py> IntoPyObject<'py> for Exception {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    const OUTPUT_TYPE: PyStaticExpr = type_hint_identifier!("builtins", "BaseException");

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(self.0.into_bound(py))
    }
}
