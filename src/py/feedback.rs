//! Python methods of [`CodeSubmission`] and [`FeedbackEntry`], and the functions around them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::convert::{Again, Entries, NewArgs, Text, Tuple, from_json, to_json};
use super::history::entries_of;
use super::repr::Call;
use crate::feedback::{self, CodeSubmission, DEFAULT_MAX_CHARS, FeedbackEntry, PromptStyle};
use crate::outcome::{SuiteResult, check_whole, shared};
use crate::reward::{DEFAULT_TARGET_MS, RewardSignal, RewardWeights};

#[pymethods]
impl CodeSubmission {
    #[new]
    #[pyo3(signature = (code, iteration, strategy=Text::named("initial")))]
    fn py_new(code: Text, iteration: i64, strategy: Text) -> PyResult<Self> {
        Ok(Self::new(&code.0, check_whole("iteration", ">= 0", 0, iteration)?, &strategy.0))
    }

    /// The code.
    #[getter(code)]
    fn py_code(&self) -> &str {
        &self.code
    }

    /// Which turn of the loop it is, from 1.
    #[getter(iteration)]
    fn py_iteration(&self) -> u32 {
        self.iteration
    }

    /// What it was meant to do.
    #[getter(strategy)]
    fn py_strategy(&self) -> &str {
        &self.strategy
    }

    /// The value as JSON; `from_json` reads it back.
    #[pyo3(name = "to_json")]
    fn py_to_json(&self) -> PyResult<String> {
        to_json(self)
    }

    /// The value that `to_json` wrote.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_json("CodeSubmission", text)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        Call::new(py, "CodeSubmission")
            .text("", &self.code)
            .raw("", &self.iteration.to_string())
            .text_unless("strategy", &self.strategy, "initial")
            .done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (&str, u32, &str)> {
        (py.get_type::<Self>(), (&self.code, self.iteration, &self.strategy))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("code", "iteration", "strategy")
    }
}

#[pymethods]
impl FeedbackEntry {
    #[new]
    #[pyo3(signature = (iteration, submission, suite_result, reward, failing_tests))]
    fn py_new(
        iteration: i64,
        submission: PyRef<'_, CodeSubmission>,
        suite_result: PyRef<'_, SuiteResult>,
        reward: PyRef<'_, RewardSignal>,
        failing_tests: Vec<(Text, Text)>,
    ) -> PyResult<Self> {
        let failing_tests = failing_tests
            .into_iter()
            .map(|(name, message)| (shared(&name.0), Arc::from(message.0)))
            .collect();
        Ok(Self {
            iteration: check_whole("iteration", ">= 0", 0, iteration)?,
            submission: submission.clone(),
            suite_result: suite_result.clone(),
            reward: *reward,
            failing_tests,
        })
    }

    /// Which turn of the loop it is, from 1.
    #[getter(iteration)]
    fn py_iteration(&self) -> u32 {
        self.iteration
    }

    /// What was submitted.
    #[getter(submission)]
    fn py_submission(&self) -> CodeSubmission {
        self.submission.clone()
    }

    /// What the tests said.
    #[getter(suite_result)]
    fn py_suite_result(&self) -> SuiteResult {
        self.suite_result.clone()
    }

    /// What it earned.
    #[getter(reward)]
    fn py_reward(&self) -> RewardSignal {
        self.reward
    }

    /// Name and message of each failing test that the agent may see.
    #[getter(failing_tests)]
    fn py_failing_tests(&self) -> Tuple<(&str, &str)> {
        Tuple(self.failing_tests.iter().map(|(name, message)| (&**name, &**message)).collect())
    }

    /// What to show the agent next.
    ///
    /// Failing tests come worst first: critical before major before minor, errors before failures, else in the
    /// suite's order. Hidden tests are shown only as counts.
    ///
    /// Args:
    ///     max_chars: The budget in characters. Messages and details are cut to it; the name of a failing test
    ///         never is, so the text is longer when the names alone are.
    ///     style: "markdown", "xml" or "json".
    ///
    /// Raises:
    ///     ValueError: An unknown style.
    #[pyo3(name = "to_prompt", signature = (max_chars=DEFAULT_MAX_CHARS as i64, style="markdown"))]
    fn py_to_prompt(&self, max_chars: i64, style: &str) -> PyResult<String> {
        let max_chars = check_whole("max_chars", ">= 0", 0, max_chars)? as usize;
        Ok(self.to_prompt(max_chars, PromptStyle::parse(style)?))
    }

    /// The value as JSON; `from_json` reads it back.
    #[pyo3(name = "to_json")]
    fn py_to_json(&self) -> PyResult<String> {
        to_json(self)
    }

    /// The value that `to_json` wrote.
    #[staticmethod]
    #[pyo3(name = "from_json", signature = (text: "str | bytes"))]
    fn py_from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_json("FeedbackEntry", text)
    }

    fn __repr__(&self) -> String {
        let tally = self.suite_result.tally();
        format!(
            "<FeedbackEntry {}: {} of {} passed, reward {:.3}>",
            self.iteration,
            tally.passed,
            tally.active(),
            self.reward.total
        )
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<NewArgs<'py>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("iteration", self.iteration)?;
        kwargs.set_item("submission", self.submission.clone())?;
        kwargs.set_item("suite_result", self.suite_result.clone())?;
        kwargs.set_item("reward", self.reward)?;
        kwargs.set_item("failing_tests", self.py_failing_tests())?;
        Ok(NewArgs(py.get_type::<Self>(), kwargs))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
        ("iteration", "submission", "suite_result", "reward", "failing_tests")
    }
}

/// Name and message of each test that failed or ended in an error, in the suite's order; hidden ones left out.
#[pyfunction]
#[pyo3(signature = (suite))]
pub fn extract_failing_tests(suite: PyRef<'_, SuiteResult>) -> Tuple<(String, String)> {
    let failing = feedback::extract_failing_tests(&suite);
    Tuple(failing.iter().map(|(name, message)| (name.to_string(), message.to_string())).collect())
}

/// The entry for one submission: its failing tests and its multi-signal reward.
///
/// Args:
///     submission: What was submitted.
///     suite: What the tests said.
///     previous_suite: What they said before, for the progression.
///     coverage: 0..1; None means the suite's own coverage, else 0.0.
///     target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
///     weights: How much each component counts; None means `RewardWeights()`.
///
/// Raises:
///     ValueError: Coverage outside 0..1, a target that is not finite and > 0.
#[pyfunction]
#[pyo3(signature = (submission, suite, previous_suite=None, coverage=None, target_ms=DEFAULT_TARGET_MS, weights=None))]
pub fn build_feedback(
    submission: PyRef<'_, CodeSubmission>,
    suite: PyRef<'_, SuiteResult>,
    previous_suite: Option<PyRef<'_, SuiteResult>>,
    coverage: Option<f64>,
    target_ms: f64,
    weights: Option<PyRef<'_, RewardWeights>>,
) -> PyResult<FeedbackEntry> {
    let weights = weights.map(|w| *w).unwrap_or_default();
    let (submission, suite) = (submission.clone(), suite.clone());
    Ok(feedback::build_feedback(submission, suite, previous_suite.as_deref(), coverage, target_ms, &weights)?)
}

/// What the next submission is for, judged by the last suite of the history.
///
/// Args:
///     history: A `History` or any iterable of `FeedbackEntry`.
///
/// Returns:
///     "initial" before the first, "fix_errors" after errors, "fix_failures" after failures, "refactor" once
///     all passed.
#[pyfunction]
#[pyo3(signature = (history))]
pub fn infer_strategy(history: Entries<'_>) -> PyResult<&'static str> {
    Ok(feedback::infer_strategy(entries_of(&history.0)?.last().map(|e| &e.suite_result)))
}
