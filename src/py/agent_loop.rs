//! The loop for Python: [`History`], [`AgentTestLoop`], and [`LoopRun`], one run under way.
//!
//! The state machine is `crate::agent_loop`; here are its drivers: plain calls in Rust (`LoopRun::drive`), and the
//! steps by which `testgrad._agent_loop` drives it with `await` and in many threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::type_hint_identifier;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::convert::{
    AgentFn, Awaiting, FloatsOut, Iter, NewArgs, OnIteration, StopWhen, StrategyFn, TestRunner, Tuple,
    from_json, to_json, with_text,
};
use super::enums::wrong_type;
use super::outcome::{item, place_of};
use super::reward::built_in;
use crate::agent_loop::{self as core, AgentLoop, Need, StopReason, StopRules};
use crate::curve::{self, LearningPoint};
use crate::feedback::FeedbackEntry;
use crate::outcome::{SuiteResult, check_range, check_whole};
use crate::reward::{DEFAULT_TARGET_MS, MultiSignal, RewardSignal, RewardWeights, Strategy};
use crate::store::{self, Journal, JournalHeader};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
///     elapsed_s: Its wall time in seconds.
///     error: The exception that ended it.
#[pyclass(frozen, module = "testgrad")]
pub struct History {
    state: Mutex<core::History>,
    task: Py<PyAny>,
    error: Mutex<Option<Py<PyAny>>>,
    elapsed_s: Mutex<f64>,
}

impl History {
    fn of(task: Py<PyAny>, state: core::History, elapsed_s: f64) -> Self {
        Self { state: Mutex::new(state), task, error: Mutex::new(None), elapsed_s: Mutex::new(elapsed_s) }
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
                        stopped_by=None, elapsed_s=0.0, error: "BaseException | None"=None))]
    fn py_new(
        py: Python<'_>,
        entries: Option<&Bound<'_, PyAny>>,
        task: Option<Py<PyAny>>,
        stopped_by: Option<&str>,
        elapsed_s: f64,
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
        let elapsed_s = check_range("elapsed_s", "finite and >= 0", 0.0.., elapsed_s)?;
        let history = Self::of(task.unwrap_or_else(|| py.None()), state, elapsed_s);
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

    /// Wall time so far, in seconds.
    #[getter]
    fn elapsed_s(&self) -> f64 {
        *lock(&self.elapsed_s)
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
        to_json(&HistoryJson { task, elapsed_s: self.elapsed_s(), run: lock(&self.state).clone() })
    }

    /// The history that `to_json` wrote.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let json: HistoryJson = from_json("History", text)?;
        Ok(Self::of(task_object(py, &json.task)?, json.run, json.elapsed_s))
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
        Ok(Self::of(task.unwrap_or_else(|| py.None()), state, recovered.elapsed_s))
    }

    fn __len__(&self) -> usize {
        lock(&self.state).entries().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
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
        kwargs.set_item("elapsed_s", self.elapsed_s())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct HistoryJson {
    task: String,
    elapsed_s: f64,
    #[serde(flatten)]
    run: core::History,
}

fn task_json(task: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = task.py();
    let text = py.import("json")?.call_method1("dumps", (task,)).map_err(|error| {
        let said = error.value(py).to_string();
        let problem =
            PyTypeError::new_err(format!("task must be plain JSON data to be written down: {said}"));
        problem.set_cause(py, Some(error));
        problem
    })?;
    text.extract()
}

fn task_object(py: Python<'_>, task: &str) -> PyResult<Py<PyAny>> {
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

/// One of ours, or the caller's own callable.
enum LoopStrategy {
    BuiltIn(Strategy),
    Own(Py<PyAny>),
}

impl LoopStrategy {
    /// What tells two strategies apart in a journal.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        match self {
            Self::BuiltIn(strategy) => to_json(strategy),
            Self::Own(own) => {
                let own = own.bind(py);
                let name = own.getattr("__qualname__").or_else(|_| own.get_type().getattr("__qualname__"))?;
                Ok(format!("own: {name}"))
            }
        }
    }
}

/// The agent-test loop: an agent proposes code, tests judge it, reward and feedback go back to the agent.
///
/// An exception in a callable reaches the caller as it is, with the history so far as its attribute `history`;
/// so does Ctrl-C. The last history is also `loop.history`.
///
/// Args:
///     test_runner: `test_runner(code) -> SuiteResult`, plain or async.
///     agent_fn: `agent_fn(history, task) -> str`, plain or async.
///     max_iterations: The most iterations, >= 1.
///     reward_weights: How much each component counts; None means `RewardWeights()`.
///     strategy: One of testgrad's strategies or any `strategy(suite, previous) -> RewardSignal`; None means
///         `MultiSignal(reward_weights, target_ms)`.
///     target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
///     patience: Stop after that many iterations in a row without a better total.
///     max_time_s: Stop after that many seconds of wall time; checked between iterations.
///     stop_when: `stop_when(history) -> bool`, asked after each iteration.
///     on_iteration: `on_iteration(entry)`, called after each iteration.
///     progress: Show a bar, in a terminal and in a notebook.
///     journal: A file that gets each iteration before the next begins; see `resume`.
///
/// Raises:
///     ValueError: A number out of range, named.
///     TypeError: Something that is not callable where a callable belongs.
///
/// Example:
///     >>> from testgrad import AgentTestLoop, SuiteResult, TestResult
///     >>> def agent(history, task):
///     ...     return f"x = {len(history)}"
///     >>> def run_tests(code):
///     ...     return SuiteResult([TestResult("x is 2", "passed" if code == "x = 2" else "failed")])
///     >>> AgentTestLoop(run_tests, agent).run("make x 2")
///     <History of 3 iterations, best reward 0.900, all_passed>
#[pyclass(frozen, module = "testgrad")]
pub struct AgentTestLoop {
    test_runner: Py<PyAny>,
    agent_fn: Py<PyAny>,
    rules: StopRules,
    weights: RewardWeights,
    target_ms: f64,
    strategy: LoopStrategy,
    stop_when: Option<Py<PyAny>>,
    on_iteration: Option<Py<PyAny>>,
    progress: bool,
    journal: Option<PathBuf>,
    history: Mutex<Option<Py<History>>>,
}

#[pymethods]
impl AgentTestLoop {
    #[new]
    #[pyo3(signature = (test_runner, agent_fn, max_iterations=10, reward_weights=None, *, strategy=None,
                        target_ms=DEFAULT_TARGET_MS, patience=None, max_time_s=None, stop_when=None,
                        on_iteration=None, progress=false, journal=None))]
    #[allow(clippy::too_many_arguments, reason = "the public constructor")]
    fn py_new(
        py: Python<'_>,
        test_runner: TestRunner,
        agent_fn: AgentFn,
        max_iterations: i64,
        reward_weights: Option<PyRef<'_, RewardWeights>>,
        strategy: Option<StrategyFn>,
        target_ms: f64,
        patience: Option<i64>,
        max_time_s: Option<f64>,
        stop_when: Option<StopWhen>,
        on_iteration: Option<OnIteration>,
        progress: bool,
        journal: Option<PathBuf>,
    ) -> PyResult<Self> {
        let weights = reward_weights.map(|w| *w).unwrap_or_default();
        let multi = MultiSignal::new(weights, target_ms)?;
        let strategy = match strategy {
            None => LoopStrategy::BuiltIn(multi.into()),
            Some(given) => match built_in(given.0.bind(py)) {
                Some(strategy) => LoopStrategy::BuiltIn(strategy),
                None => LoopStrategy::Own(given.0),
            },
        };
        Ok(Self {
            test_runner: test_runner.0,
            agent_fn: agent_fn.0,
            rules: StopRules::new(
                check_whole("max_iterations", ">= 1", 1, max_iterations)?,
                patience.map(|n| check_whole("patience", ">= 1", 1, n)).transpose()?,
                max_time_s,
            )?,
            weights,
            target_ms,
            strategy,
            stop_when: stop_when.map(|f| f.0),
            on_iteration: on_iteration.map(|f| f.0),
            progress,
            journal,
            history: Mutex::new(None),
        })
    }

    /// Runs the loop to its end with plain callables.
    ///
    /// Args:
    ///     task: Handed to the agent as it is; with a journal it must be plain JSON data.
    ///
    /// Raises:
    ///     StoreError: The journal already holds a run, is in use, or cannot be written.
    ///     TypeError: The agent did not return str, or the runner not a `SuiteResult`.
    #[pyo3(signature = (task: "object"=None))]
    fn run(slf: &Bound<'_, Self>, task: Option<Py<PyAny>>) -> PyResult<Py<History>> {
        let run = Self::_begin(slf, task, None)?;
        LoopRun::drive(&Bound::new(slf.py(), run)?)
    }

    /// Runs the loop to its end with async or plain callables; plain ones run in threads.
    ///
    /// At Ctrl-C `asyncio.run` raises a `KeyboardInterrupt` of its own; the history is `loop.history`.
    ///
    /// Args:
    ///     task: Handed to the agent as it is; with a journal it must be plain JSON data.
    #[pyo3(signature = (task: "object"=None))]
    fn arun<'py>(slf: &Bound<'py, Self>, task: Option<Py<PyAny>>) -> PyResult<Awaiting<'py>> {
        slf.py().import("testgrad._agent_loop")?.call_method1("arun", (slf, task)).map(Awaiting)
    }

    /// Runs one loop a task, many at once; plain callables run in threads, async ones in one event loop.
    ///
    /// A task whose callable raises ends with `history.stopped_by == "exception"` and the exception in
    /// `history.error`; the others go on. Ctrl-C raises `KeyboardInterrupt` with the histories so far as its
    /// attribute `histories`.
    ///
    /// Args:
    ///     tasks: The tasks.
    ///     concurrency: How many at once, >= 1.
    ///     journal_dir: A directory that gets a journal a task, `task-0000.jsonl` and so on; a task whose journal
    ///         is there goes on from it.
    ///
    /// Returns:
    ///     One history a task, in the order of the tasks.
    #[pyo3(signature = (tasks: "Iterable[object]", *, concurrency=8, journal_dir=None)
           -> "list[History]")]
    fn run_many<'py>(
        slf: &Bound<'py, Self>,
        tasks: &Bound<'py, PyAny>,
        concurrency: i64,
        journal_dir: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let concurrency = check_whole("concurrency", ">= 1", 1, concurrency)?;
        let drivers = slf.py().import("testgrad._agent_loop")?;
        drivers.call_method1("run_many", (slf, tasks, concurrency, journal_dir))
    }

    /// Goes on with the run in a journal, after a kill at any moment; done iterations are not done again.
    ///
    /// The agent must give the same answer to the same history for the whole to equal an uninterrupted run.
    ///
    /// Args:
    ///     journal: The file; None means the loop's own.
    ///
    /// Raises:
    ///     FileNotFoundError: There is no such file.
    ///     StoreError: It is in use, broken (with the line), or was written under another strategy.
    #[pyo3(signature = (journal=None))]
    fn resume(slf: &Bound<'_, Self>, journal: Option<PathBuf>) -> PyResult<Py<History>> {
        let run = Self::_resume(slf, journal)?;
        LoopRun::drive(&Bound::new(slf.py(), run)?)
    }

    /// The history of the last run; None before the first.
    #[getter]
    fn history(&self, py: Python<'_>) -> Option<Py<History>> {
        lock(&self.history).as_ref().map(|h| h.clone_ref(py))
    }

    /// The agent.
    #[getter]
    fn agent_fn(&self, py: Python<'_>) -> AgentFn {
        AgentFn(self.agent_fn.clone_ref(py))
    }

    /// The test runner.
    #[getter]
    fn test_runner(&self, py: Python<'_>) -> TestRunner {
        TestRunner(self.test_runner.clone_ref(py))
    }

    /// The journal's path.
    #[getter]
    fn journal(&self) -> Option<PathBuf> {
        self.journal.clone()
    }

    /// Begins a run without driving it.
    #[pyo3(signature = (task: "object"=None, journal=None))]
    fn _begin(slf: &Bound<'_, Self>, task: Option<Py<PyAny>>, journal: Option<PathBuf>) -> PyResult<LoopRun> {
        let (py, this) = (slf.py(), slf.get());
        let task = task.unwrap_or_else(|| py.None());
        let journal = match journal.or_else(|| this.journal.clone()) {
            None => None,
            Some(path) => {
                let header = this.header(py, task.bind(py))?;
                Some(py.detach(|| Journal::create(&path, header))?)
            }
        };
        this.start(slf, History::of(task, core::History::default(), 0.0), journal)
    }

    /// Takes up the run in a journal without driving it.
    #[pyo3(signature = (journal=None))]
    fn _resume(slf: &Bound<'_, Self>, journal: Option<PathBuf>) -> PyResult<LoopRun> {
        let (py, this) = (slf.py(), slf.get());
        let path = journal.or_else(|| this.journal.clone()).ok_or_else(|| {
            PyValueError::new_err(
                "there is no journal to resume; give resume(journal=...) or the loop a journal",
            )
        })?;
        let (journal, recovered) = py.detach(|| Journal::recover(&path))?;
        let header = recovered.header.ok_or_else(|| store::Error::NoHeader { path: path.clone() })?;
        let now = this.strategy.fingerprint(py)?;
        if header.strategy != now {
            return Err(store::Error::Differs { path, field: "strategy", was: header.strategy, now }.into());
        }
        let task = task_object(py, &header.task)?;
        let mut state = core::History::default();
        recovered.entries.into_iter().for_each(|entry| state.push(entry));
        let has_begun = !state.entries().is_empty();
        let run = this.start(slf, History::of(task, state, recovered.elapsed_s), Some(journal))?;
        // It was killed, perhaps, between its last iteration and the question that follows one.
        if has_begun {
            run.ask_stop_when(py)?;
        }
        Ok(run)
    }

    fn __repr__(&self) -> String {
        format!("<AgentTestLoop of at most {} iterations>", self.rules.max_iterations)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("test_runner", &self.test_runner)?;
        kwargs.set_item("agent_fn", &self.agent_fn)?;
        kwargs.set_item("max_iterations", self.rules.max_iterations)?;
        kwargs.set_item("reward_weights", self.weights)?;
        kwargs.set_item("strategy", self.strategy_object(py)?)?;
        kwargs.set_item("target_ms", self.target_ms)?;
        kwargs.set_item("patience", self.rules.patience)?;
        kwargs.set_item("max_time_s", self.rules.max_time_s)?;
        kwargs.set_item("stop_when", &self.stop_when)?;
        kwargs.set_item("on_iteration", &self.on_iteration)?;
        kwargs.set_item("progress", self.progress)?;
        kwargs.set_item("journal", &self.journal)?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }
}

impl AgentTestLoop {
    fn header(&self, py: Python<'_>, task: &Bound<'_, PyAny>) -> PyResult<JournalHeader> {
        Ok(JournalHeader { task: task_json(task)?, strategy: self.strategy.fingerprint(py)? })
    }

    fn strategy_object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match &self.strategy {
            LoopStrategy::Own(own) => own.clone_ref(py),
            LoopStrategy::BuiltIn(Strategy::Binary(s)) => Py::new(py, *s)?.into_any(),
            LoopStrategy::BuiltIn(Strategy::PassRate(s)) => Py::new(py, *s)?.into_any(),
            LoopStrategy::BuiltIn(Strategy::SeverityWeighted(s)) => Py::new(py, *s)?.into_any(),
            LoopStrategy::BuiltIn(Strategy::Progression(s)) => Py::new(py, *s)?.into_any(),
            LoopStrategy::BuiltIn(Strategy::MultiSignal(s)) => Py::new(py, *s)?.into_any(),
            LoopStrategy::BuiltIn(Strategy::Gated(s)) => Py::new(py, *s)?.into_any(),
            LoopStrategy::BuiltIn(Strategy::Curriculum(s)) => Py::new(py, *s)?.into_any(),
        })
    }

    fn start(&self, slf: &Bound<'_, Self>, history: History, journal: Option<Journal>) -> PyResult<LoopRun> {
        let py = slf.py();
        let before_s = history.elapsed_s();
        let history = Py::new(py, history)?;
        *lock(&self.history) = Some(history.clone_ref(py));
        let strategy = match &self.strategy {
            LoopStrategy::BuiltIn(strategy) => *strategy,
            LoopStrategy::Own(_) => Strategy::default(),
        };
        let bar = match self.progress {
            true => {
                let kwargs = PyDict::new(py);
                kwargs.set_item("done", history.get().__len__())?;
                let bar = py.import("testgrad._progress")?.getattr("Bar")?;
                Some(bar.call((self.rules.max_iterations,), Some(&kwargs))?.unbind())
            }
            false => None,
        };
        Ok(LoopRun {
            owner: slf.clone().unbind(),
            history,
            turn: Mutex::new(AgentLoop::new(self.rules, strategy)),
            journal: Mutex::new(journal),
            bar,
            began: Instant::now(),
            before_s,
            cancelled: AtomicBool::new(false),
        })
    }
}

/// One run under way: what it needs, and the means to hand it in. Used by the drivers.
#[pyclass(frozen, module = "testgrad")]
pub struct LoopRun {
    owner: Py<AgentTestLoop>,
    history: Py<History>,
    turn: Mutex<AgentLoop>,
    journal: Mutex<Option<Journal>>,
    bar: Option<Py<PyAny>>,
    began: Instant,
    before_s: f64,
    cancelled: AtomicBool,
}

#[pymethods]
impl LoopRun {
    /// The run's history.
    #[getter]
    fn history(&self, py: Python<'_>) -> Py<History> {
        self.history.clone_ref(py)
    }

    /// What is needed next: ("code", None), ("tests", the code) or ("nothing", the reason).
    fn need(&self) -> PyResult<(&'static str, Option<String>)> {
        Ok(match self.next_need()? {
            Need::Code => ("code", None),
            Need::Tests(submission) => ("tests", Some(submission.code.to_string())),
            Need::Nothing(reason) => ("nothing", Some(reason.as_str().to_owned())),
        })
    }

    /// Hands in what the agent returned.
    #[pyo3(signature = (code: "object"))]
    fn code(&self, code: &Bound<'_, PyAny>) -> PyResult<()> {
        if !code.is_instance_of::<PyString>() {
            return Err(wrong_answer("agent_fn", "str", code));
        }
        let state = lock(&self.history.get().state);
        with_text("code", code, |code| lock(&self.turn).code(&state, code))
    }

    /// Hands in what the runner returned, and finishes the turn: history, journal, callbacks, stop rules.
    #[pyo3(signature = (suite: "object"))]
    fn suite(&self, py: Python<'_>, suite: &Bound<'_, PyAny>) -> PyResult<FeedbackEntry> {
        let Ok(result) = suite.cast::<SuiteResult>() else {
            return Err(wrong_answer("test_runner", "SuiteResult", suite));
        };
        let owner = self.owner.get();
        let history = self.history.get();
        let reward = match &owner.strategy {
            LoopStrategy::BuiltIn(_) => None,
            LoopStrategy::Own(own) => {
                let previous = lock(&history.state).entries().last().map(|e| e.suite_result.clone());
                let signal = own.bind(py).call1((suite, previous))?;
                match signal.cast::<RewardSignal>() {
                    Ok(signal) => Some(*signal.get()),
                    Err(_) => return Err(wrong_type("what strategy returns", "RewardSignal", &signal)),
                }
            }
        };
        let entry = {
            let mut state = lock(&history.state);
            let entry = lock(&self.turn).suite(&state, result.get().clone(), reward)?;
            state.push(entry.clone());
            entry
        };
        let elapsed_s = self.elapsed_s();
        *lock(&history.elapsed_s) = elapsed_s;
        py.detach(|| match &mut *lock(&self.journal) {
            Some(journal) => journal.iteration(&entry, elapsed_s),
            None => Ok(()),
        })?;
        if let Some(bar) = &self.bar {
            bar.call_method1(py, "update", (entry.clone(),))?;
        }
        if let Some(on_iteration) = &owner.on_iteration {
            plain_answer("on_iteration", on_iteration.bind(py).call1((entry.clone(),))?)?;
        }
        self.ask_stop_when(py)?;
        Ok(entry)
    }

    /// Ends the run because of an exception, which gets the history as its attribute.
    #[pyo3(signature = (error: "BaseException"))]
    fn fail(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        let interrupted = error.is_instance_of::<PyKeyboardInterrupt>() || is_cancelled(error)?;
        let reason = if interrupted { StopReason::Interrupted } else { StopReason::Exception };
        let history = self.history.get();
        *lock(&history.error) = Some(error.clone().unbind());
        // The caller is to see its own exception, not one of a bar that cannot be closed.
        let _ = self.end(py, reason);
        // Exceptions without room for attributes still reach the caller; the loop has the history too.
        let _ = error.setattr("history", &self.history);
        Ok(())
    }

    /// Ends the run where it is; a driver in another thread stops at its next step.
    fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        self.cancelled.store(true, Ordering::Release);
        self.end(py, StopReason::Interrupted)
    }

    /// Runs to the end with plain callables.
    fn drive(slf: &Bound<'_, Self>) -> PyResult<Py<History>> {
        let (py, this) = (slf.py(), slf.get());
        match this.drive_steps(py).and_then(|()| this.close(py)) {
            Ok(()) => Ok(this.history.clone_ref(py)),
            Err(error) => {
                this.fail(py, error.value(py).as_any())?;
                Err(error)
            }
        }
    }

    /// Writes the end to the journal and lets go of it; closes the bar.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let journal = lock(&self.journal).take();
        if let Some(bar) = &self.bar {
            bar.call_method0(py, "close")?;
        }
        let stopped_by = lock(&self.history.get().state).stopped_by();
        match (journal, stopped_by) {
            (Some(mut journal), Some(reason)) => Ok(py.detach(|| journal.stopped(reason))?),
            _ => Ok(()),
        }
    }
}

/// Whether it is asyncio's way of saying stop; asyncio is not loaded to find out.
fn is_cancelled(error: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = error.py().import("sys")?.getattr("modules")?;
    match modules.get_item("asyncio") {
        Ok(asyncio) => error.is_instance(&asyncio.getattr("CancelledError")?),
        Err(_) => Ok(false),
    }
}

/// What a callback returned, which must not be something to await: nobody would.
fn plain_answer<'py>(argument: &str, answer: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if answer.hasattr("__await__")? {
        close_coroutine(&answer);
        return Err(PyTypeError::new_err(format!("{argument} must be a plain function, not an async one")));
    }
    Ok(answer)
}

/// Tells a coroutine that nobody will await it, so that Python does not warn of it.
fn close_coroutine(answer: &Bound<'_, PyAny>) {
    let _ = answer.call_method0("close"); // other awaitables have none
}

/// The `TypeError` for an answer of another type than the loop can use.
fn wrong_answer(who: &str, must: &str, answer: &Bound<'_, PyAny>) -> PyErr {
    let hint = match answer.hasattr("__await__") {
        Ok(true) => {
            close_coroutine(answer);
            "; declare it with async def, and use `await loop.arun(task)` or run_many"
        }
        _ => "",
    };
    let got = answer.get_type().name().map_or_else(|_| "another type".to_owned(), |n| n.to_string());
    PyTypeError::new_err(format!("{who} must return {must}, got {got}{hint}"))
}

impl LoopRun {
    /// Stops the history when the caller's predicate says so.
    fn ask_stop_when(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(stop_when) = &self.owner.get().stop_when
            && plain_answer("stop_when", stop_when.bind(py).call1((&self.history,))?)?.is_truthy()?
        {
            let mut state = lock(&self.history.get().state);
            if !state.entries().last().is_some_and(|e| e.suite_result.all_passed()) {
                state.stop(Some(StopReason::StopWhen));
            }
        }
        Ok(())
    }

    fn elapsed_s(&self) -> f64 {
        self.before_s + self.began.elapsed().as_secs_f64()
    }

    fn next_need(&self) -> PyResult<Need> {
        let mut state = lock(&self.history.get().state);
        Ok(lock(&self.turn).need(&mut state, self.elapsed_s()))
    }

    fn drive_steps(&self, py: Python<'_>) -> PyResult<()> {
        let owner = self.owner.get();
        loop {
            py.check_signals()?;
            match self.next_need()? {
                Need::Code => {
                    let task = &self.history.get().task;
                    let code = owner.agent_fn.bind(py).call1((&self.history, task))?;
                    if self.cancelled.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    self.code(&code)?;
                }
                Need::Tests(submission) => {
                    let suite = owner.test_runner.bind(py).call1((&*submission.code,))?;
                    if self.cancelled.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    self.suite(py, &suite)?;
                }
                Need::Nothing(_) => return Ok(()),
            }
        }
    }

    /// Stops the history unless it has stopped, and lets go of journal and bar without an end line, so that
    /// the journal can be resumed.
    fn end(&self, py: Python<'_>, reason: StopReason) -> PyResult<()> {
        {
            let mut state = lock(&self.history.get().state);
            if state.stopped_by().is_none() {
                state.stop(Some(reason));
            }
        }
        lock(&self.journal).take();
        match &self.bar {
            Some(bar) => bar.call_method0(py, "close").map(drop),
            None => Ok(()),
        }
    }
}
