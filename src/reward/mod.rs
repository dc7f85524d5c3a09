//! Rewards: what a suite is worth, as a vector of components and their total.
//!
//! `scalar` holds the published formulas for one suite, `strategy` the ways to make one total of the
//! components, `batch` the same rules over arrays, `group` what a group of rollouts says together.
//! Nothing here runs anything.

pub mod batch;
pub mod group;
pub mod scalar;
pub mod strategy;

use serde::{Deserialize, Serialize};

use crate::outcome::{Error, SuiteResult, check_range};

pub use scalar::{
    binary_reward, pass_rate_reward, progression_reward, severity_weighted_reward, speed_score,
};
pub use strategy::{
    Binary, Curriculum, Gated, MultiSignal, PassRate, Progression, SeverityWeighted, Strategy,
};

/// The number of reward components.
pub const COMPONENTS: usize = 5;

/// The duration at which the speed score has fallen to 1/e, unless the caller says otherwise.
pub const DEFAULT_TARGET_MS: f64 = 1000.0;

/// How much each component counts in the total.
///
/// Args:
///     pass_rate: Weight of the pass rate, finite and >= 0; so are the others.
///     severity: Weight of the severity score.
///     progression: Weight of the progression.
///     coverage: Weight of the coverage.
///     speed: Weight of the speed.
///
/// Raises:
///     ValueError: A weight that is negative, NaN or infinite.
///
/// Example:
///     >>> from testgrad import RewardWeights
///     >>> RewardWeights(speed=0.0)
///     RewardWeights(pass_rate=0.35, severity=0.25, progression=0.2, coverage=0.1, speed=0.0)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WeightsJson")]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad"))]
pub struct RewardWeights {
    /// Weight of the pass rate.
    pub pass_rate: f64,
    /// Weight of the severity score.
    pub severity: f64,
    /// Weight of the progression.
    pub progression: f64,
    /// Weight of the coverage.
    pub coverage: f64,
    /// Weight of the speed.
    pub speed: f64,
}

impl Default for RewardWeights {
    fn default() -> Self {
        Self { pass_rate: 0.35, severity: 0.25, progression: 0.20, coverage: 0.10, speed: 0.10 }
    }
}

impl RewardWeights {
    /// Weights that are each finite and not negative.
    pub fn new(
        pass_rate: f64,
        severity: f64,
        progression: f64,
        coverage: f64,
        speed: f64,
    ) -> Result<Self, Error> {
        let check = |argument, value| check_range(argument, "finite and >= 0", 0.0.., value);
        let weights = Self {
            pass_rate: check("pass_rate", pass_rate)?,
            severity: check("severity", severity)?,
            progression: check("progression", progression)?,
            coverage: check("coverage", coverage)?,
            speed: check("speed", speed)?,
        };
        check_range("the sum of the weights", "finite", .., weights.as_array().iter().sum())?;
        Ok(weights)
    }

    /// The weights in the order of the components.
    pub fn as_array(&self) -> [f64; COMPONENTS] {
        [self.pass_rate, self.severity, self.progression, self.coverage, self.speed]
    }

    /// The weighted sum of components; not clamped.
    #[inline]
    pub fn total(&self, components: &[f64; COMPONENTS]) -> f64 {
        self.as_array().iter().zip(components).map(|(w, c)| w * c).sum()
    }
}

impl std::hash::Hash for RewardWeights {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_array().map(f64::to_bits).hash(state);
    }
}

#[derive(Deserialize)]
struct WeightsJson {
    pass_rate: f64,
    severity: f64,
    progression: f64,
    coverage: f64,
    speed: f64,
}

impl TryFrom<WeightsJson> for RewardWeights {
    type Error = Error;

    fn try_from(w: WeightsJson) -> Result<Self, Error> {
        Self::new(w.pass_rate, w.severity, w.progression, w.coverage, w.speed)
    }
}

/// The reward as a vector plus its total.
///
/// Args:
///     pass_rate: Share of the active tests that passed, 0..1.
///     severity_score: Share of the active severity weight that passed, 0..1.
///     progression: Pass rate minus the previous pass rate, -1..1.
///     coverage_score: Coverage of the candidate, 0..1; 0.0 when not measured.
///     speed_score: exp(-time / target), 0..1.
///     total: What the strategy makes of them.
///
/// Raises:
///     ValueError: A number outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SignalJson")]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad"))]
pub struct RewardSignal {
    /// Share of the active tests that passed, 0..1.
    pub pass_rate: f64,
    /// Share of the active severity weight that passed, 0..1.
    pub severity_score: f64,
    /// Pass rate minus the previous pass rate, -1..1.
    pub progression: f64,
    /// Coverage of the candidate, 0..1; 0.0 when not measured.
    pub coverage_score: f64,
    /// exp(-time / target), 0..1.
    pub speed_score: f64,
    /// What the strategy makes of them.
    pub total: f64,
}

impl RewardSignal {
    /// A signal of numbers within their ranges.
    pub fn new(components: [f64; COMPONENTS], total: f64) -> Result<Self, Error> {
        let [pass_rate, severity_score, progression, coverage_score, speed_score] = components;
        let share = |argument, value| check_range(argument, "between 0 and 1", 0.0..=1.0, value);
        Ok(Self {
            pass_rate: share("pass_rate", pass_rate)?,
            severity_score: share("severity_score", severity_score)?,
            progression: check_range("progression", "between -1 and 1", -1.0..=1.0, progression)?,
            coverage_score: share("coverage_score", coverage_score)?,
            speed_score: share("speed_score", speed_score)?,
            total: check_range("total", "finite", .., total)?,
        })
    }

    #[inline]
    pub(crate) fn from_parts(components: [f64; COMPONENTS], total: f64) -> Self {
        let [pass_rate, severity_score, progression, coverage_score, speed_score] = components;
        Self { pass_rate, severity_score, progression, coverage_score, speed_score, total }
    }

    /// The components in the order of [`RewardWeights`].
    pub fn components(&self) -> [f64; COMPONENTS] {
        [self.pass_rate, self.severity_score, self.progression, self.coverage_score, self.speed_score]
    }
}

#[derive(Deserialize)]
struct SignalJson {
    pass_rate: f64,
    severity_score: f64,
    progression: f64,
    coverage_score: f64,
    speed_score: f64,
    total: f64,
}

impl TryFrom<SignalJson> for RewardSignal {
    type Error = Error;

    fn try_from(s: SignalJson) -> Result<Self, Error> {
        let components = [s.pass_rate, s.severity_score, s.progression, s.coverage_score, s.speed_score];
        Self::new(components, s.total)
    }
}

impl std::hash::Hash for RewardSignal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.components().map(f64::to_bits).hash(state);
        self.total.to_bits().hash(state);
    }
}

/// Checks a target duration.
pub fn check_target(target_ms: f64) -> Result<f64, Error> {
    check_range(
        "target_ms",
        "finite and > 0",
        (std::ops::Bound::Excluded(0.0), std::ops::Bound::Unbounded),
        target_ms,
    )
}

/// Checks a coverage.
pub fn check_coverage(coverage: f64) -> Result<f64, Error> {
    check_range("coverage", "between 0 and 1", 0.0..=1.0, coverage)
}

/// The components of one suite, and as their total the weighted sum.
///
/// `coverage` of `None` means the suite's own coverage, else 0.0.
pub fn compute_reward_signal(
    suite: &SuiteResult,
    previous: Option<&SuiteResult>,
    coverage: Option<f64>,
    target_ms: f64,
    weights: &RewardWeights,
) -> Result<RewardSignal, Error> {
    let multi = MultiSignal { weights: *weights, target_ms: check_target(target_ms)? };
    Strategy::MultiSignal(multi).signal(suite, previous, coverage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{About, TestResult, TestStatus};

    fn suite(passed: usize, failed: usize) -> SuiteResult {
        let status = |i| if i < passed { TestStatus::Passed } else { TestStatus::Failed };
        let tests = (0..passed + failed).map(|i| TestResult::new(&format!("t{i}"), status(i))).collect();
        SuiteResult::new(tests, About::named("default")).unwrap()
    }

    #[test]
    fn the_default_weights_sum_to_one() {
        assert!((RewardWeights::default().as_array().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_total_is_the_weighted_sum() {
        let previous = suite(3, 7);
        let signal = compute_reward_signal(
            &suite(7, 3),
            Some(&previous),
            Some(0.5),
            1000.0,
            &RewardWeights::default(),
        )
        .unwrap();
        assert!((signal.progression - 0.4).abs() < 1e-12);
        let expected = 0.35 * 0.7 + 0.25 * 0.7 + 0.20 * 0.4 + 0.10 * 0.5 + 0.10;
        assert!((signal.total - expected).abs() < 1e-12);
    }

    #[test]
    fn a_target_of_zero_is_refused() {
        let error =
            compute_reward_signal(&suite(1, 0), None, None, 0.0, &RewardWeights::default()).unwrap_err();
        assert_eq!(error.to_string(), "target_ms must be finite and > 0, got 0");
    }

    #[test]
    fn a_coverage_above_one_is_refused() {
        assert!(
            compute_reward_signal(&suite(1, 0), None, Some(1.2), 1000.0, &RewardWeights::default()).is_err()
        );
    }
}
