//! Rewards over arrays and group statistics, with the interpreter released.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::convert::{Again, CodesIn, FloatsIn, FloatsOut, Totals};
use super::enums::wrong_type;
use super::errors::class;
use super::reward::BuiltIn;
use crate::outcome::{SuiteResult, check_range, check_whole};
use crate::reward::batch::{self, Arrays, Previous, Rewards};
use crate::reward::group::{self, GroupSignal, Groups, Normalization};
use crate::reward::{COMPONENTS, RewardWeights, Strategy};

type Out = (FloatsOut, FloatsOut);

fn out(rewards: Rewards) -> Out {
    (FloatsOut::rows(rewards.components, COMPONENTS), FloatsOut::flat(rewards.totals))
}

fn strategy_or_default(strategy: Option<BuiltIn>) -> Strategy {
    strategy.map_or_else(Strategy::default, |s| s.0)
}

/// Suites of any iterable; None and exceptions (`NoVerdict`) stand for suites that could not be judged.
fn suites_of(argument: &str, suites: &Bound<'_, PyAny>) -> PyResult<Vec<Option<SuiteResult>>> {
    let mut out = Vec::with_capacity(suites.len().unwrap_or(0));
    let no_verdict = class(suites.py(), "NoVerdict")?;
    for (place, suite) in suites.try_iter()?.enumerate() {
        let suite = suite?;
        match suite.cast::<SuiteResult>() {
            Ok(suite) => out.push(Some(suite.get().clone())),
            Err(_) if suite.is_none() || suite.is_instance(&no_verdict)? => out.push(None),
            Err(_) => {
                return Err(wrong_type(
                    &format!("{argument}[{place}]"),
                    "SuiteResult, None or NoVerdict",
                    &suite,
                ));
            }
        }
    }
    Ok(out)
}

/// The rewards of many suites at once, equal bit for bit to the strategy called on each.
///
/// Args:
///     suites: `SuiteResult` values; None or a `NoVerdict` in a place gives a row of NaN, never 0.
///     strategy: One of testgrad's strategies; None means `MultiSignal()`.
///     previous: One suite or None for each suite, for the progression.
///     coverage: float64, shape (n,), 0..1, NaN where not measured; None means each suite's own.
///
/// Returns:
///     Components, float64, shape (n, 5), columns in the order of `RewardWeights`; totals, float64, shape (n,).
///
/// Raises:
///     ValueError: Lengths that do not fit, coverage outside 0..1.
#[pyfunction]
#[pyo3(signature = (suites: "Iterable[SuiteResult | NoVerdict | None]", strategy=None, *,
                    previous: "Iterable[SuiteResult | NoVerdict | None] | None"=None, coverage=None))]
pub fn rewards(
    py: Python<'_>,
    suites: &Bound<'_, PyAny>,
    strategy: Option<BuiltIn>,
    previous: Option<&Bound<'_, PyAny>>,
    coverage: Option<FloatsIn<'_>>,
) -> PyResult<Out> {
    let suites = suites_of("suites", suites)?;
    let previous = previous.map(|p| suites_of("previous", p)).transpose()?;
    let coverage = coverage.as_ref().map(|c| one_column("coverage", c)).transpose()?;
    let strategy = strategy_or_default(strategy);
    Ok(out(py.detach(|| batch::of_suites(&suites, previous.as_deref(), coverage, &strategy))?))
}

/// The rewards of many runs of the same tests, from arrays, equal bit for bit to the strategy called on suites.
///
/// Args:
///     status: uint8, shape (rollouts, tests): 0 passed, 1 failed, 2 error, 3 skipped, 254 (`NO_VERDICT`: the
///         row becomes NaN), 255 (`ABSENT`: this rollout has no such test).
///     strategy: One of testgrad's strategies; None means `MultiSignal()`.
///     severity: uint8, shape (tests,): 3 critical, 2 major, 1 minor; None means major.
///     duration_ms: float64, shape (rollouts, tests), finite and >= 0; None means no time.
///     previous: What came before: status codes, shape (rollouts, tests) or (tests,), or pass rates, float64,
///         shape (rollouts,), NaN for none. None means there was nothing.
///     coverage: float64, shape (rollouts,), 0..1, NaN where not measured.
///
/// Returns:
///     Components, float64, shape (rollouts, 5), columns in the order of `RewardWeights`; totals, float64,
///     shape (rollouts,).
///
/// Raises:
///     ValueError: Shapes that do not fit, or a value out of range, named by row and column.
#[pyfunction]
#[pyo3(signature = (status, strategy=None, *, severity=None, duration_ms=None,
                    previous: "ArrayLike | None"=None, coverage=None))]
pub fn rewards_from_arrays(
    py: Python<'_>,
    status: CodesIn<'_>,
    strategy: Option<BuiltIn>,
    severity: Option<CodesIn<'_>>,
    duration_ms: Option<FloatsIn<'_>>,
    previous: Option<&Bound<'_, PyAny>>,
    coverage: Option<FloatsIn<'_>>,
) -> PyResult<Out> {
    let (rollouts, tests) = rows_and_columns(&status)?;
    let (mut before_codes, mut before_rates) = (None, None);
    if let Some(previous) = previous {
        let array = py.import("numpy")?.call_method1("asarray", (previous,))?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        if kind == "f" {
            before_rates = Some(array.extract::<FloatsIn<'_>>()?);
        } else {
            before_codes = Some(array.extract::<CodesIn<'_>>()?);
        }
    }
    let fits = |argument: &str, shape: Option<&[usize]>, allowed: &[&[usize]]| match shape {
        Some(shape) if !allowed.contains(&shape) => Err(PyValueError::new_err(format!(
            "{argument} has shape {shape:?}, but with {rollouts} rollouts of {tests} tests it must be {:?}",
            allowed.first().unwrap_or(&shape)
        ))),
        _ => Ok(()),
    };
    fits("severity", severity.as_ref().map(CodesIn::shape), &[&[tests]])?;
    fits("duration_ms", duration_ms.as_ref().map(FloatsIn::shape), &[&[rollouts, tests]])?;
    fits("coverage", coverage.as_ref().map(FloatsIn::shape), &[&[rollouts]])?;
    fits("previous", before_codes.as_ref().map(CodesIn::shape), &[&[rollouts, tests], &[tests]])?;
    fits("previous", before_rates.as_ref().map(FloatsIn::shape), &[&[rollouts]])?;
    let previous = match (&before_codes, &before_rates) {
        (Some(codes), _) => Previous::Status(codes.values()?),
        (None, Some(rates)) => Previous::PassRate(rates.values()?),
        (None, None) => Previous::None,
    };
    let arrays = Arrays {
        status: status.values()?,
        rollouts,
        tests,
        severity: severity.as_ref().map(CodesIn::values).transpose()?,
        duration_ms: duration_ms.as_ref().map(FloatsIn::values).transpose()?,
        previous,
        coverage: coverage.as_ref().map(FloatsIn::values).transpose()?,
    };
    let strategy = strategy_or_default(strategy);
    Ok(out(py.detach(|| batch::of_arrays(&arrays, &strategy))?))
}

fn rows_and_columns(status: &CodesIn<'_>) -> PyResult<(usize, usize)> {
    match status.shape() {
        [rollouts, tests] => Ok((*rollouts, *tests)),
        other => {
            Err(PyValueError::new_err(format!("status must have shape (rollouts, tests), got {other:?}")))
        }
    }
}

/// Group ids, one a rollout, or the size of consecutive groups.
fn groups_of(groups: &Bound<'_, PyAny>, rollouts: usize) -> PyResult<Groups> {
    if let Ok(size) = groups.extract::<i64>() {
        let size = check_whole("groups", "group ids, or the size of the groups, >= 1", 1, size)?;
        return Ok(Groups::of_size(size as usize, rollouts)?);
    }
    let array = groups.py().import("numpy")?.call_method1("asarray", (groups,))?;
    let unique = pyo3::types::PyDict::new(groups.py());
    unique.set_item("return_inverse", true)?;
    let numbers = groups.py().import("numpy")?.call_method("unique", (array,), Some(&unique))?.get_item(1)?;
    let ids: Vec<i64> = numbers.call_method0("tolist")?.extract()?;
    Ok(Groups::by_id(&ids))
}

fn one_column<'a>(argument: &str, values: &'a FloatsIn<'_>) -> PyResult<&'a [f64]> {
    match values.shape() {
        [_] => values.values(),
        other => Err(PyValueError::new_err(format!("{argument} must have shape (rollouts,), got {other:?}"))),
    }
}

/// The advantage of each rollout within its group.
///
/// "mean_std": (r - mean) / (std + eps), with the sample standard deviation (n - 1); "mean": r - mean;
/// "leave_one_out": r - the mean of the others. Exactly 0.0 for a whole group whose rewards are equal.
///
/// Args:
///     rewards: float64, shape (rollouts,); NaN means no verdict: left out, and NaN in the result.
///     groups: Group ids, shape (rollouts,), or the size of consecutive groups.
///     normalization: "mean_std", "mean" or "leave_one_out".
///     eps: Added to the standard deviation, >= 0.
///
/// Returns:
///     float64, shape (rollouts,).
///
/// Source:
///     "mean_std": GRPO, Shao et al. 2024, arXiv:2402.03300, section 4.1. "mean": Dr. GRPO, Liu et al. 2025,
///     arXiv:2503.20783, section 3. "leave_one_out": RLOO, Ahmadian et al. 2024, arXiv:2402.14740, after Kool et
///     al. 2019.
#[pyfunction]
#[pyo3(signature = (rewards, groups: "int | ArrayLike", *, normalization="mean_std", eps=1e-6))]
pub fn advantages(
    py: Python<'_>,
    rewards: FloatsIn<'_>,
    groups: &Bound<'_, PyAny>,
    normalization: &str,
    eps: f64,
) -> PyResult<FloatsOut> {
    let how = Normalization::parse(normalization)?;
    let rewards = one_column("rewards", &rewards)?;
    let groups = groups_of(groups, rewards.len())?;
    Ok(FloatsOut::flat(py.detach(|| group::advantages(rewards, &groups, how, eps))?))
}

/// For each rollout the mean reward of the others of its group; a rollout alone is its own baseline.
///
/// Args:
///     rewards: float64, shape (rollouts,); NaN means no verdict: left out, and NaN in the result.
///     groups: Group ids, shape (rollouts,), or the size of consecutive groups.
///
/// Returns:
///     float64, shape (rollouts,).
///
/// Source:
///     RLOO, Ahmadian et al. 2024, arXiv:2402.14740, after Kool et al. 2019.
#[pyfunction]
#[pyo3(signature = (rewards, groups: "int | ArrayLike"))]
pub fn leave_one_out_baseline(
    py: Python<'_>,
    rewards: FloatsIn<'_>,
    groups: &Bound<'_, PyAny>,
) -> PyResult<FloatsOut> {
    let rewards = one_column("rewards", &rewards)?;
    let groups = groups_of(groups, rewards.len())?;
    Ok(FloatsOut::flat(py.detach(|| group::leave_one_out_baseline(rewards, &groups))?))
}

/// Each component normalised within its group by itself, then summed with weights.
///
/// Normalising after the sum lets a component with a wide spread drown the others; this does not.
///
/// Args:
///     components: float64, shape (rollouts, k); NaN rows mean no verdict.
///     groups: Group ids, shape (rollouts,), or the size of consecutive groups.
///     weights: float64, shape (k,), each >= 0; None means `RewardWeights()` (k = 5).
///     eps: Added to the standard deviations, >= 0.
///     whiten: Normalise the sums once more over all rollouts.
///
/// Returns:
///     float64, shape (rollouts,).
///
/// Source:
///     GDPO, Liu et al. 2026, arXiv:2601.05242, section 3: group-wise decoupled normalisation, then batch-wise.
#[pyfunction]
#[pyo3(signature = (components, groups: "int | ArrayLike", *, weights=None, eps=1e-6, whiten=true))]
pub fn decoupled_advantages(
    py: Python<'_>,
    components: FloatsIn<'_>,
    groups: &Bound<'_, PyAny>,
    weights: Option<FloatsIn<'_>>,
    eps: f64,
    whiten: bool,
) -> PyResult<FloatsOut> {
    let [rollouts, _] = components.shape() else {
        return Err(PyValueError::new_err(format!(
            "components must have shape (rollouts, k), got {:?}",
            components.shape()
        )));
    };
    let groups = groups_of(groups, *rollouts)?;
    let default = RewardWeights::default().as_array();
    let weights = weights.as_ref().map(|w| one_column("weights", w)).transpose()?.unwrap_or(&default);
    let values = components.values()?;
    Ok(FloatsOut::flat(py.detach(|| group::decoupled_advantages(values, &groups, weights, eps, whiten))?))
}

/// Weights of the tests within each group, from the group's own pass rates: a test that few pass weighs more.
///
/// With k of n rollouts of the group passing a test, its weight is 1 - (k + 1) / (n + 2), scaled so that a
/// group's weights sum to 1. Skipped tests and rollouts without verdict are left out of k and n; a test that no
/// rollout has weighs 0.
///
/// Args:
///     status: uint8, shape (rollouts, tests), codes as in `rewards_from_arrays`.
///     groups: Group ids, shape (rollouts,), or the size of consecutive groups.
///
/// Returns:
///     float64, shape (groups, tests), groups in the order of their sorted ids.
///
/// Source:
///     Our own; the pass rate is estimated by Laplace's rule of succession, so that no weight is 0 or 1.
#[pyfunction]
#[pyo3(signature = (status, groups: "int | ArrayLike"))]
pub fn difficulty_weights(
    py: Python<'_>,
    status: CodesIn<'_>,
    groups: &Bound<'_, PyAny>,
) -> PyResult<FloatsOut> {
    let (rollouts, tests) = rows_and_columns(&status)?;
    let groups = groups_of(groups, rollouts)?;
    let codes = status.values()?;
    Ok(FloatsOut::rows(py.detach(|| group::difficulty_weights(codes, tests, &groups))?, tests))
}

/// The share of the difficulty weight of its active tests that each rollout passed, 0..1.
///
/// Args:
///     status: uint8, shape (rollouts, tests), codes as in `rewards_from_arrays`.
///     groups: Group ids, shape (rollouts,), or the size of consecutive groups.
///
/// Returns:
///     float64, shape (rollouts,); 0.0 when nothing is active, NaN without verdict.
///
/// Source:
///     Our own; see `difficulty_weights`.
#[pyfunction]
#[pyo3(signature = (status, groups: "int | ArrayLike"))]
pub fn difficulty_score(
    py: Python<'_>,
    status: CodesIn<'_>,
    groups: &Bound<'_, PyAny>,
) -> PyResult<FloatsOut> {
    let (rollouts, tests) = rows_and_columns(&status)?;
    let groups = groups_of(groups, rollouts)?;
    let codes = status.values()?;
    Ok(FloatsOut::flat(py.detach(|| group::difficulty_score(codes, tests, &groups))?))
}

/// How many groups carry no signal under each strategy.
///
/// Args:
///     totals: Strategy name to totals, float64, shape (rollouts,); NaN means no verdict.
///     groups: Group ids, shape (rollouts,), or the size of consecutive groups.
///     resolution: Rewards that differ by no more than this count as equal, >= 0.
///
/// Returns:
///     One `GroupSignal` a strategy, in the order given.
///
/// Source:
///     Groups whose rewards are all equal have no gradient and are what DAPO's dynamic sampling drops: Yu et al.
///     2025, arXiv:2503.14476, section 3.2. The resolution is ours.
#[pyfunction]
#[pyo3(signature = (totals,
                    groups: "int | ArrayLike", *, resolution=0.01))]
pub fn group_signal(
    totals: Totals<'_>,
    groups: &Bound<'_, PyAny>,
    resolution: f64,
) -> PyResult<Vec<GroupSignal>> {
    let mut signals = Vec::new();
    for pair in totals.0.call_method0("items")?.try_iter()? {
        let (strategy, totals): (String, Bound<'_, PyAny>) = pair?.extract()?;
        let totals: FloatsIn<'_> = totals.extract()?;
        let totals = one_column("totals", &totals)?;
        signals.push(group::group_signal(&strategy, totals, &groups_of(groups, totals.len())?, resolution)?);
    }
    Ok(signals)
}

#[pymethods]
impl GroupSignal {
    #[new]
    #[pyo3(signature = (strategy, groups, all_equal, within_resolution, resolution))]
    fn py_new(
        strategy: String,
        groups: i64,
        all_equal: i64,
        within_resolution: i64,
        resolution: f64,
    ) -> PyResult<Self> {
        let count = |argument, n| check_whole(argument, ">= 0", 0, n).map(|n| n as usize);
        Ok(Self {
            strategy,
            groups: count("groups", groups)?,
            all_equal: count("all_equal", all_equal)?,
            within_resolution: count("within_resolution", within_resolution)?,
            resolution: check_range("resolution", "finite and >= 0", 0.0.., resolution)?,
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> Again<'py, (&str, usize, usize, usize, f64)> {
        (
            py.get_type::<Self>(),
            (&self.strategy, self.groups, self.all_equal, self.within_resolution, self.resolution),
        )
    }

    fn __repr__(&self) -> String {
        format!(
            "<GroupSignal {}: of {} groups {} all equal, {} within {}>",
            self.strategy, self.groups, self.all_equal, self.within_resolution, self.resolution
        )
    }
}
