"""The rules of rewards again, in slow plain Python: the oracle for the Rust core.

Written from the design, not from the Rust, one rule a function. The benchmarks measure against it
too, so it is what a careful Python programmer would write: frozen dataclasses, one pass where one
pass is natural, no numpy. It checks no ranges: what is refused is tested elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from testgrad.enums import TestSeverity, TestStatus

PASSED, FAILED, ERROR, SKIPPED, NO_VERDICT, ABSENT = 0, 1, 2, 3, 254, 255
STATUS_CODES = {
    PASSED: TestStatus.PASSED,
    FAILED: TestStatus.FAILED,
    ERROR: TestStatus.ERROR,
    SKIPPED: TestStatus.SKIPPED,
}


# Outcomes


@dataclass(frozen=True)
class TestResult:
    """What one test did."""

    __test__ = False

    name: str
    status: TestStatus
    severity: TestSeverity = TestSeverity.MAJOR
    message: str = ""
    duration_ms: float = 0.0
    details: str = ""
    reason: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class SuiteResult:
    """What the tests of one run did."""

    tests: tuple[TestResult, ...]
    suite_name: str = "default"
    coverage: float | None = None
    duration_ms: float | None = None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    trust: str | None = None

    def _count(self, status: TestStatus) -> int:
        return sum(1 for test in self.tests if test.status is status)

    @property
    def total(self) -> int:
        return len(self.tests)

    @property
    def passed(self) -> int:
        return self._count(TestStatus.PASSED)

    @property
    def failed(self) -> int:
        return self._count(TestStatus.FAILED)

    @property
    def errors(self) -> int:
        return self._count(TestStatus.ERROR)

    @property
    def skipped(self) -> int:
        return self._count(TestStatus.SKIPPED)

    @property
    def active(self) -> int:
        return self.total - self.skipped

    @property
    def pass_rate(self) -> float:
        return self.passed / self.active if self.active else 0.0

    @property
    def all_passed(self) -> bool:
        return 0 < self.active == self.passed and not self.problems

    @property
    def failing(self) -> tuple[TestResult, ...]:
        failing = (TestStatus.FAILED, TestStatus.ERROR)
        return tuple(test for test in self.tests if test.status in failing)


# Rewards of one suite


def binary_reward(suite: SuiteResult) -> float:
    """1.0 when all tests passed, else 0.0."""
    return 1.0 if suite.all_passed else 0.0


def pass_rate_reward(suite: SuiteResult) -> float:
    """The passed among the active; 0.0 when nothing is active."""
    return suite.pass_rate


def severity_weighted_reward(suite: SuiteResult) -> float:
    """The severity weight of the passed among that of the active; 0.0 when nothing is active."""
    passed = active = 0
    for test in suite.tests:
        if test.status is not TestStatus.SKIPPED:
            active += test.severity.value
            if test.status is TestStatus.PASSED:
                passed += test.severity.value
    return passed / active if active else 0.0


def progression_reward(current: SuiteResult, previous: SuiteResult | None) -> float:
    """What the pass rate gained; the pass rate itself when there is no previous suite."""
    return current.pass_rate - (previous.pass_rate if previous is not None else 0.0)


def speed_score(suite: SuiteResult, target_ms: float = 1000.0) -> float:
    """exp(-time / target), 0.0 for no tests."""
    if not suite.tests:
        return 0.0
    return math.exp(-sum(test.duration_ms for test in suite.tests) / target_ms)


@dataclass(frozen=True)
class RewardWeights:
    """How much each component counts."""

    pass_rate: float = 0.35
    severity: float = 0.25
    progression: float = 0.20
    coverage: float = 0.10
    speed: float = 0.10


DEFAULT_WEIGHTS = RewardWeights()


@dataclass(frozen=True)
class RewardSignal:
    """The components of a reward and their total."""

    pass_rate: float
    severity_score: float
    progression: float
    coverage_score: float
    speed_score: float
    total: float


def compute_reward_signal(
    suite: SuiteResult,
    previous: SuiteResult | None = None,
    coverage: float | None = None,
    target_ms: float = 1000.0,
    weights: RewardWeights = DEFAULT_WEIGHTS,
) -> RewardSignal:
    """The components in one pass over the tests, and their weighted sum, not clamped."""
    passed = active = 0
    passed_weight = active_weight = 0
    duration_ms = 0.0
    for test in suite.tests:
        duration_ms += test.duration_ms
        if test.status is TestStatus.SKIPPED:
            continue
        active += 1
        active_weight += test.severity.value
        if test.status is TestStatus.PASSED:
            passed += 1
            passed_weight += test.severity.value
    pass_rate = passed / active if active else 0.0
    severity_score = passed_weight / active_weight if active else 0.0
    progression = pass_rate - (previous.pass_rate if previous is not None else 0.0)
    if coverage is None:
        coverage = suite.coverage if suite.coverage is not None else 0.0
    speed = math.exp(-duration_ms / target_ms) if suite.tests else 0.0
    total = (
        weights.pass_rate * pass_rate
        + weights.severity * severity_score
        + weights.progression * progression
        + weights.coverage * coverage
        + weights.speed * speed
    )
    return RewardSignal(pass_rate, severity_score, progression, coverage, speed, total)


# Strategies


@dataclass(frozen=True)
class _Strategy:
    """The components are always filled in; a strategy only decides the total."""

    weights: RewardWeights = DEFAULT_WEIGHTS
    target_ms: float = 1000.0

    def __call__(self, suite: SuiteResult, previous: SuiteResult | None = None) -> RewardSignal:
        signal = compute_reward_signal(
            suite, previous, target_ms=self.target_ms, weights=self.weights
        )
        components = (
            signal.pass_rate,
            signal.severity_score,
            signal.progression,
            signal.coverage_score,
            signal.speed_score,
        )
        return RewardSignal(*components, total=self.total(signal, suite, previous))

    def total(
        self, signal: RewardSignal, suite: SuiteResult, previous: SuiteResult | None
    ) -> float:
        raise NotImplementedError


class Binary(_Strategy):
    """1.0 when all tests passed."""

    def total(self, signal, suite, previous):
        return binary_reward(suite)


class PassRate(_Strategy):
    """The pass rate."""

    def total(self, signal, suite, previous):
        return signal.pass_rate


class SeverityWeighted(_Strategy):
    """The severity score."""

    def total(self, signal, suite, previous):
        return signal.severity_score


class Progression(_Strategy):
    """What the pass rate gained."""

    def total(self, signal, suite, previous):
        return signal.progression


class MultiSignal(_Strategy):
    """The weighted sum."""

    def total(self, signal, suite, previous):
        return signal.total


class Gated(_Strategy):
    """Correctness; speed and coverage only in proportion to it; 1.0 for full success."""

    def total(self, signal, suite, previous):
        if suite.all_passed:
            return 1.0
        w = self.weights
        correct_weight = w.pass_rate + w.severity
        correctness = (
            w.pass_rate * signal.pass_rate + w.severity * signal.severity_score
        ) / correct_weight
        extras = w.coverage * signal.coverage_score + w.speed * signal.speed_score
        return correctness * (correct_weight + extras) / (correct_weight + w.coverage + w.speed)


@dataclass(frozen=True)
class Curriculum(_Strategy):
    """Pass rate, then weighted sum, then binary, by the pass rate before; 1.0 for all passed."""

    threshold: float = 0.8

    def total(self, signal, suite, previous):
        if suite.all_passed:
            return 1.0
        reached = previous.pass_rate if previous is not None else 0.0
        if reached == 1.0:
            return 0.0
        return signal.pass_rate if reached < self.threshold else signal.total


# Feedback and how a run went


@dataclass(frozen=True)
class LearningPoint:
    """One iteration on the learning curve."""

    iteration: int
    pass_rate: float
    total_reward: float
    cumulative_reward: float
    tests_fixed: int
    tests_broken: int


def extract_failing_tests(suite: SuiteResult) -> tuple[tuple[str, str], ...]:
    """Name and message of each failing test that is not hidden."""
    return tuple(
        (test.name, test.message) for test in suite.failing if test.name not in suite.hidden
    )


def infer_strategy(suites: Sequence[SuiteResult]) -> str:
    """What the next submission is for."""
    if not suites:
        return "initial"
    last = suites[-1]
    if last.errors:
        return "fix_errors"
    return "refactor" if last.all_passed else "fix_failures"


def _passing(suite: SuiteResult | None) -> set[str]:
    tests = suite.tests if suite is not None else ()
    return {test.name for test in tests if test.status is TestStatus.PASSED}


def learning_curve(
    suites: Sequence[SuiteResult], totals: Sequence[float]
) -> tuple[LearningPoint, ...]:
    """One point an iteration; before the first, nothing passes. Names are taken to be unique."""
    points = zip(pairwise([None, *suites]), totals, accumulate(totals), strict=True)
    return tuple(
        LearningPoint(
            iteration=iteration,
            pass_rate=now.pass_rate,
            total_reward=total,
            cumulative_reward=cumulative,
            tests_fixed=len(_passing(now) - _passing(before)),
            tests_broken=len(_passing(before) - _passing(now)),
        )
        for iteration, ((before, now), total, cumulative) in enumerate(points, start=1)
    )


def convergence_rate(pass_rates: Sequence[float]) -> float | None:
    """The mean gain in pass rate an iteration."""
    if len(pass_rates) < 2:
        return None
    gains = [after - before for before, after in pairwise(pass_rates)]
    return sum(gains) / len(gains)


def reward_trend(totals: Sequence[float], window: int = 3) -> float:
    """The slope of the least-squares line through the last totals."""
    recent = totals[-window:]
    n = len(recent)
    if n < 2:
        return 0.0
    sum_x, sum_y = sum(range(n)), sum(recent)
    sum_xy = sum(x * y for x, y in enumerate(recent))
    sum_xx = sum(x * x for x in range(n))
    return (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x)


# Groups of rollouts of one task; NaN means no verdict


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def sample_std(values: Sequence[float]) -> float:
    """The standard deviation with n - 1; 0.0 for a single value."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def _members(groups: Iterable[object]) -> dict[object, list[int]]:
    """The places of each group, groups in the order of their sorted ids."""
    groups = list(groups)
    return {
        group: [place for place, other in enumerate(groups) if other == group]
        for group in sorted(set(groups))
    }


def _within_groups(
    rewards: Sequence[float],
    groups: Sequence[object],
    rule: Callable[[list[float]], Iterable[float]],
) -> list[float]:
    """The rule applied to the judged rewards of each group."""
    out = [math.nan] * len(rewards)
    for places in _members(groups).values():
        judged = [place for place in places if not math.isnan(rewards[place])]
        for place, value in zip(judged, rule([rewards[place] for place in judged]), strict=True):
            out[place] = value
    return out


def _standardised(values: list[float], eps: float) -> list[float]:
    if len(set(values)) < 2:
        return [0.0] * len(values)
    middle, spread = mean(values), sample_std(values)
    return [(value - middle) / (spread + eps) for value in values]


def leave_one_out_baseline(rewards: Sequence[float], groups: Sequence[object]) -> list[float]:
    """The mean of the others; a rollout alone is its own baseline."""

    def others(values: list[float]) -> list[float]:
        if len(values) == 1:
            return values
        return [mean(values[:i] + values[i + 1 :]) for i in range(len(values))]

    return _within_groups(rewards, groups, others)


def advantages(
    rewards: Sequence[float],
    groups: Sequence[object],
    normalization: str = "mean_std",
    eps: float = 1e-6,
) -> list[float]:
    """What each rollout has over its group."""
    if normalization == "mean_std":
        return _within_groups(rewards, groups, lambda values: _standardised(values, eps))
    if normalization == "mean":
        return _within_groups(rewards, groups, lambda values: [v - mean(values) for v in values])
    baseline = leave_one_out_baseline(rewards, groups)
    return [reward - base for reward, base in zip(rewards, baseline, strict=True)]


def decoupled_advantages(
    components: Sequence[Sequence[float]],
    groups: Sequence[object],
    weights: Sequence[float],
    eps: float = 1e-6,
    whiten: bool = True,
) -> list[float]:
    """Each component standardised within its group, summed, and standardised over all rollouts."""
    columns = [advantages(column, groups, eps=eps) for column in zip(*components, strict=True)]
    sums = [
        sum(weight * value for weight, value in zip(weights, row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    return advantages(sums, [0] * len(sums), eps=eps) if whiten else sums


def _judged(row: Sequence[int]) -> bool:
    return NO_VERDICT not in row


def _active(code: int) -> bool:
    return code in (PASSED, FAILED, ERROR)


def difficulty_weights(
    status: Sequence[Sequence[int]], groups: Sequence[object]
) -> list[list[float]]:
    """Of each group: 1 - (k + 1) / (n + 2) a test, scaled to sum to 1; 0.0 if nobody ran it."""
    out = []
    for places in _members(groups).values():
        rows = [status[place] for place in places if _judged(status[place])]
        raw = []
        for test in range(len(status[0])):
            codes = [row[test] for row in rows if _active(row[test])]
            raw.append(1 - (codes.count(PASSED) + 1) / (len(codes) + 2) if codes else 0.0)
        whole = sum(raw)
        out.append([weight / whole if whole else 0.0 for weight in raw])
    return out


def difficulty_score(status: Sequence[Sequence[int]], groups: Sequence[object]) -> list[float]:
    """The difficulty weight that each rollout passed among that of its active tests."""
    weights = dict(zip(_members(groups), difficulty_weights(status, groups), strict=True))

    def score(row: Sequence[int], weight: Sequence[float]) -> float:
        if not _judged(row):
            return math.nan
        active = sum(w for w, code in zip(weight, row, strict=True) if _active(code))
        passed = sum(w for w, code in zip(weight, row, strict=True) if code == PASSED)
        return passed / active if active else 0.0

    return [score(row, weights[group]) for row, group in zip(status, groups, strict=True)]


def silent_groups(
    totals: Sequence[float], groups: Sequence[object], resolution: float = 0.01
) -> tuple[int, int, int]:
    """How many groups have a verdict, have equal rewards, have them equal within a resolution."""
    judged = [
        [totals[place] for place in places if not math.isnan(totals[place])]
        for places in _members(groups).values()
    ]
    spreads = [max(values) - min(values) for values in judged if values]
    return (
        len(spreads),
        sum(spread == 0.0 for spread in spreads),
        sum(spread <= resolution for spread in spreads),
    )
