//! Python methods of weights, signals and strategies, and the scalar reward functions.

use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::type_hint_union;

use super::convert::{Again, Tuple, from_json, to_json};
use super::enums::wrong_type;
use super::repr::Call;
use crate::outcome::SuiteResult;
use crate::reward::{
    self, Binary, Curriculum, DEFAULT_TARGET_MS, Gated, MultiSignal, PassRate, Progression, RewardSignal,
    RewardWeights, SeverityWeighted, Strategy,
};

#[pymethods]
impl RewardWeights {
    #[new]
    #[pyo3(signature = (pass_rate=0.35, severity=0.25, progression=0.20, coverage=0.10, speed=0.10))]
    fn py_new(pass_rate: f64, severity: f64, progression: f64, coverage: f64, speed: f64) -> PyResult<Self> {
        Ok(Self::new(pass_rate, severity, progression, coverage, speed)?)
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
        from_json("RewardWeights", text)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        Call::new(py, "RewardWeights")
            .number("pass_rate", self.pass_rate)
            .number("severity", self.severity)
            .number("progression", self.progression)
            .number("coverage", self.coverage)
            .number("speed", self.speed)
            .done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (f64, f64, f64, f64, f64)> {
        (py.get_type::<Self>(), (self.pass_rate, self.severity, self.progression, self.coverage, self.speed))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str, &'static str) {
        ("pass_rate", "severity", "progression", "coverage", "speed")
    }
}

#[pymethods]
impl RewardSignal {
    #[new]
    #[pyo3(signature = (pass_rate, severity_score, progression, coverage_score, speed_score, total))]
    fn py_new(
        pass_rate: f64,
        severity_score: f64,
        progression: f64,
        coverage_score: f64,
        speed_score: f64,
        total: f64,
    ) -> PyResult<Self> {
        Ok(Self::new([pass_rate, severity_score, progression, coverage_score, speed_score], total)?)
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
        from_json("RewardSignal", text)
    }

    fn __float__(&self) -> f64 {
        self.total
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        Call::new(py, "RewardSignal")
            .number("pass_rate", self.pass_rate)
            .number("severity_score", self.severity_score)
            .number("progression", self.progression)
            .number("coverage_score", self.coverage_score)
            .number("speed_score", self.speed_score)
            .number("total", self.total)
            .done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (f64, f64, f64, f64, f64, f64)> {
        let [a, b, c, d, e] = self.components();
        (py.get_type::<Self>(), (a, b, c, d, e, self.total))
    }

    /// For `match`.
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str)
    {
        ("pass_rate", "severity_score", "progression", "coverage_score", "speed_score", "total")
    }
}

/// Methods of strategies without settings.
macro_rules! plain_strategy {
    ($type:ident) => {
        #[pymethods]
        impl $type {
            #[new]
            fn py_new() -> Self {
                Self {}
            }

            /// The strategy's name.
            #[getter]
            fn name(&self) -> &'static str {
                Strategy::from(*self).name()
            }

            #[pyo3(signature = (suite, previous=None))]
            fn __call__(
                &self,
                suite: PyRef<'_, SuiteResult>,
                previous: Option<PyRef<'_, SuiteResult>>,
            ) -> PyResult<RewardSignal> {
                Ok(Strategy::from(*self).signal(&suite, previous.as_deref(), None)?)
            }

            fn __repr__(&self) -> &'static str {
                concat!(stringify!($type), "()")
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, Tuple<f64>> {
                (py.get_type::<Self>(), Tuple(Vec::new()))
            }
        }
    };
}

plain_strategy!(Binary);
plain_strategy!(PassRate);
plain_strategy!(SeverityWeighted);
plain_strategy!(Progression);

/// Methods of strategies with weights and a target.
macro_rules! weighted_strategy {
    ($type:ident) => {
        #[pymethods]
        impl $type {
            #[new]
            #[pyo3(signature = (weights=None, target_ms=DEFAULT_TARGET_MS))]
            fn py_new(weights: Option<PyRef<'_, RewardWeights>>, target_ms: f64) -> PyResult<Self> {
                Ok(Self::new(weights.map(|w| *w).unwrap_or_default(), target_ms)?)
            }

            /// The strategy's name.
            #[getter]
            fn name(&self) -> &'static str {
                Strategy::from(*self).name()
            }

            #[pyo3(signature = (suite, previous=None))]
            fn __call__(
                &self,
                suite: PyRef<'_, SuiteResult>,
                previous: Option<PyRef<'_, SuiteResult>>,
            ) -> PyResult<RewardSignal> {
                Ok(Strategy::from(*self).signal(&suite, previous.as_deref(), None)?)
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                Call::new(py, stringify!($type))
                    .raw("weights", &self.weights.__repr__(py))
                    .number("target_ms", self.target_ms)
                    .done()
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (RewardWeights, f64)> {
                (py.get_type::<Self>(), (self.weights, self.target_ms))
            }
        }
    };
}

weighted_strategy!(MultiSignal);
weighted_strategy!(Gated);

#[pymethods]
impl Curriculum {
    #[new]
    #[pyo3(signature = (threshold=0.8, weights=None, target_ms=DEFAULT_TARGET_MS))]
    fn py_new(threshold: f64, weights: Option<PyRef<'_, RewardWeights>>, target_ms: f64) -> PyResult<Self> {
        Ok(Self::new(threshold, weights.map(|w| *w).unwrap_or_default(), target_ms)?)
    }

    /// The strategy's name.
    #[getter]
    fn name(&self) -> &'static str {
        Strategy::from(*self).name()
    }

    #[pyo3(signature = (suite, previous=None))]
    fn __call__(
        &self,
        suite: PyRef<'_, SuiteResult>,
        previous: Option<PyRef<'_, SuiteResult>>,
    ) -> PyResult<RewardSignal> {
        Ok(Strategy::from(*self).signal(&suite, previous.as_deref(), None)?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        Call::new(py, "Curriculum")
            .number("threshold", self.threshold)
            .raw("weights", &self.weights.__repr__(py))
            .number("target_ms", self.target_ms)
            .done()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (f64, RewardWeights, f64)> {
        (py.get_type::<Self>(), (self.threshold, self.weights, self.target_ms))
    }
}

/// One of testgrad's own strategies.
pub struct BuiltIn(pub Strategy);

impl<'a, 'py> FromPyObject<'a, 'py> for BuiltIn {
    type Error = PyErr;
    const INPUT_TYPE: PyStaticExpr = type_hint_union!(
        <Binary as pyo3::PyTypeInfo>::TYPE_HINT,
        <PassRate as pyo3::PyTypeInfo>::TYPE_HINT,
        <SeverityWeighted as pyo3::PyTypeInfo>::TYPE_HINT,
        <Progression as pyo3::PyTypeInfo>::TYPE_HINT,
        <MultiSignal as pyo3::PyTypeInfo>::TYPE_HINT,
        <Gated as pyo3::PyTypeInfo>::TYPE_HINT,
        <Curriculum as pyo3::PyTypeInfo>::TYPE_HINT
    );

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        built_in(&object)
            .map(Self)
            .ok_or_else(|| wrong_type("strategy", "one of testgrad's strategies", &object))
    }
}

/// The strategy an object is, if it is one of ours.
pub fn built_in(object: &Bound<'_, PyAny>) -> Option<Strategy> {
    macro_rules! first {
        ($($type:ident),+) => {
            None$(.or_else(|| object.cast::<$type>().ok().map(|s| Strategy::from(*s.get()))))+
        };
    }
    first!(Binary, PassRate, SeverityWeighted, Progression, MultiSignal, Gated, Curriculum)
}

/// 1.0 when all tests passed, else 0.0.
#[pyfunction]
#[pyo3(signature = (suite))]
pub fn binary_reward(suite: PyRef<'_, SuiteResult>) -> f64 {
    reward::binary_reward(&suite)
}

/// passed / (total - skipped), 0.0 when nothing is active.
#[pyfunction]
#[pyo3(signature = (suite))]
pub fn pass_rate_reward(suite: PyRef<'_, SuiteResult>) -> f64 {
    reward::pass_rate_reward(&suite)
}

/// Severity weight of the passed tests / severity weight of the active tests, 0.0 when nothing is active.
///
/// The weights are CRITICAL 3, MAJOR 2, MINOR 1.
#[pyfunction]
#[pyo3(signature = (suite))]
pub fn severity_weighted_reward(suite: PyRef<'_, SuiteResult>) -> f64 {
    reward::severity_weighted_reward(&suite)
}

/// Pass rate now minus pass rate before, -1..1; the pass rate itself when there is no previous suite.
#[pyfunction]
#[pyo3(signature = (current, previous))]
pub fn progression_reward(current: PyRef<'_, SuiteResult>, previous: Option<PyRef<'_, SuiteResult>>) -> f64 {
    reward::progression_reward(&current, previous.as_deref())
}

/// exp(-sum of durations / target_ms), 0..1; 0.0 for no tests.
///
/// Raises:
///     ValueError: A target that is not finite and > 0.
#[pyfunction]
#[pyo3(signature = (suite, target_ms=DEFAULT_TARGET_MS))]
pub fn speed_score(suite: PyRef<'_, SuiteResult>, target_ms: f64) -> PyResult<f64> {
    Ok(reward::speed_score(&suite, target_ms)?)
}

/// The components of one suite, and as their total the weighted sum, not clamped.
///
/// Args:
///     suite: The suite to reward.
///     previous: The suite before, for the progression.
///     coverage: 0..1; None means the suite's own coverage, else 0.0.
///     target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
///     weights: How much each component counts; None means `RewardWeights()`.
///
/// Raises:
///     ValueError: Coverage outside 0..1, a target that is not finite and > 0.
///
/// Example:
///     >>> from testgrad import SuiteResult, TestResult, compute_reward_signal
///     >>> suite = SuiteResult([TestResult("a", "passed"), TestResult("b", "failed")])
///     >>> compute_reward_signal(suite).total
///     0.5
#[pyfunction]
#[pyo3(signature = (suite, previous=None, coverage=None, target_ms=DEFAULT_TARGET_MS, weights=None))]
pub fn compute_reward_signal(
    suite: PyRef<'_, SuiteResult>,
    previous: Option<PyRef<'_, SuiteResult>>,
    coverage: Option<f64>,
    target_ms: f64,
    weights: Option<PyRef<'_, RewardWeights>>,
) -> PyResult<RewardSignal> {
    let weights = weights.map(|w| *w).unwrap_or_default();
    Ok(reward::compute_reward_signal(&suite, previous.as_deref(), coverage, target_ms, &weights)?)
}
