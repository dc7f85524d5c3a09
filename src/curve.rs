//! How a run went: learning curve, convergence rate, reward trend.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::feedback::FeedbackEntry;
use crate::outcome::{Error, SuiteResult, TestResult, TestStatus, check_range};

/// One iteration's point on the learning curve.
///
/// Args:
///     iteration: Which turn of the loop it is.
///     pass_rate: Share of the active tests that passed, 0..1.
///     total_reward: The reward's total.
///     cumulative_reward: The sum of the totals so far.
///     tests_fixed: Tests that pass now and did not in the iteration before.
///     tests_broken: Tests that passed in the iteration before and do not now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LearningPointJson")]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad"))]
pub struct LearningPoint {
    /// Which turn of the loop it is.
    pub iteration: u32,
    /// Share of the active tests that passed, 0..1.
    pub pass_rate: f64,
    /// The reward's total.
    pub total_reward: f64,
    /// The sum of the totals so far.
    pub cumulative_reward: f64,
    /// Tests that pass now and did not in the iteration before.
    pub tests_fixed: u32,
    /// Tests that passed in the iteration before and do not now.
    pub tests_broken: u32,
}

impl std::hash::Hash for LearningPoint {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let floats = [self.pass_rate, self.total_reward, self.cumulative_reward];
        (self.iteration, floats.map(f64::to_bits), self.tests_fixed, self.tests_broken).hash(state);
    }
}

#[derive(Deserialize)]
struct LearningPointJson {
    iteration: u32,
    pass_rate: f64,
    total_reward: f64,
    cumulative_reward: f64,
    tests_fixed: u32,
    #[serde(default)]
    tests_broken: u32,
}

impl TryFrom<LearningPointJson> for LearningPoint {
    type Error = Error;

    fn try_from(p: LearningPointJson) -> Result<Self, Error> {
        let floats = [p.pass_rate, p.total_reward, p.cumulative_reward];
        Self::new(p.iteration, floats, [p.tests_fixed, p.tests_broken])
    }
}

impl LearningPoint {
    /// A point of finite numbers.
    pub fn new(
        iteration: u32,
        [pass_rate, total_reward, cumulative_reward]: [f64; 3],
        [tests_fixed, tests_broken]: [u32; 2],
    ) -> Result<Self, Error> {
        Ok(Self {
            iteration,
            pass_rate: check_range("pass_rate", "between 0 and 1", 0.0..=1.0, pass_rate)?,
            total_reward: check_range("total_reward", "finite", .., total_reward)?,
            cumulative_reward: check_range("cumulative_reward", "finite", .., cumulative_reward)?,
            tests_fixed,
            tests_broken,
        })
    }
}

/// One point an iteration; before the first, nothing passes.
pub fn learning_curve(history: &[FeedbackEntry]) -> Vec<LearningPoint> {
    let (mut cumulative_reward, mut unique) = (0.0, false);
    let before = std::iter::once(None).chain(history.iter().map(Some));
    before
        .zip(history)
        .map(|(before, entry)| {
            cumulative_reward += entry.reward.total;
            let (tests_fixed, tests_broken) =
                changes(before.map(|b| &b.suite_result), &entry.suite_result, &mut unique);
            LearningPoint {
                iteration: entry.iteration,
                pass_rate: entry.suite_result.tally().pass_rate(),
                total_reward: entry.reward.total,
                cumulative_reward,
                tests_fixed,
                tests_broken,
            }
        })
        .collect()
}

/// Whether a suite's tests pass, by name; of tests with one name the last counts.
fn passing(suite: &SuiteResult) -> HashMap<&str, bool> {
    suite.tests().iter().map(|t| (t.name(), t.status() == TestStatus::Passed)).collect()
}

/// How many tests were fixed and how many broken, by name.
///
/// `unique` says whether the names of the suite before were found to be unique; it is brought up to date.
fn changes(before: Option<&SuiteResult>, now: &SuiteResult, unique: &mut bool) -> (u32, u32) {
    let old = before.map_or(&[][..], SuiteResult::tests);
    let same_names =
        old.len() == now.tests().len() && old.iter().zip(now.tests()).all(|(a, b)| a.name() == b.name());
    let (mut fixed, mut broken) = (0, 0);
    let mut count = |was: bool, is: bool| {
        fixed += u32::from(is && !was);
        broken += u32::from(was && !is);
    };
    if same_names && *unique {
        let passed = |t: &TestResult| t.status() == TestStatus::Passed;
        old.iter().zip(now.tests()).for_each(|(a, b)| count(passed(a), passed(b)));
        return (fixed, broken);
    }
    let (was, is) = (before.map(passing).unwrap_or_default(), passing(now));
    *unique = is.len() == now.tests().len();
    is.iter().for_each(|(name, passes)| count(was.get(name).is_some_and(|p| *p), *passes));
    was.iter().filter(|(name, _)| !is.contains_key(*name)).for_each(|(_, passed)| count(*passed, false));
    (fixed, broken)
}

/// The mean gain in pass rate an iteration, (last - first) / (n - 1); `None` for fewer than two iterations.
pub fn convergence_rate(history: &[FeedbackEntry]) -> Option<f64> {
    let [first, .., last] = history else { return None };
    let gain = last.suite_result.tally().pass_rate() - first.suite_result.tally().pass_rate();
    Some(gain / (history.len() - 1) as f64)
}

/// The slope of the total reward over the last `window` iterations, by least squares; 0.0 for fewer than two.
pub fn reward_trend(history: &[FeedbackEntry], window: usize) -> Result<f64, Error> {
    if window < 2 {
        return Err(Error::OutOfRange { argument: "window", allowed: ">= 2", got: window as f64 });
    }
    let recent = history.get(history.len().saturating_sub(window)..).unwrap_or_default();
    if recent.len() < 2 {
        return Ok(0.0);
    }
    let n = recent.len() as f64;
    let mean_x = (n - 1.0) / 2.0;
    let mean_y = recent.iter().map(|e| e.reward.total).sum::<f64>() / n;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (i, entry) in recent.iter().enumerate() {
        let x = i as f64 - mean_x;
        covariance += x * (entry.reward.total - mean_y);
        variance += x * x;
    }
    Ok(covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::CodeSubmission;
    use crate::outcome::About;
    use crate::reward::{PassRate, Strategy};

    fn entry(iteration: u32, tests: &[(&str, bool)]) -> FeedbackEntry {
        let status = |passed| if passed { TestStatus::Passed } else { TestStatus::Failed };
        let tests = tests.iter().map(|(name, passed)| TestResult::new(name, status(*passed))).collect();
        let suite = SuiteResult::new(tests, About::named("s")).unwrap();
        let reward = Strategy::from(PassRate {}).signal(&suite, None, None).unwrap();
        FeedbackEntry::new(CodeSubmission::new("", iteration, "initial"), suite, reward)
    }

    #[test]
    fn fixed_and_broken_are_counted_by_name() {
        let history = [
            entry(1, &[("a", true), ("b", false)]),
            entry(2, &[("a", false), ("b", true)]),
            entry(3, &[("b", true), ("c", true), ("a", true)]),
        ];
        let curve = learning_curve(&history);
        let changes: Vec<_> = curve.iter().map(|p| (p.tests_fixed, p.tests_broken)).collect();
        assert_eq!(changes, [(1, 0), (1, 1), (2, 0)]);
        assert_eq!(curve[2].cumulative_reward, 2.0);
    }

    #[test]
    fn convergence_is_the_mean_gain() {
        let history = [entry(1, &[("a", false), ("b", false)]), entry(2, &[("a", true), ("b", true)])];
        assert_eq!(convergence_rate(&history), Some(1.0));
        assert_eq!(convergence_rate(&history[..1]), None);
    }

    #[test]
    fn the_trend_is_the_slope_of_the_window() {
        let history: Vec<_> = [(0, 4), (1, 4), (2, 4), (4, 4)]
            .iter()
            .enumerate()
            .map(|(n, (passed, all))| {
                let names = ["a", "b", "c", "d"];
                let tests: Vec<_> = (0..*all).map(|i| (names[i], i < *passed)).collect();
                entry(n as u32 + 1, &tests)
            })
            .collect();
        assert!((reward_trend(&history, 3).unwrap() - 0.375).abs() < 1e-12);
        assert_eq!(reward_trend(&history[..1], 3).unwrap(), 0.0);
        assert!(reward_trend(&history, 1).is_err());
    }
}
