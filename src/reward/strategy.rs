//! Strategies: how the components become the total.
//!
//! The components are always filled in; a strategy decides only `total`. Each is a plain value, the same
//! for one suite and for arrays of them.

use serde::Serialize;

use super::{
    COMPONENTS, DEFAULT_TARGET_MS, RewardSignal, RewardWeights, check_coverage, check_target, scalar,
};
use crate::outcome::{Error, SuiteResult, Tally, check_range};

/// 1.0 when all tests passed, else 0.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct Binary {}

/// The pass rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct PassRate {}

/// The severity score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct SeverityWeighted {}

/// The progression: it telescopes, so its sum over a run is the final pass rate and stalling earns nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct Progression {}

/// The weighted sum of the components, not clamped.
///
/// Args:
///     weights: How much each component counts; None means `RewardWeights()`.
///     target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
///
/// Raises:
///     ValueError: A target that is not finite and > 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad"))]
pub struct MultiSignal {
    /// How much each component counts.
    pub weights: RewardWeights,
    /// The duration in milliseconds at which the speed score has fallen to 1/e.
    pub target_ms: f64,
}

/// Correctness, and speed and coverage only in proportion to it; exactly 1.0 for full success.
///
/// With correctness c = (w_pass_rate * pass_rate + w_severity * severity_score) / (w_pass_rate + w_severity),
/// total = c * (w_pass_rate + w_severity + w_coverage * coverage_score + w_speed * speed_score) / (the sum of
/// those four weights), and 1.0 when all tests passed. So 0 <= total <= c: what passes nothing earns nothing,
/// however quickly it fails. Progression is left out: it depends on the way, not on the code.
///
/// Args:
///     weights: How much each component counts; None means `RewardWeights()`.
///     target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
///
/// Raises:
///     ValueError: A target that is not finite and > 0, or weights of which pass_rate and severity are both 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad"))]
pub struct Gated {
    /// How much each component counts; progression is not used.
    pub weights: RewardWeights,
    /// The duration in milliseconds at which the speed score has fallen to 1/e.
    pub target_ms: f64,
}

/// Pass rate first, then the multi-signal sum, binary for the final acceptance.
///
/// The stage is chosen by the pass rate of the previous suite: below `threshold` the total is the pass rate,
/// from there on the weighted sum, and once everything has passed before, binary. A suite that passes
/// everything earns exactly 1.0 in every stage.
///
/// Args:
///     threshold: The previous pass rate from which the weighted sum counts, 0..1.
///     weights: How much each component counts in the second stage; None means `RewardWeights()`.
///     target_ms: The duration in milliseconds at which the speed score has fallen to 1/e, > 0.
///
/// Raises:
///     ValueError: A threshold outside 0..1, a target that is not finite and > 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad"))]
pub struct Curriculum {
    /// The previous pass rate from which the multi-signal sum counts, 0..1.
    pub threshold: f64,
    /// How much each component counts in the second stage.
    pub weights: RewardWeights,
    /// The duration in milliseconds at which the speed score has fallen to 1/e.
    pub target_ms: f64,
}

impl Default for MultiSignal {
    fn default() -> Self {
        Self { weights: RewardWeights::default(), target_ms: DEFAULT_TARGET_MS }
    }
}

impl Default for Gated {
    fn default() -> Self {
        Self { weights: RewardWeights::default(), target_ms: DEFAULT_TARGET_MS }
    }
}

impl MultiSignal {
    /// The weighted sum with these weights; the target is checked.
    pub fn new(weights: RewardWeights, target_ms: f64) -> Result<Self, Error> {
        Ok(Self { weights, target_ms: check_target(target_ms)? })
    }
}

impl Gated {
    /// A gated sum; the pass rate and the severity must not both weigh 0.
    pub fn new(weights: RewardWeights, target_ms: f64) -> Result<Self, Error> {
        if weights.pass_rate + weights.severity <= 0.0 {
            return Err(Error::Mismatch {
                argument: "weights",
                problem: "pass_rate and severity are both 0, so nothing says what is correct; give one a weight > 0"
                    .to_owned(),
            });
        }
        Ok(Self { weights, target_ms: check_target(target_ms)? })
    }

    #[inline]
    fn total(&self, components: &[f64; COMPONENTS], all_passed: bool) -> f64 {
        if all_passed {
            return 1.0;
        }
        let [pass_rate, severity, _, coverage, speed] = *components;
        let w = &self.weights;
        let core = w.pass_rate + w.severity;
        let correct = (w.pass_rate * pass_rate + w.severity * severity) / core;
        let share = (core + w.coverage * coverage + w.speed * speed) / (core + w.coverage + w.speed);
        // A suite with problems is no success, even when all of its tests passed at once.
        (correct * share).min(1.0_f64.next_down())
    }
}

impl Curriculum {
    /// A curriculum; threshold and target are checked.
    pub fn new(threshold: f64, weights: RewardWeights, target_ms: f64) -> Result<Self, Error> {
        let threshold = check_range("threshold", "between 0 and 1", 0.0..=1.0, threshold)?;
        Ok(Self { threshold, weights, target_ms: check_target(target_ms)? })
    }

    #[inline]
    fn total(
        &self,
        components: &[f64; COMPONENTS],
        all_passed: bool,
        previous_pass_rate: Option<f64>,
    ) -> f64 {
        let reached = previous_pass_rate.unwrap_or(0.0);
        if all_passed {
            1.0
        } else if reached >= 1.0 {
            0.0
        } else if reached >= self.threshold {
            self.weights.total(components)
        } else {
            let [pass_rate, ..] = *components;
            pass_rate
        }
    }
}

macro_rules! hash_by_bits {
    ($($name:ident),+) => {$(
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.weights.hash(state);
                self.target_ms.to_bits().hash(state);
            }
        }
    )+};
}

hash_by_bits!(MultiSignal, Gated, Curriculum);

/// Any of the strategies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "strategy", rename_all = "snake_case")]
pub enum Strategy {
    /// See [`Binary`].
    Binary(Binary),
    /// See [`PassRate`].
    PassRate(PassRate),
    /// See [`SeverityWeighted`].
    SeverityWeighted(SeverityWeighted),
    /// See [`Progression`].
    Progression(Progression),
    /// See [`MultiSignal`].
    MultiSignal(MultiSignal),
    /// See [`Gated`].
    Gated(Gated),
    /// See [`Curriculum`].
    Curriculum(Curriculum),
}

impl Default for Strategy {
    fn default() -> Self {
        Self::MultiSignal(MultiSignal::default())
    }
}

macro_rules! into_strategy {
    ($($name:ident),+) => {$(
        impl From<$name> for Strategy {
            fn from(strategy: $name) -> Self {
                Self::$name(strategy)
            }
        }
    )+};
}

into_strategy!(Binary, PassRate, SeverityWeighted, Progression, MultiSignal, Gated, Curriculum);

impl Strategy {
    /// The strategy's name in lower case.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Binary(_) => "binary",
            Self::PassRate(_) => "pass_rate",
            Self::SeverityWeighted(_) => "severity_weighted",
            Self::Progression(_) => "progression",
            Self::MultiSignal(_) => "multi_signal",
            Self::Gated(_) => "gated",
            Self::Curriculum(_) => "curriculum",
        }
    }

    /// The target duration its speed component uses.
    #[inline]
    pub fn target_ms(&self) -> f64 {
        match self {
            Self::MultiSignal(s) => s.target_ms,
            Self::Gated(s) => s.target_ms,
            Self::Curriculum(s) => s.target_ms,
            _ => DEFAULT_TARGET_MS,
        }
    }

    /// The total for these components.
    #[inline]
    pub(super) fn total(
        &self,
        components: &[f64; COMPONENTS],
        all_passed: bool,
        previous_pass_rate: Option<f64>,
    ) -> f64 {
        let [pass_rate, severity, progression, ..] = *components;
        match self {
            Self::Binary(_) => f64::from(u8::from(all_passed)),
            Self::PassRate(_) => pass_rate,
            Self::SeverityWeighted(_) => severity,
            Self::Progression(_) => progression,
            Self::MultiSignal(s) => s.weights.total(components),
            Self::Gated(s) => s.total(components, all_passed),
            Self::Curriculum(s) => s.total(components, all_passed, previous_pass_rate),
        }
    }

    /// The components and total of a tally.
    #[inline]
    pub(super) fn of_tally(
        &self,
        now: &Tally,
        all_passed: bool,
        previous_pass_rate: Option<f64>,
        coverage: f64,
    ) -> ([f64; COMPONENTS], f64) {
        let components = scalar::components(now, previous_pass_rate, coverage, self.target_ms());
        (components, self.total(&components, all_passed, previous_pass_rate))
    }

    /// The signal of one suite; `coverage` of `None` means the suite's own, else 0.0.
    pub fn signal(
        &self,
        suite: &SuiteResult,
        previous: Option<&SuiteResult>,
        coverage: Option<f64>,
    ) -> Result<RewardSignal, Error> {
        let coverage = match coverage {
            Some(given) => check_coverage(given)?,
            None => suite.about().coverage.unwrap_or(0.0),
        };
        let before = previous.map(|p| p.tally().pass_rate());
        let (components, total) = self.of_tally(suite.tally(), suite.all_passed(), before, coverage);
        Ok(RewardSignal::from_parts(components, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{About, TestResult, TestStatus};
    use proptest::{prop_assert, proptest};

    fn suite(passed: usize, failed: usize, duration_ms: f64) -> SuiteResult {
        let status = |i| if i < passed { TestStatus::Passed } else { TestStatus::Error };
        let test = |i| TestResult::new("t", status(i)).with_duration_ms(duration_ms).unwrap();
        SuiteResult::new((0..passed + failed).map(test).collect(), About::named("s")).unwrap()
    }

    fn total(strategy: impl Into<Strategy>, now: &SuiteResult, before: Option<&SuiteResult>) -> f64 {
        strategy.into().signal(now, before, None).unwrap().total
    }

    #[test]
    fn an_instant_crash_earns_nothing_when_gated_but_a_bonus_when_summed() {
        let crash = suite(0, 10, 0.0);
        assert_eq!(total(Gated::default(), &crash, None), 0.0);
        assert!((total(MultiSignal::default(), &crash, None) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn full_success_is_exactly_one_when_gated_and_in_every_stage() {
        let perfect = suite(7, 0, 5000.0);
        assert_eq!(total(Gated::default(), &perfect, None), 1.0);
        let curriculum = Curriculum::new(0.8, RewardWeights::default(), 1000.0).unwrap();
        for before in [None, Some(suite(1, 9, 0.0)), Some(suite(9, 1, 0.0)), Some(suite(10, 0, 0.0))] {
            assert_eq!(total(curriculum, &perfect, before.as_ref()), 1.0);
        }
    }

    #[test]
    fn a_curriculum_starts_with_the_pass_rate_and_goes_on_with_the_sum() {
        let curriculum = Curriculum::new(0.5, RewardWeights::default(), 1000.0).unwrap();
        let now = suite(6, 4, 100.0);
        assert_eq!(total(curriculum, &now, None), 0.6);
        assert_eq!(total(curriculum, &now, Some(&suite(4, 6, 0.0))), 0.6);
        let before = suite(5, 5, 0.0);
        assert_eq!(
            total(curriculum, &now, Some(&before)),
            total(MultiSignal::default(), &now, Some(&before))
        );
        assert_eq!(total(curriculum, &now, Some(&suite(10, 0, 0.0))), 0.0);
    }

    #[test]
    fn progression_sums_to_the_final_pass_rate() {
        let run = [suite(1, 9, 0.0), suite(1, 9, 0.0), suite(6, 4, 0.0), suite(9, 1, 0.0)];
        let mut before = None;
        let mut sum = 0.0;
        for now in &run {
            sum += total(Progression {}, now, before);
            before = Some(now);
        }
        assert!((sum - 0.9).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn gated_stays_in_range_and_one_more_pass_never_lowers_it(
            passed in 0_usize..20, failed in 1_usize..20, ms in 0.0_f64..500.0,
        ) {
            let less = total(Gated::default(), &suite(passed, failed, ms), None);
            let more = total(Gated::default(), &suite(passed + 1, failed - 1, ms), None);
            prop_assert!((0.0..=1.0).contains(&less));
            prop_assert!(more >= less);
        }
    }
}
