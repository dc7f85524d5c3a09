//! What goes back to the agent: a submission, what the tests made of it, its reward, and what to fix first.
//!
//! `prompt` turns an entry into text. Nothing here calls an agent.

mod prompt;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::outcome::{Error, SuiteResult, shared};
use crate::reward::{RewardSignal, RewardWeights, compute_reward_signal};

pub use prompt::{DEFAULT_MAX_CHARS, PromptStyle};

/// Code under judgement, with its place in the run and the strategy it was written under.
///
/// Args:
///     code: The code.
///     iteration: Which turn of the loop it is, from 1.
///     strategy: What it was meant to do; see `infer_strategy`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct CodeSubmission {
    /// The code.
    pub code: Arc<str>,
    /// Which turn of the loop it is, from 1.
    pub iteration: u32,
    /// What it was meant to do: see [`infer_strategy`].
    pub strategy: Arc<str>,
}

impl CodeSubmission {
    /// A submission.
    pub fn new(code: &str, iteration: u32, strategy: &str) -> Self {
        Self { code: Arc::from(code), iteration, strategy: shared(strategy) }
    }
}

/// A failing test's name and message.
pub type FailingTest = (Arc<str>, Arc<str>);

/// One turn of the loop: what was submitted, what the tests said, and what it earned.
///
/// Args:
///     iteration: Which turn of the loop it is, from 1.
///     submission: What was submitted.
///     suite_result: What the tests said.
///     reward: What it earned.
///     failing_tests: Name and message of each failing test that the agent may see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, module = "testgrad"))]
pub struct FeedbackEntry {
    /// Which turn of the loop it is, from 1.
    pub iteration: u32,
    /// What was submitted.
    pub submission: CodeSubmission,
    /// What the tests said.
    pub suite_result: SuiteResult,
    /// What it earned.
    pub reward: RewardSignal,
    /// Name and message of each visible failing test, in the suite's order.
    pub failing_tests: Arc<[FailingTest]>,
}

impl FeedbackEntry {
    /// An entry for this submission, with the failing tests of the suite.
    pub fn new(submission: CodeSubmission, suite_result: SuiteResult, reward: RewardSignal) -> Self {
        let failing_tests = extract_failing_tests(&suite_result);
        Self { iteration: submission.iteration, submission, suite_result, reward, failing_tests }
    }
}

impl std::hash::Hash for FeedbackEntry {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.submission.hash(state);
        self.suite_result.hash(state);
        self.reward.hash(state);
    }
}

/// Name and message of each test that failed or ended in an error, in the suite's order; hidden ones left out.
pub fn extract_failing_tests(suite: &SuiteResult) -> Arc<[FailingTest]> {
    suite
        .failing()
        .filter(|t| !suite.is_hidden(t.name()))
        .map(|t| (Arc::clone(t.name_shared()), t.message_shared()))
        .collect()
}

/// The entry for one submission, with the multi-signal reward.
pub fn build_feedback(
    submission: CodeSubmission,
    suite: SuiteResult,
    previous_suite: Option<&SuiteResult>,
    coverage: Option<f64>,
    target_ms: f64,
    weights: &RewardWeights,
) -> Result<FeedbackEntry, Error> {
    let reward = compute_reward_signal(&suite, previous_suite, coverage, target_ms, weights)?;
    Ok(FeedbackEntry::new(submission, suite, reward))
}

/// What the next submission is for, judged by the last suite.
///
/// `"initial"` before the first, `"fix_errors"` after errors, `"fix_failures"` after failures (or when nothing
/// passed, or there were problems outside the tests), `"refactor"` once all passed.
pub fn infer_strategy(last: Option<&SuiteResult>) -> &'static str {
    match last {
        None => "initial",
        Some(suite) if suite.tally().errors > 0 => "fix_errors",
        Some(suite) if suite.all_passed() => "refactor",
        Some(_) => "fix_failures",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{About, TestResult, TestStatus};

    fn suite(statuses: &[TestStatus], hidden: &[&str]) -> SuiteResult {
        let tests = statuses.iter().enumerate();
        let tests = tests.map(|(i, s)| TestResult::new(&format!("t{i}"), *s).with_message("why"));
        let about = About { hidden: hidden.iter().map(ToString::to_string).collect(), ..About::named("s") };
        SuiteResult::new(tests.collect(), about).unwrap()
    }

    #[test]
    fn the_strategy_follows_the_last_suite() {
        use TestStatus::{Error, Failed, Passed, Skipped};
        assert_eq!(infer_strategy(None), "initial");
        assert_eq!(infer_strategy(Some(&suite(&[Passed, Failed, Error], &[]))), "fix_errors");
        assert_eq!(infer_strategy(Some(&suite(&[Passed, Failed], &[]))), "fix_failures");
        assert_eq!(infer_strategy(Some(&suite(&[Skipped], &[]))), "fix_failures");
        assert_eq!(infer_strategy(Some(&suite(&[Passed, Skipped], &[]))), "refactor");
    }

    #[test]
    fn hidden_tests_are_not_among_the_failing_ones() {
        use TestStatus::{Error, Failed, Passed};
        let failing = extract_failing_tests(&suite(&[Failed, Error, Passed], &["t0"]));
        assert_eq!(failing.len(), 1);
        assert_eq!((&*failing[0].0, &*failing[0].1), ("t1", "why"));
    }
}
