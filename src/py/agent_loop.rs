//! [`AgentTestLoop`] for Python: what a run is made of, and the ways to begin one.
//!
//! The state machine is `crate::agent_loop`, a run under way is `loop_run`.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use super::convert::{AgentFn, Awaiting, NewArgs, OnIteration, StopWhen, StrategyFn, TestRunner, to_json};
use super::history::{History, lock, task_json, task_object};
use super::loop_run::LoopRun;
use super::reward::built_in;
use crate::agent_loop::{self as core, AgentLoop, StopRules};
use crate::outcome::check_whole;
use crate::reward::{DEFAULT_TARGET_MS, MultiSignal, RewardWeights, Strategy};
use crate::store::{self, Journal, JournalHeader};

/// One of ours, or the caller's own callable.
pub(super) enum LoopStrategy {
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
                let what = if own.hasattr("__qualname__")? { own.clone() } else { own.get_type().into_any() };
                let (module, name) = (what.getattr("__module__")?, what.getattr("__qualname__")?);
                // Of two functions of one name, lambdas above all, the code tells them apart.
                let code =
                    own.getattr("__code__").and_then(|code| code.getattr("co_code")?.call_method0("hex"));
                Ok(format!("own: {module}.{name} {}", code.map_or_else(|_| String::new(), |c| c.to_string())))
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
    pub(super) test_runner: Py<PyAny>,
    pub(super) agent_fn: Py<PyAny>,
    rules: StopRules,
    pub(super) strategy: LoopStrategy,
    pub(super) stop_when: Option<Py<PyAny>>,
    pub(super) on_iteration: Option<Py<PyAny>>,
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
        let multi = MultiSignal::new(reward_weights.as_ref().map(|w| **w).unwrap_or_default(), target_ms)?;
        if strategy.is_some() && (reward_weights.is_some() || target_ms != DEFAULT_TARGET_MS) {
            return Err(PyValueError::new_err(
                "reward_weights and target_ms make the default strategy; with strategy= give them to the strategy",
            ));
        }
        if let Some(class) = strategy.as_ref().filter(|s| s.0.bind(py).is_instance_of::<PyType>()) {
            let name = class.0.bind(py).getattr("__name__")?;
            return Err(PyTypeError::new_err(format!(
                "strategy is the class {name}; did you mean {name}()?"
            )));
        }
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
        let run = Self::_begin(slf, task, None, false)?;
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
        let run = Self::_resume(slf, journal, false)?;
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

    /// Whether a bar is shown.
    #[getter]
    fn progress(&self) -> bool {
        self.progress
    }

    /// Begins a run without driving it; one of many has no bar of its own.
    #[pyo3(signature = (task: "object"=None, journal=None, *, one_of_many=false))]
    fn _begin(
        slf: &Bound<'_, Self>,
        task: Option<Py<PyAny>>,
        journal: Option<PathBuf>,
        one_of_many: bool,
    ) -> PyResult<LoopRun> {
        let (py, this) = (slf.py(), slf.get());
        let task = task.unwrap_or_else(|| py.None());
        let journal = match journal.or_else(|| this.journal.clone()) {
            None => None,
            Some(path) => {
                let header = this.header(py, task.bind(py))?;
                Some(py.detach(|| Journal::create(&path, header))?)
            }
        };
        this.start(slf, History::of(task, core::History::default(), 0.0), journal, one_of_many)
    }

    /// Takes up the run in a journal without driving it; one of many has no bar of its own.
    #[pyo3(signature = (journal=None, *, one_of_many=false))]
    fn _resume(slf: &Bound<'_, Self>, journal: Option<PathBuf>, one_of_many: bool) -> PyResult<LoopRun> {
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
        let run =
            this.start(slf, History::of(task, state, recovered.duration_ms), Some(journal), one_of_many)?;
        // It was killed, perhaps, between its last iteration and the question that follows one.
        if has_begun && let Err(error) = run.ask_stop_when(py) {
            run.fail(py, error.value(py).as_any())?;
            return Err(error);
        }
        Ok(run)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.test_runner)?;
        visit.call(&self.agent_fn)?;
        visit.call(&self.stop_when)?;
        visit.call(&self.on_iteration)?;
        if let LoopStrategy::Own(own) = &self.strategy {
            visit.call(own)?;
        }
        match self.history.try_lock() {
            Ok(history) => visit.call(&*history),
            Err(_) => Ok(()), // it is being set, so it is not garbage
        }
    }

    fn __clear__(&self) {
        let history = lock(&self.history).take();
        drop(history);
    }

    fn __repr__(&self) -> String {
        format!("<AgentTestLoop of at most {} iterations>", self.rules.max_iterations)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("test_runner", &self.test_runner)?;
        kwargs.set_item("agent_fn", &self.agent_fn)?;
        kwargs.set_item("max_iterations", self.rules.max_iterations)?;
        kwargs.set_item("strategy", self.strategy_object(py)?)?;
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

    fn start(
        &self,
        slf: &Bound<'_, Self>,
        history: History,
        journal: Option<Journal>,
        one_of_many: bool,
    ) -> PyResult<LoopRun> {
        let py = slf.py();
        let before_ms = history.duration_ms();
        let history = Py::new(py, history)?;
        let last = lock(&self.history).replace(history.clone_ref(py));
        drop(last);
        let strategy = match &self.strategy {
            LoopStrategy::BuiltIn(strategy) => *strategy,
            LoopStrategy::Own(_) => Strategy::default(),
        };
        let bar = match self.progress && !one_of_many {
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
            before_ms,
            cancelled: AtomicBool::new(false),
        })
    }
}
