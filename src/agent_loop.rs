//! The agent-test loop as a state machine that does no I/O.
//!
//! A driver asks [`AgentLoop::need`], gets what is needed (code, tests, nothing more), fetches it in its own way
//! (a call, an await, another process) and hands it in. The driver also brings the clock.

use serde::{Deserialize, Serialize};

use crate::feedback::{CodeSubmission, FeedbackEntry, infer_strategy};
use crate::outcome::{Error, SuiteResult, check_range};
use crate::reward::{RewardSignal, Strategy};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// All tests passed.
    AllPassed,
    /// The iterations were used up.
    MaxIterations,
    /// Too many iterations without a better total.
    Patience,
    /// The wall time was used up.
    MaxTime,
    /// The caller's predicate said so.
    StopWhen,
    /// Ctrl-C.
    Interrupted,
    /// A callable raised.
    Exception,
}

impl StopReason {
    /// The reason in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllPassed => "all_passed",
            Self::MaxIterations => "max_iterations",
            Self::Patience => "patience",
            Self::MaxTime => "max_time",
            Self::StopWhen => "stop_when",
            Self::Interrupted => "interrupted",
            Self::Exception => "exception",
        }
    }
}

/// All turns of one run so far, and why it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    entries: Vec<FeedbackEntry>,
    stopped_by: Option<StopReason>,
}

impl History {
    /// The turns, in order.
    pub fn entries(&self) -> &[FeedbackEntry] {
        &self.entries
    }

    /// Why the run ended; `None` while it is under way.
    pub fn stopped_by(&self) -> Option<StopReason> {
        self.stopped_by
    }

    /// The turn with the highest total, the first of equals.
    pub fn best(&self) -> Option<&FeedbackEntry> {
        self.entries.iter().reduce(|best, e| if e.reward.total > best.reward.total { e } else { best })
    }

    /// Adds a turn.
    pub fn push(&mut self, entry: FeedbackEntry) {
        self.entries.push(entry);
    }

    /// Ends the run, or with `None` opens it again.
    pub fn stop(&mut self, reason: Option<StopReason>) {
        self.stopped_by = reason;
    }
}

/// When to stop, beyond success.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRules {
    /// The most iterations.
    pub max_iterations: u32,
    /// The most iterations in a row without a better total.
    pub patience: Option<u32>,
    /// The most wall time in seconds; checked between iterations.
    pub max_time_s: Option<f64>,
}

impl StopRules {
    /// Rules that make sense: at least one iteration, patience of at least one, a positive time.
    pub fn new(max_iterations: u32, patience: Option<u32>, max_time_s: Option<f64>) -> Result<Self, Error> {
        let at_least_one = |argument, n: u32| match n {
            0 => Err(Error::OutOfRange { argument, allowed: ">= 1", got: 0.0 }),
            _ => Ok(n),
        };
        let positive = (std::ops::Bound::Excluded(0.0), std::ops::Bound::Unbounded);
        Ok(Self {
            max_iterations: at_least_one("max_iterations", max_iterations)?,
            patience: patience.map(|n| at_least_one("patience", n)).transpose()?,
            max_time_s: max_time_s
                .map(|s| check_range("max_time_s", "finite and > 0", positive, s))
                .transpose()?,
        })
    }
}

/// What the loop needs to go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// The agent's next code.
    Code,
    /// What the tests say of this submission.
    Tests(CodeSubmission),
    /// Nothing: the run has ended.
    Nothing(StopReason),
}

/// The loop itself, apart from its history.
#[derive(Clone, Debug)]
pub struct AgentLoop {
    rules: StopRules,
    strategy: Strategy,
    submission: Option<CodeSubmission>,
    best_total: f64,
    since_best: u32,
    seen: usize,
}

impl AgentLoop {
    /// A loop under these rules that has not begun.
    pub fn new(rules: StopRules, strategy: Strategy) -> Self {
        Self { rules, strategy, submission: None, best_total: f64::NEG_INFINITY, since_best: 0, seen: 0 }
    }

    /// What is needed next, `elapsed_s` seconds into the run. Ends the history when nothing is.
    pub fn need(&mut self, history: &mut History, elapsed_s: f64) -> Need {
        if let Some(reason) = history.stopped_by {
            return Need::Nothing(reason);
        }
        if let Some(submission) = &self.submission {
            return Need::Tests(submission.clone());
        }
        match self.rule_that_stops(history, elapsed_s) {
            Some(reason) => {
                history.stop(Some(reason));
                Need::Nothing(reason)
            }
            None => Need::Code,
        }
    }

    fn rule_that_stops(&mut self, history: &History, elapsed_s: f64) -> Option<StopReason> {
        for entry in history.entries.iter().skip(self.seen) {
            let better = entry.reward.total > self.best_total;
            self.best_total = self.best_total.max(entry.reward.total);
            self.since_best = if better { 0 } else { self.since_best + 1 };
        }
        self.seen = history.entries.len();
        if history.entries.last().is_some_and(|e| e.suite_result.all_passed()) {
            Some(StopReason::AllPassed)
        } else if history.entries.len() >= self.rules.max_iterations as usize {
            Some(StopReason::MaxIterations)
        } else if self.rules.patience.is_some_and(|most| self.since_best >= most) {
            Some(StopReason::Patience)
        } else if self.rules.max_time_s.is_some_and(|most| elapsed_s >= most) {
            Some(StopReason::MaxTime)
        } else {
            None
        }
    }

    /// Takes the agent's code; the tests are needed next.
    pub fn code(&mut self, history: &History, code: &str) {
        let iteration = history.entries.len() as u32 + 1;
        let strategy = infer_strategy(history.entries.last().map(|e| &e.suite_result));
        self.submission = Some(CodeSubmission::new(code, iteration, strategy));
    }

    /// Takes what the tests say, and returns the finished turn for the history.
    ///
    /// `reward` overrides the loop's own strategy.
    pub fn suite(
        &mut self,
        history: &History,
        suite: SuiteResult,
        reward: Option<RewardSignal>,
    ) -> Result<FeedbackEntry, Error> {
        let previous = history.entries.last().map(|e| &e.suite_result);
        let reward = match reward {
            Some(reward) => reward,
            None => self.strategy.signal(&suite, previous, None)?,
        };
        let submission = self.submission.take().ok_or_else(|| Error::Mismatch {
            argument: "suite",
            problem: "no code is waiting for its tests; hand in code first".to_owned(),
        })?;
        Ok(FeedbackEntry::new(submission, suite, reward))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{About, TestResult, TestStatus};

    fn suite(passed: usize, of: usize) -> SuiteResult {
        let status = |i| if i < passed { TestStatus::Passed } else { TestStatus::Failed };
        let tests = (0..of).map(|i| TestResult::new(&format!("t{i}"), status(i))).collect();
        SuiteResult::new(tests, About::named("s")).unwrap()
    }

    /// Runs the loop over scripted pass counts of four tests; seconds pass with iterations.
    fn run(rules: StopRules, passed: &[usize]) -> History {
        let mut history = History::default();
        let mut turn = AgentLoop::new(rules, Strategy::default());
        for step in 0.. {
            match turn.need(&mut history, f64::from(step / 2)) {
                Need::Code => turn.code(&history, "code"),
                Need::Tests(submission) => {
                    let now = suite(passed[submission.iteration as usize - 1], 4);
                    let entry = turn.suite(&history, now, None).unwrap();
                    history.push(entry);
                }
                Need::Nothing(_) => break,
            }
        }
        history
    }

    #[test]
    fn it_stops_when_all_pass() {
        let history = run(StopRules::new(10, None, None).unwrap(), &[0, 2, 4]);
        assert_eq!(history.stopped_by(), Some(StopReason::AllPassed));
        let strategies: Vec<_> = history.entries().iter().map(|e| &*e.submission.strategy).collect();
        assert_eq!(strategies, ["initial", "fix_failures", "fix_failures"]);
    }

    #[test]
    fn it_stops_when_the_iterations_are_used_up() {
        let history = run(StopRules::new(2, None, None).unwrap(), &[0, 2, 4]);
        assert_eq!(history.stopped_by(), Some(StopReason::MaxIterations));
        assert_eq!(history.entries().len(), 2);
    }

    #[test]
    fn it_stops_when_patience_ends() {
        let history = run(StopRules::new(10, Some(2), None).unwrap(), &[1, 2, 1, 1, 1, 1]);
        assert_eq!(history.stopped_by(), Some(StopReason::Patience));
        assert_eq!(history.entries().len(), 4);
        assert_eq!(history.best().map(|e| e.iteration), Some(2));
    }

    #[test]
    fn it_stops_when_the_time_is_used_up() {
        let history = run(StopRules::new(10, None, Some(3.0)).unwrap(), &[1, 1, 1, 1, 1]);
        assert_eq!(history.stopped_by(), Some(StopReason::MaxTime));
        assert_eq!(history.entries().len(), 3);
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        assert!(StopRules::new(0, None, None).is_err());
        assert!(StopRules::new(1, Some(0), None).is_err());
        assert!(StopRules::new(1, None, Some(0.0)).is_err());
    }

    #[test]
    fn tests_without_code_are_refused() {
        let mut turn = AgentLoop::new(StopRules::new(1, None, None).unwrap(), Strategy::default());
        assert!(turn.suite(&History::default(), suite(1, 1), None).is_err());
    }
}
