//! What the rewards of a group of rollouts of one task say together: advantages, baselines, difficulty.
//!
//! NaN means no verdict: such a rollout is left out of its group's statistics and its own number is NaN.

use std::collections::BTreeMap;

use super::batch::{ABSENT, NO_VERDICT, check_codes};
use crate::outcome::{Error, TestStatus, check_range};

/// Which rollouts belong together.
#[derive(Clone, Debug)]
pub struct Groups {
    members: Vec<Vec<usize>>,
    rollouts: usize,
}

impl Groups {
    /// Groups by id, one id a rollout; groups are numbered in the order of their ids.
    pub fn by_id(ids: &[i64]) -> Self {
        let mut members: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (rollout, id) in ids.iter().enumerate() {
            members.entry(*id).or_default().push(rollout);
        }
        Self { members: members.into_values().collect(), rollouts: ids.len() }
    }

    /// Consecutive groups of `size` rollouts.
    pub fn of_size(size: usize, rollouts: usize) -> Result<Self, Error> {
        if size == 0 || !rollouts.is_multiple_of(size) {
            return Err(Error::Mismatch {
                argument: "groups",
                problem: format!("{rollouts} rollouts cannot be cut into groups of {size}"),
            });
        }
        let members = (0..rollouts / size).map(|g| (g * size..(g + 1) * size).collect()).collect();
        Ok(Self { members, rollouts })
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// True when there is no group.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn check(&self, argument: &'static str, rollouts: usize) -> Result<(), Error> {
        if self.rollouts == rollouts {
            return Ok(());
        }
        Err(Error::Mismatch {
            argument,
            problem: format!("has {rollouts} rollouts where groups has {}", self.rollouts),
        })
    }

    /// Calls `change` with the numbers of each group that are not NaN, and writes back what it made of them.
    fn map(&self, values: &[f64], mut change: impl FnMut(&mut [f64])) -> Result<Vec<f64>, Error> {
        self.check("rewards", values.len())?;
        if let Some(row) = values.iter().position(|v| v.is_infinite()) {
            return Err(Error::Mismatch {
                argument: "rewards",
                problem: format!("row {row} is infinite; it must be finite, or NaN for no verdict"),
            });
        }
        let mut out = vec![f64::NAN; values.len()];
        let mut known = Vec::new();
        for group in &self.members {
            let finite = |r: &&usize| values.get(**r).is_some_and(|v| !v.is_nan());
            known.clear();
            known.extend(group.iter().filter(finite).filter_map(|r| values.get(*r)).copied());
            change(&mut known);
            for (rollout, value) in group.iter().filter(finite).zip(&known) {
                if let Some(slot) = out.get_mut(*rollout) {
                    *slot = *value;
                }
            }
        }
        Ok(out)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample standard deviation (n - 1); 0.0 for fewer than two values.
fn std_dev(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// How an advantage is made of a group's rewards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalization {
    /// Reward minus the group's mean.
    Mean,
    /// Reward minus the group's mean, divided by the group's standard deviation.
    MeanStd,
    /// Reward minus the mean of the other rewards of the group.
    LeaveOneOut,
}

impl Normalization {
    /// The normalization named `word`.
    pub fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "mean" => Ok(Self::Mean),
            "mean_std" => Ok(Self::MeanStd),
            "leave_one_out" => Ok(Self::LeaveOneOut),
            _ => Err(Error::UnknownWord {
                argument: "normalization",
                allowed: "mean, mean_std, leave_one_out",
                got: word.to_owned(),
            }),
        }
    }
}

fn equal(values: &[f64]) -> bool {
    values.iter().zip(values.iter().skip(1)).all(|(a, b)| a == b)
}

/// The advantage of each rollout within its group; exactly 0.0 for all of a group whose rewards are equal.
pub fn advantages(rewards: &[f64], groups: &Groups, how: Normalization, eps: f64) -> Result<Vec<f64>, Error> {
    let eps = check_range("eps", "finite and >= 0", 0.0.., eps)?;
    if how == Normalization::LeaveOneOut {
        let baseline = leave_one_out_baseline(rewards, groups)?;
        return Ok(rewards.iter().zip(baseline).map(|(r, b)| r - b).collect());
    }
    groups.map(rewards, |group| {
        if equal(group) {
            group.fill(0.0);
            return;
        }
        let center = mean(group);
        let scale = if how == Normalization::MeanStd { std_dev(group, center) + eps } else { 1.0 };
        group.iter_mut().for_each(|r| *r = (*r - center) / scale);
    })
}

/// For each rollout the mean reward of the others of its group; a rollout alone is its own baseline.
pub fn leave_one_out_baseline(rewards: &[f64], groups: &Groups) -> Result<Vec<f64>, Error> {
    groups.map(rewards, |group| {
        if group.len() < 2 || equal(group) {
            return;
        }
        let sum: f64 = group.iter().sum();
        let others = (group.len() - 1) as f64;
        group.iter_mut().for_each(|r| *r = (sum - *r) / others);
    })
}

/// Each component (column) normalised within its group by itself, then summed with `weights`.
///
/// `components` has as many columns as `weights`. With `whiten`, the sums are normalised once more over all
/// rollouts, so that their scale does not depend on the number of components.
pub fn decoupled_advantages(
    components: &[f64],
    groups: &Groups,
    weights: &[f64],
    eps: f64,
    whiten: bool,
) -> Result<Vec<f64>, Error> {
    let columns = weights.len();
    for weight in weights {
        check_range("weights", "finite and >= 0", 0.0.., *weight)?;
    }
    if columns == 0 || components.len() != groups.rollouts * columns {
        return Err(Error::Mismatch {
            argument: "components",
            problem: format!(
                "has {} elements, not {} rollouts x {columns} weights",
                components.len(),
                groups.rollouts
            ),
        });
    }
    let mut sums = vec![0.0; groups.rollouts];
    for (column, weight) in weights.iter().enumerate() {
        let values: Vec<f64> = components.iter().skip(column).step_by(columns).copied().collect();
        let normalised = advantages(&values, groups, Normalization::MeanStd, eps)?;
        sums.iter_mut().zip(normalised).for_each(|(sum, a)| *sum += weight * a);
    }
    if whiten {
        advantages(&sums, &Groups::by_id(&vec![0; sums.len()]), Normalization::MeanStd, eps)
    } else {
        Ok(sums)
    }
}

/// Weights of the tests within each group, from the group's own pass rates: rare success weighs more.
///
/// With k of n rollouts of the group passing a test, its weight is 1 - (k + 1) / (n + 2), scaled so that a
/// group's weights sum to 1. Skipped tests and rollouts without verdict are left out of k and n; a test that
/// no rollout of the group has weighs 0. Row by row: groups x tests.
pub fn difficulty_weights(status: &[u8], tests: usize, groups: &Groups) -> Result<Vec<f64>, Error> {
    groups.check("status", status.len().checked_div(tests).unwrap_or(groups.rollouts))?;
    check_codes(status, tests)?;
    let row_of = |rollout: usize| status.get(rollout * tests..(rollout + 1) * tests).unwrap_or_default();
    let mut weights = Vec::with_capacity(groups.len() * tests);
    for group in &groups.members {
        let mut passed_and_active = vec![(0_u32, 0_u32); tests];
        for row in group.iter().map(|r| row_of(*r)).filter(|row| !row.contains(&NO_VERDICT)) {
            for (counts, code) in passed_and_active.iter_mut().zip(row) {
                if *code != ABSENT && *code != TestStatus::Skipped as u8 {
                    counts.0 += u32::from(*code == TestStatus::Passed as u8);
                    counts.1 += 1;
                }
            }
        }
        let raw = passed_and_active.iter().map(|(passed, active)| match active {
            0 => 0.0,
            _ => 1.0 - f64::from(passed + 1) / f64::from(active + 2),
        });
        let sum: f64 = raw.clone().sum();
        weights.extend(raw.map(|w| if sum > 0.0 { w / sum } else { 0.0 }));
    }
    Ok(weights)
}

/// The share of the difficulty weight of its active tests that each rollout passed, 0..1.
///
/// Skipped and absent tests count neither way; 0.0 when nothing is active, NaN without verdict.
pub fn difficulty_score(status: &[u8], tests: usize, groups: &Groups) -> Result<Vec<f64>, Error> {
    let weights = difficulty_weights(status, tests, groups)?;
    let mut scores = vec![f64::NAN; groups.rollouts];
    for (group, members) in groups.members.iter().enumerate() {
        let of_group = weights.get(group * tests..(group + 1) * tests).unwrap_or_default();
        for rollout in members {
            let row = status.get(rollout * tests..(rollout + 1) * tests).unwrap_or_default();
            if row.contains(&NO_VERDICT) {
                continue;
            }
            let (mut passed, mut active) = (0.0, 0.0);
            for (code, weight) in row.iter().zip(of_group) {
                if *code != ABSENT && *code != TestStatus::Skipped as u8 {
                    active += weight;
                    passed += if *code == TestStatus::Passed as u8 { *weight } else { 0.0 };
                }
            }
            if let Some(score) = scores.get_mut(*rollout) {
                *score = if active > 0.0 { passed / active } else { 0.0 };
            }
        }
    }
    Ok(scores)
}

/// How many groups carry no signal under one strategy.
///
/// Args:
///     strategy: The name under which the totals were given.
///     groups: How many groups have at least one verdict.
///     all_equal: Groups whose rewards are all equal.
///     within_resolution: Groups whose rewards differ by no more than the resolution.
///     resolution: In units of the reward, >= 0.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "python", pyo3::pyclass(frozen, eq, hash, get_all, module = "testgrad.batch"))]
pub struct GroupSignal {
    /// The name under which the totals were given.
    pub strategy: String,
    /// How many groups have at least one verdict.
    pub groups: usize,
    /// Groups whose rewards are all equal: their advantages are all zero.
    pub all_equal: usize,
    /// Groups whose rewards differ by no more than the resolution, the equal ones included.
    pub within_resolution: usize,
    /// The resolution, in units of the reward.
    pub resolution: f64,
}

impl std::hash::Hash for GroupSignal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.strategy, self.groups, self.all_equal, self.within_resolution).hash(state);
        self.resolution.to_bits().hash(state);
    }
}

/// Counts the groups that carry no signal in these totals.
pub fn group_signal(
    strategy: &str,
    totals: &[f64],
    groups: &Groups,
    resolution: f64,
) -> Result<GroupSignal, Error> {
    let resolution = check_range("resolution", "finite and >= 0", 0.0.., resolution)?;
    let mut signal = GroupSignal {
        strategy: strategy.to_owned(),
        groups: 0,
        all_equal: 0,
        within_resolution: 0,
        resolution,
    };
    groups.map(totals, |group| {
        if group.is_empty() {
            return;
        }
        let low = group.iter().copied().fold(f64::INFINITY, f64::min);
        let high = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        signal.groups += 1;
        signal.all_equal += usize::from(low == high);
        signal.within_resolution += usize::from(high - low <= resolution);
    })?;
    Ok(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12)
    }

    #[test]
    fn mean_and_std_are_taken_within_the_group() {
        let groups = Groups::of_size(2, 4).unwrap();
        let rewards = [0.0, 1.0, 5.0, 7.0];
        let mean = advantages(&rewards, &groups, Normalization::Mean, 0.0).unwrap();
        assert!(close(&mean, &[-0.5, 0.5, -1.0, 1.0]));
        let scaled = advantages(&rewards, &groups, Normalization::MeanStd, 0.0).unwrap();
        let half = 0.5_f64.sqrt();
        assert!(close(&scaled, &[-half, half, -half, half]));
    }

    #[test]
    fn leaving_one_out_compares_with_the_others() {
        let groups = Groups::by_id(&[7, 7, 7]);
        assert!(close(&leave_one_out_baseline(&[1.0, 2.0, 6.0], &groups).unwrap(), &[4.0, 3.5, 1.5]));
    }

    #[test]
    fn equal_rewards_have_exactly_no_advantage() {
        let groups = Groups::by_id(&[0, 0, 0]);
        for how in [Normalization::Mean, Normalization::MeanStd, Normalization::LeaveOneOut] {
            assert_eq!(advantages(&[0.1; 3], &groups, how, 1e-6).unwrap(), [0.0; 3]);
        }
    }

    #[test]
    fn no_verdict_stays_out_of_the_group() {
        let groups = Groups::by_id(&[0, 0, 0]);
        let out = advantages(&[0.0, f64::NAN, 1.0], &groups, Normalization::Mean, 0.0).unwrap();
        assert!(out[1].is_nan() && out[0] == -0.5 && out[2] == 0.5);
    }

    #[test]
    fn decoupling_keeps_a_rare_component_alive() {
        let groups = Groups::by_id(&[0, 0]);
        let out = decoupled_advantages(&[0.0, 0.01, 1.0, 0.0], &groups, &[1.0, 1.0], 0.0, false).unwrap();
        assert!(close(&out, &[0.0, 0.0]));
    }

    #[test]
    fn a_test_that_few_pass_weighs_more() {
        let groups = Groups::by_id(&[0, 0]);
        let status = [0, 1, 0, 0]; // test 0 passed twice, test 1 once
        let weights = difficulty_weights(&status, 2, &groups).unwrap();
        assert!(close(&weights, &[1.0 / 3.0, 2.0 / 3.0]));
        assert!(close(&difficulty_score(&status, 2, &groups).unwrap(), &[1.0 / 3.0, 1.0]));
    }

    #[test]
    fn groups_without_signal_are_counted() {
        let groups = Groups::of_size(2, 6).unwrap();
        let signal = group_signal("x", &[1.0, 1.0, 0.5, 0.505, 0.0, 1.0], &groups, 0.01).unwrap();
        assert_eq!((signal.groups, signal.all_equal, signal.within_resolution), (3, 1, 2));
    }
}
