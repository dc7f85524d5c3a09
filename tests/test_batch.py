"""Rewards over arrays: bit for bit the scalar ones, and what a group of rollouts says together."""

import math
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from generated import all_strategies, numbers, suite_of, suites
from testgrad import (
    Binary,
    Curriculum,
    Gated,
    MultiSignal,
    NoVerdict,
    PassRate,
    RewardWeights,
    SuiteResult,
    TestResult,
    TestSeverity,
)
from testgrad.batch import (
    ABSENT,
    NO_VERDICT,
    advantages,
    decoupled_advantages,
    difficulty_score,
    difficulty_weights,
    group_signal,
    leave_one_out_baseline,
    rewards,
    rewards_from_arrays,
)

ODD = RewardWeights(0.1, 0.7, 1.3, 0.9, 0.3)
STRATEGIES = [
    *[ours for ours, _ in all_strategies()],
    MultiSignal(ODD, 3.0),
    Gated(ODD, 3.0),
    Curriculum(0.5, ODD, 3.0),
    Curriculum(0.0),
    Curriculum(1.0),
]
STATUS = np.array([[0, 1, 2, 3], [0, 0, 0, 0], [3, 3, 3, 3], [1, 0, ABSENT, 2]], dtype=np.uint8)
TIMES = np.arange(16.0).reshape(4, 4) * 37.7
SEVERITY = np.array([3, 2, 1, 2], dtype=np.uint8)


def same_bits(mine, theirs):
    """Equal to the last bit, NaN equal to NaN."""
    mine, theirs = np.asarray(mine, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    assert mine.shape == theirs.shape
    both_nan = np.isnan(mine) & np.isnan(theirs)
    unequal = (mine.view(np.uint64) != theirs.view(np.uint64)) & ~both_nan
    assert not unequal.any(), f"{mine[unequal]} != {theirs[unequal]}"


def one_by_one(suites, strategy, previous=None):
    """What the batch must give: the strategy called on each suite; None gives NaN."""
    before = previous or [None] * len(suites)
    nothing = (math.nan,) * 6
    rows = [
        nothing if suite is None else numbers(strategy(suite, then))
        for suite, then in zip(suites, before, strict=True)
    ]
    table = np.array(rows, dtype=np.float64).reshape(len(suites), 6)
    return table[:, :5].copy(), table[:, 5].copy()


def same_as_one_by_one(batch, suites, strategy, previous=None):
    components, totals = batch
    expected_components, expected_totals = one_by_one(suites, strategy, previous)
    same_bits(components, expected_components)
    same_bits(totals, expected_totals)


def suites_from(status, severity=None, duration_ms=None, coverage=None):
    """The suites that the arrays stand for, None for a row without verdict."""
    rollouts, tests = status.shape
    severity = [2] * tests if severity is None else severity.tolist()
    duration_ms = np.zeros(status.shape) if duration_ms is None else duration_ms
    coverage = np.full(rollouts, np.nan) if coverage is None else coverage
    severity = [TestSeverity(code) for code in severity]

    def suite(codes, times, share):
        if NO_VERDICT in codes:
            return None
        results = [
            TestResult("t", reference.STATUS_CODES[code], weight, duration_ms=ms)
            for code, weight, ms in zip(codes, severity, times, strict=True)
            if code != ABSENT
        ]
        return SuiteResult(results, coverage=None if math.isnan(share) else share)

    rows = zip(status.tolist(), duration_ms.tolist(), coverage.tolist(), strict=True)
    return [suite(*row) for row in rows]


# From suites


@settings(max_examples=60)
@given(
    some=st.lists(st.none() | suites(max_size=6), max_size=6),
    strategy=st.sampled_from(STRATEGIES),
    data=st.data(),
)
def test_a_batch_of_suites_equals_the_strategy_on_each(some, strategy, data):
    size = len(some)
    before = data.draw(st.lists(st.none() | suites(max_size=4), min_size=size, max_size=size))
    same_as_one_by_one(rewards(some, strategy, previous=before), some, strategy, before)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_batch_of_suites_equals_each_strategy(strategy):
    some = [suite for suite in suites_from(STATUS, SEVERITY, TIMES) for _ in range(3)]
    before = [None, suite_of("pf"), suite_of("pp"), suite_of("ppppf")] * 3
    same_as_one_by_one(rewards(some, strategy, previous=before), some, strategy, before)


def test_problems_count_in_a_batch_of_suites():
    suite = suite_of("pp", problems=["a hook failed"])
    assert rewards([suite], Binary())[1].tolist() == [0.0]


@pytest.mark.parametrize(
    "missing", [None, NoVerdict("the sandbox broke")], ids=["None", "NoVerdict"]
)
def test_a_suite_without_verdict_is_a_row_of_nan(missing):
    components, totals = rewards([suite_of("p"), missing, suite_of("f")])
    assert np.isnan(components).all(axis=1).tolist() == [False, True, False]
    assert np.isnan(totals).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "missing", [None, NoVerdict("the sandbox broke")], ids=["None", "NoVerdict"]
)
def test_a_previous_suite_without_verdict_is_no_previous_suite(missing):
    same_as_one_by_one(
        rewards([suite_of("pf")], previous=[missing]), [suite_of("pf")], MultiSignal()
    )


def test_coverage_given_beats_each_suites_own_except_where_nan():
    some = [suite_of("p", coverage=0.5)] * 2
    assert rewards(some, coverage=[0.25, math.nan])[0][:, 3].tolist() == [0.25, 0.5]


def test_the_default_strategy_is_multi_signal():
    some = [suite_of("ppf", coverage=0.5)]
    same_as_one_by_one(rewards(some), some, MultiSignal())


@pytest.mark.parametrize("make", [list, tuple, iter, lambda some: (suite for suite in some)])
def test_the_suites_may_come_from_any_iterable(make):
    some = [suite_of("pf"), suite_of("p")]
    same_as_one_by_one(rewards(make(some)), some, MultiSignal())


def test_no_suites_give_empty_arrays():
    components, totals = rewards([])
    assert (components.shape, totals.shape) == ((0, 5), (0,))


@pytest.mark.parametrize("batch", [rewards([suite_of("p")]), rewards_from_arrays(STATUS)])
def test_a_batch_comes_out_as_float64(batch):
    assert [array.dtype for array in batch] == [np.float64, np.float64]


def test_a_big_batch_of_suites_equals_the_strategy_on_each():
    random = np.random.default_rng(0)
    some = suites_from(random.integers(0, 4, (1500, 20), dtype=np.uint8))
    before = some[1:] + some[:1]
    same_as_one_by_one(rewards(some, Gated(), previous=before), some, Gated(), before)


# From arrays


@st.composite
def arrays(draw):
    """Status, severity, duration_ms, coverage and previous of a few rollouts."""
    rollouts, tests = draw(st.integers(0, 5)), draw(st.integers(0, 6))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    usual = draw(st.sampled_from([[0, 1, 2, 3], [0], [0, 0, 0, 1], [3], [0, 3, ABSENT]]))
    extra = draw(st.sampled_from([[], [], [ABSENT], [NO_VERDICT, *usual * 4]]))
    shape = (rollouts, tests)
    status = random.choice(np.array(usual + extra, dtype=np.uint8), shape)
    severity = draw(st.none() | st.just(random.integers(1, 4, tests, dtype=np.uint8)))
    duration_ms = draw(st.none() | st.just(random.exponential(500.0, shape)))
    coverage = random.choice([0.0, 1.0, math.nan, random.random()], rollouts)
    previous = random.choice(np.array([*usual, ABSENT], dtype=np.uint8), shape)
    return status, severity, duration_ms, draw(st.sampled_from([None, coverage])), previous


@settings(max_examples=150)
@given(
    given_arrays=arrays(),
    strategy=st.sampled_from(STRATEGIES),
    way=st.sampled_from(["none", "codes", "one row of codes", "pass rates"]),
)
def test_arrays_equal_the_strategy_on_each_suite(given_arrays, strategy, way):
    status, severity, duration_ms, coverage, codes = given_arrays
    rollouts = len(status)
    if way == "one row of codes":
        if not rollouts:
            return
        codes = np.repeat(codes[:1], rollouts, axis=0)
    before = suites_from(codes) if way != "none" else [None] * rollouts
    previous = {
        "none": None,
        "codes": codes,
        "one row of codes": codes[0] if rollouts else None,
        "pass rates": np.array(
            [suite.pass_rate for suite in before if suite is not None], dtype=np.float64
        ),
    }[way]
    batch = rewards_from_arrays(
        status,
        strategy,
        severity=severity,
        duration_ms=duration_ms,
        coverage=coverage,
        previous=previous,
    )
    some = suites_from(status, severity, duration_ms, coverage)
    same_as_one_by_one(batch, some, strategy, before)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_big_array_equals_each_strategy(strategy):
    random = np.random.default_rng(1)
    status = random.choice(np.array([0, 0, 0, 1, 2, 3, ABSENT], dtype=np.uint8), (150, 97))
    status[random.random(150) < 0.1] = 0
    status[7, 3] = NO_VERDICT
    duration_ms = random.exponential(20.0, status.shape)
    severity = random.integers(1, 4, 97, dtype=np.uint8)
    coverage = random.random(150)
    before = random.choice(np.array([0, 0, 0, 0, 1], dtype=np.uint8), (150, 97))
    before[random.random(150) < 0.3] = 0
    batch = rewards_from_arrays(
        status,
        strategy,
        severity=severity,
        duration_ms=duration_ms,
        coverage=coverage,
        previous=before,
    )
    some = suites_from(status, severity, duration_ms, coverage)
    same_as_one_by_one(batch, some, strategy, suites_from(before))


def test_the_two_ways_in_agree_on_a_big_batch():
    random = np.random.default_rng(2)
    status = random.integers(0, 4, (4000, 25), dtype=np.uint8)
    duration_ms = random.exponential(20.0, status.shape)
    for mine, theirs in zip(
        rewards_from_arrays(status, Gated(), duration_ms=duration_ms),
        rewards(suites_from(status, duration_ms=duration_ms), Gated()),
        strict=True,
    ):
        same_bits(mine, theirs)


def test_rows_do_not_depend_on_their_neighbours():
    random = np.random.default_rng(3)
    status = random.integers(0, 4, (20_000, 10), dtype=np.uint8)
    whole = rewards_from_arrays(status)[1]
    same_bits(whole[10_000:10_100], rewards_from_arrays(status[10_000:10_100])[1])


def test_one_code_without_verdict_makes_its_row_nan():
    components, totals = rewards_from_arrays([[0, NO_VERDICT], [0, 1]])
    assert np.isnan(components).all(axis=1).tolist() == [True, False]
    assert np.isnan(totals).tolist() == [True, False]


def test_absent_tests_are_as_if_they_were_not_there():
    padded = rewards_from_arrays([[0, 1, ABSENT]], duration_ms=[[1.0, 2.0, 3.0]])
    plain = rewards_from_arrays([[0, 1]], duration_ms=[[1.0, 2.0]])
    same_bits(padded[0], plain[0])


def test_a_row_of_absent_tests_is_a_suite_without_tests():
    assert rewards_from_arrays([[ABSENT, ABSENT]])[0].tolist() == [[0.0] * 5]


def test_the_times_of_a_row_without_verdict_are_not_looked_at():
    totals = rewards_from_arrays([[NO_VERDICT], [0]], duration_ms=[[math.nan], [0.0]])[1]
    assert np.isnan(totals).tolist() == [True, False]


def test_the_time_of_an_absent_test_is_not_looked_at():
    speed = rewards_from_arrays([[0, ABSENT]], duration_ms=[[0.0, math.nan]])[0][0, 4]
    assert speed == 1.0


def test_times_whose_sum_overflows_give_a_speed_of_zero_as_for_one_suite():
    times = np.array([[1.7e308, 1.7e308]])
    some = [suite_of("pp", duration_ms=1.7e308)]
    same_as_one_by_one(rewards_from_arrays([[0, 0]], duration_ms=times), some, MultiSignal())


def test_a_previous_row_without_verdict_is_no_previous_suite():
    progression = rewards_from_arrays([[0], [0]], previous=[[NO_VERDICT], [1]])[0][:, 2]
    assert progression.tolist() == [1.0, 1.0]


def test_a_previous_pass_rate_of_nan_is_no_previous_suite():
    progression = rewards_from_arrays([[0], [0]], previous=[math.nan, 0.25])[0][:, 2]
    assert progression.tolist() == [1.0, 0.75]


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0)])
def test_empty_arrays_give_a_row_a_rollout(shape):
    components, totals = rewards_from_arrays(np.zeros(shape, dtype=np.uint8))
    assert (components.tolist(), totals.tolist()) == ([[0.0] * 5] * shape[0], [0.0] * shape[0])


CODE_DTYPES = ["u1", "i1", "u2", ">u2", "i4", "i8", ">i8", "u8"]


@pytest.mark.parametrize("dtype", CODE_DTYPES)
def test_status_may_have_any_dtype_of_whole_numbers(dtype):
    status = np.where(STATUS == ABSENT, 3, STATUS)
    same_bits(
        rewards_from_arrays(status.astype(dtype))[0],
        rewards_from_arrays(status.astype(np.uint8))[0],
    )


@pytest.mark.parametrize("dtype", CODE_DTYPES)
def test_severity_may_have_any_dtype_of_whole_numbers(dtype):
    same_bits(
        rewards_from_arrays(STATUS, severity=SEVERITY.astype(dtype))[0],
        rewards_from_arrays(STATUS, severity=SEVERITY)[0],
    )


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i4", "u1", "f2"])
def test_times_may_have_any_dtype_of_real_numbers(dtype):
    times = np.arange(16).reshape(4, 4)
    same_bits(
        rewards_from_arrays(STATUS, duration_ms=times.astype(dtype))[0],
        rewards_from_arrays(STATUS, duration_ms=times.astype(np.float64))[0],
    )


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    wide = np.full((array.shape[0] * 2, array.shape[1] * 3), 0, dtype=array.dtype)
    wide[::2, ::3] = array
    return wide[::2, ::3]


LAYOUTS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda array: array.T.copy().T,
    "read_only": read_only,
    "list": lambda array: array.tolist(),
    "tuple": lambda array: tuple(map(tuple, array.tolist())),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_arrays_does_not_matter(layout):
    change = LAYOUTS[layout]
    mine = rewards_from_arrays(
        change(STATUS), duration_ms=change(TIMES), previous=change(STATUS[::-1])
    )
    plain = rewards_from_arrays(STATUS, duration_ms=TIMES, previous=STATUS[::-1].copy())
    same_bits(mine[0], plain[0])


def test_the_arrays_given_are_left_as_they_are():
    status, times = STATUS.copy(), TIMES.copy()
    rewards_from_arrays(status, Gated(), severity=SEVERITY, duration_ms=times)
    assert (status == STATUS).all()
    assert (times == TIMES).all()


def test_the_arrays_that_come_out_are_the_callers_own():
    _, totals = rewards_from_arrays(STATUS)
    totals[:] = 7.0
    assert rewards_from_arrays(STATUS)[1].max() < 1.0


@pytest.mark.parametrize(
    "batch",
    [
        lambda: rewards_from_arrays(np.zeros((20_000, 100), dtype=np.uint8)),
        lambda: rewards([suite_of("p" * 100)] * 20_000),
        lambda: decoupled_advantages(np.ones((100_000, 5)), 10),
    ],
    ids=["rewards_from_arrays", "rewards", "decoupled_advantages"],
)
def test_another_thread_goes_on_while_a_batch_is_computed(batch):
    """With this switch interval nobody is made to let go: only the batch can let the other in."""
    turns, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)  # lets go of the interpreter, and waits for nothing

    other = threading.Thread(target=count)
    before_test = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        other.start()
        for _ in range(50):
            before = turns[0]
            batch()
            progress = turns[0] - before
            if progress:
                break
    finally:
        stop.set()
        sys.setswitchinterval(before_test)
        other.join()
    assert progress > 0


# Groups of rollouts

GROUPS = [0, 1, 0, 2, 1, 0, 0, 3]
quantised = st.integers(-64, 64).map(lambda number: number / 64)


@st.composite
def grouped(draw, values=quantised):
    ids = draw(st.lists(st.integers(0, 3), max_size=12))
    values = draw(
        st.lists(st.just(math.nan) | values | values, min_size=len(ids), max_size=len(ids))
    )
    return values, ids


def close(mine, theirs, tolerance=1e-12):
    assert mine.tolist() == pytest.approx(theirs, rel=tolerance, abs=tolerance, nan_ok=True)


@settings(max_examples=120)
@given(case=grouped(), normalization=st.sampled_from(["mean_std", "mean", "leave_one_out"]))
def test_advantages_agree_with_the_oracle(case, normalization):
    close(
        advantages(*case, normalization=normalization), reference.advantages(*case, normalization)
    )


@settings(max_examples=60)
@given(case=grouped())
def test_the_leave_one_out_baseline_agrees_with_the_oracle(case):
    close(leave_one_out_baseline(*case), reference.leave_one_out_baseline(*case))


@settings(max_examples=100)
@given(case=grouped(), seed=st.integers(0, 2**32), whiten=st.booleans(), width=st.integers(1, 5))
def test_decoupled_advantages_agree_with_the_oracle(case, seed, whiten, width):
    values, ids = case
    random = np.random.default_rng(seed)
    components = random.integers(0, 8, (len(ids), width)) / 8
    components[np.isnan(np.array(values, dtype=np.float64))] = math.nan
    weights = random.random(width).tolist()
    if not ids:
        return
    close(
        decoupled_advantages(components, ids, weights=weights, whiten=whiten),
        reference.decoupled_advantages(components.tolist(), ids, weights, whiten=whiten),
        tolerance=1e-9,
    )


def test_decoupled_advantages_weigh_like_reward_weights_unless_told():
    components = np.random.default_rng(0).random((8, 5))
    close(
        decoupled_advantages(components, 4),
        decoupled_advantages(components, 4, weights=[0.35, 0.25, 0.20, 0.10, 0.10]).tolist(),
    )


def test_a_component_with_a_wide_spread_does_not_drown_the_others():
    components = np.array([[0.0, 0.0], [0.0, 1.0], [1000.0, 0.0], [1000.0, 1.0]])
    values = decoupled_advantages(components, 4, weights=[1.0, 1.0], eps=0.0, whiten=False)
    assert values.tolist() == pytest.approx([-math.sqrt(3), 0.0, 0.0, math.sqrt(3)], abs=1e-12)


@st.composite
def group_codes(draw):
    ids = draw(st.lists(st.integers(0, 2), min_size=1, max_size=8))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    usual = draw(st.sampled_from([[0, 1], [0, 1, 2, 3], [0, 1, 3, ABSENT], [0, 0, 1, NO_VERDICT]]))
    codes = np.array(usual, dtype=np.uint8)
    return random.choice(codes, (len(ids), draw(st.integers(1, 5)))), ids


@settings(max_examples=80)
@given(case=group_codes())
def test_difficulty_weights_agree_with_the_oracle(case):
    status, ids = case
    expected = reference.difficulty_weights(status.tolist(), ids)
    assert np.allclose(difficulty_weights(status, ids), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=80)
@given(case=group_codes())
def test_difficulty_scores_agree_with_the_oracle(case):
    status, ids = case
    close(difficulty_score(status, ids), reference.difficulty_score(status.tolist(), ids))


def test_a_test_that_few_pass_weighs_more():
    assert difficulty_weights([[0, 0], [0, 1], [0, 1]], 3)[0].tolist() == pytest.approx(
        [0.2 / (0.2 + 0.6), 0.6 / (0.2 + 0.6)]
    )


@settings(max_examples=80)
@given(case=grouped(), resolution=st.sampled_from([0.0, 1 / 64, 0.5]))
def test_the_count_of_silent_groups_agrees_with_the_oracle(case, resolution):
    totals, ids = case
    (signal,) = group_signal({"mine": totals}, ids, resolution=resolution)
    counts = (signal.groups, signal.all_equal, signal.within_resolution)
    assert counts == reference.silent_groups(totals, ids, resolution)


def test_the_signal_of_groups_is_told_for_each_strategy_in_the_order_given():
    totals = {"z": [0.0, 1.0], "a": [1.0, 1.0]}
    found = [(s.strategy, s.groups, s.all_equal) for s in group_signal(totals, 2)]
    assert found == [("z", 1, 0), ("a", 1, 1)]


def test_binary_leaves_more_groups_silent_than_the_pass_rate():
    status = [[0, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1]]
    totals = {s.name: rewards_from_arrays(status, s)[1] for s in (Binary(), PassRate())}
    silent = [signal.all_equal for signal in group_signal(totals, 4)]
    assert silent == [1, 0]


@pytest.mark.parametrize("normalization", ["mean_std", "mean", "leave_one_out"])
def test_a_group_of_equal_rewards_has_advantages_of_exactly_zero(normalization):
    values = [0.1 + 0.2] * 7
    assert advantages(values, 7, normalization=normalization, eps=0.0).tolist() == [0.0] * 7


def test_the_published_mean_std_advantage_uses_the_sample_deviation():
    values = advantages([1.0, 2.0, 3.0, 4.0], 4, eps=0.0)
    spread = math.sqrt(5 / 3)
    assert values.tolist() == pytest.approx([x / spread for x in (-1.5, -0.5, 0.5, 1.5)])


def test_a_rollout_alone_is_its_own_baseline():
    assert leave_one_out_baseline([0.3, 0.7], [0, 1]).tolist() == [0.3, 0.7]


def test_rewards_without_verdict_are_left_out_of_their_group():
    values = advantages([1.0, math.nan, 3.0], 3, normalization="mean").tolist()
    assert values == pytest.approx([-1.0, math.nan, 1.0], nan_ok=True)


def test_a_number_of_groups_means_consecutive_ones():
    values = [0.0, 1.0, 5.0, 7.0]
    same_bits(advantages(values, 2), advantages(values, [0, 0, 1, 1]))


@pytest.mark.parametrize("ids", [["b", "a", "b"], np.array([9, -4, 9]), (10**12, 0, 10**12)])
def test_groups_may_have_any_ids_and_be_mixed(ids):
    assert advantages([0.0, 5.0, 1.0], ids, normalization="mean").tolist() == [-0.5, 0.0, 0.5]


def test_difficulty_weights_come_in_the_order_of_the_sorted_ids():
    first, second = difficulty_weights([[0, 1], [1, 0]], [7, 3])
    assert first.tolist() == second.tolist()[::-1]


def test_no_rollouts_give_no_advantages():
    assert advantages([], []).tolist() == []


@pytest.mark.parametrize("function", [advantages, leave_one_out_baseline])
def test_an_infinite_reward_is_refused_and_not_taken_for_no_verdict(function):
    with pytest.raises(ValueError, match="rewards"):
        function([0.0, math.inf], 2)


@pytest.mark.parametrize("function", [difficulty_weights, difficulty_score])
def test_an_unknown_status_code_is_refused_by_the_difficulty_too(function):
    with pytest.raises(ValueError, match="status"):
        function([[0, 9]], 1)
