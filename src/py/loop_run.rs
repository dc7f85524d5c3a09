//! [`LoopRun`]: one run of the loop under way, and the plain driver.
//!
//! The steps are also what `testgrad._agent_loop` drives with `await` and in many threads. As in `history`, no Python
//! under a mutex.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::agent_loop::{AgentTestLoop, LoopStrategy};
use super::convert::with_text;
use super::enums::wrong_type;
use super::history::{History, lock};
use crate::agent_loop::{AgentLoop, Need, StopReason};
use crate::feedback::FeedbackEntry;
use crate::outcome::SuiteResult;
use crate::reward::RewardSignal;
use crate::store::Journal;

/// One run under way: what it needs, and the means to hand it in. Used by the drivers.
#[pyclass(frozen, module = "testgrad")]
pub struct LoopRun {
    pub(super) owner: Py<AgentTestLoop>,
    pub(super) history: Py<History>,
    pub(super) turn: Mutex<AgentLoop>,
    pub(super) journal: Mutex<Option<Journal>>,
    pub(super) bar: Option<Py<PyAny>>,
    pub(super) began: Instant,
    pub(super) before_ms: f64,
    pub(super) cancelled: AtomicBool,
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
        with_text("code", code, |code| {
            let state = lock(&self.history.get().state);
            lock(&self.turn).code(&state, code);
        })
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
        let duration_ms = self.elapsed_s() * 1e3;
        *lock(&history.duration_ms) = duration_ms;
        py.detach(|| match &mut *lock(&self.journal) {
            Some(journal) => journal.iteration(&entry, duration_ms),
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
    pub(super) fn fail(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        let interrupted = error.is_instance_of::<PyKeyboardInterrupt>() || is_cancelled(error)?;
        let reason = if interrupted { StopReason::Interrupted } else { StopReason::Exception };
        let history = self.history.get();
        let last = lock(&history.error).replace(error.clone().unbind());
        drop(last);
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
    pub(super) fn drive(slf: &Bound<'_, Self>) -> PyResult<Py<History>> {
        let (py, this) = (slf.py(), slf.get());
        match this.drive_steps(py).and_then(|()| this.close(py)) {
            Ok(()) => Ok(this.history.clone_ref(py)),
            // The history is with the caller already, and the exception comes of being interrupted.
            Err(_) if this.cancelled.load(Ordering::Acquire) => Ok(this.history.clone_ref(py)),
            Err(error) => {
                this.fail(py, error.value(py).as_any())?;
                Err(error)
            }
        }
    }

    /// Writes the end to the journal and lets go of it; closes the bar.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let journal = py.detach(|| lock(&self.journal).take());
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
    pub(super) fn ask_stop_when(&self, py: Python<'_>) -> PyResult<()> {
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
        self.before_ms / 1e3 + self.began.elapsed().as_secs_f64()
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
        py.detach(|| drop(lock(&self.journal).take())); // another thread may be syncing it
        match &self.bar {
            Some(bar) => bar.call_method0(py, "close").map(drop),
            None => Ok(()),
        }
    }
}
