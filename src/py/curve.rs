//! Python methods of [`LearningPoint`], and the functions over a history.

use pyo3::prelude::*;

use super::convert::{Again, Entries, Tuple, from_json, to_json};
use super::history::entries_of;
use super::repr::Call;
use crate::curve::{self, LearningPoint};
use crate::outcome::check_whole;

#[pymethods]
impl LearningPoint {
    #[new]
    #[pyo3(signature = (iteration, pass_rate, total_reward, cumulative_reward, tests_fixed, tests_broken=0))]
    fn py_new(
        iteration: i64,
        pass_rate: f64,
        total_reward: f64,
        cumulative_reward: f64,
        tests_fixed: i64,
        tests_broken: i64,
    ) -> PyResult<Self> {
        let iteration = check_whole("iteration", ">= 0", 0, iteration)?;
        let fixed = check_whole("tests_fixed", ">= 0", 0, tests_fixed)?;
        let broken = check_whole("tests_broken", ">= 0", 0, tests_broken)?;
        Ok(Self::new(iteration, [pass_rate, total_reward, cumulative_reward], [fixed, broken])?)
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
        from_json("LearningPoint", text)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        Call::new(py, "LearningPoint")
            .raw("iteration", &self.iteration.to_string())
            .number("pass_rate", self.pass_rate)
            .number("total_reward", self.total_reward)
            .number("cumulative_reward", self.cumulative_reward)
            .raw("tests_fixed", &self.tests_fixed.to_string())
            .raw("tests_broken", &self.tests_broken.to_string())
            .done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (u32, f64, f64, f64, u32, u32)> {
        let Self { iteration, pass_rate, total_reward, cumulative_reward, tests_fixed, tests_broken } = *self;
        (
            py.get_type::<Self>(),
            (iteration, pass_rate, total_reward, cumulative_reward, tests_fixed, tests_broken),
        )
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str)
    {
        ("iteration", "pass_rate", "total_reward", "cumulative_reward", "tests_fixed", "tests_broken")
    }
}

/// One point an iteration; before the first, nothing passes.
///
/// Args:
///     history: A `History` or any iterable of `FeedbackEntry`.
#[pyfunction]
#[pyo3(signature = (history))]
pub fn learning_curve(history: Entries<'_>) -> PyResult<Tuple<LearningPoint>> {
    let entries = entries_of(&history.0)?;
    Ok(Tuple(history.0.py().detach(|| curve::learning_curve(&entries))))
}

/// The mean gain in pass rate an iteration, (last - first) / (n - 1); None for fewer than two iterations.
///
/// Args:
///     history: A `History` or any iterable of `FeedbackEntry`.
#[pyfunction]
#[pyo3(signature = (history))]
pub fn convergence_rate(history: Entries<'_>) -> PyResult<Option<f64>> {
    Ok(curve::convergence_rate(&entries_of(&history.0)?))
}

/// The slope of the total reward over the last `window` iterations, by least squares.
///
/// Args:
///     history: A `History` or any iterable of `FeedbackEntry`.
///     window: How many of the last iterations count, >= 2.
///
/// Returns:
///     Reward gained an iteration; 0.0 for fewer than two iterations.
#[pyfunction]
#[pyo3(signature = (history, window=3))]
pub fn reward_trend(history: Entries<'_>, window: i64) -> PyResult<f64> {
    let window = check_whole("window", ">= 2", 2, window)? as usize;
    Ok(curve::reward_trend(&entries_of(&history.0)?, window)?)
}
