//! The published reward formulas for one suite, exactly as published.
//!
//! Their blind spots (a crash at once earns the speed bonus, skipping raises the pass rate) stay in; they
//! are answered by `strategy`, not here.

use super::COMPONENTS;
use crate::outcome::{Error, SuiteResult, Tally};

/// 1.0 when all tests passed, else 0.0.
pub fn binary_reward(suite: &SuiteResult) -> f64 {
    f64::from(u8::from(suite.all_passed()))
}

/// passed / (total - skipped), 0.0 when nothing is active.
pub fn pass_rate_reward(suite: &SuiteResult) -> f64 {
    suite.tally().pass_rate()
}

/// Severity weight of the passed tests / severity weight of the active tests, 0.0 when nothing is active.
pub fn severity_weighted_reward(suite: &SuiteResult) -> f64 {
    suite.tally().severity_score()
}

/// Pass rate now minus pass rate before; the pass rate itself when there is no previous suite.
pub fn progression_reward(current: &SuiteResult, previous: Option<&SuiteResult>) -> f64 {
    progression(current.tally(), previous.map(|p| p.tally().pass_rate()))
}

/// exp(-sum of durations / target), 0.0 for no tests.
pub fn speed_score(suite: &SuiteResult, target_ms: f64) -> Result<f64, Error> {
    Ok(speed(suite.tally(), super::check_target(target_ms)?))
}

#[inline]
pub(super) fn progression(now: &Tally, previous_pass_rate: Option<f64>) -> f64 {
    match previous_pass_rate {
        Some(before) => now.pass_rate() - before,
        None => now.pass_rate(),
    }
}

#[inline]
pub(super) fn speed(now: &Tally, target_ms: f64) -> f64 {
    if now.total() == 0 { 0.0 } else { (-now.duration_ms / target_ms).exp() }
}

/// All components of one suite, in the order of `RewardWeights`.
#[inline]
pub(super) fn components(
    now: &Tally,
    previous_pass_rate: Option<f64>,
    coverage: f64,
    target_ms: f64,
) -> [f64; COMPONENTS] {
    [
        now.pass_rate(),
        now.severity_score(),
        progression(now, previous_pass_rate),
        coverage,
        speed(now, target_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{About, TestResult, TestStatus};

    fn suite(passed: usize, failed: usize, duration_ms: f64) -> SuiteResult {
        let status = |i| if i < passed { TestStatus::Passed } else { TestStatus::Failed };
        let test = |i| TestResult::new("t", status(i)).with_duration_ms(duration_ms).unwrap();
        SuiteResult::new((0..passed + failed).map(test).collect(), About::named("s")).unwrap()
    }

    #[test]
    fn three_of_ten_to_seven_of_ten_is_a_gain_of_four_tenths() {
        let gain = progression_reward(&suite(7, 3, 0.0), Some(&suite(3, 7, 0.0)));
        assert!((gain - 0.4).abs() < 1e-12);
    }

    #[test]
    fn without_a_previous_suite_progression_is_the_pass_rate() {
        assert_eq!(progression_reward(&suite(7, 3, 0.0), None), 0.7);
    }

    #[test]
    fn an_empty_suite_earns_nothing() {
        let empty = suite(0, 0, 0.0);
        assert_eq!(binary_reward(&empty), 0.0);
        assert_eq!(pass_rate_reward(&empty), 0.0);
        assert_eq!(severity_weighted_reward(&empty), 0.0);
        assert_eq!(speed_score(&empty, 1000.0).unwrap(), 0.0);
    }

    #[test]
    fn the_target_duration_scores_one_over_e() {
        assert!((speed_score(&suite(4, 0, 250.0), 1000.0).unwrap() - (-1.0_f64).exp()).abs() < 1e-12);
    }
}
