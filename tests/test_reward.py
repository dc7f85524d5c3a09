"""Rewards of one suite: published numbers, oracle, strategies, and the hacks they fall to."""

import importlib.util
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import testgrad
from generated import (
    all_strategies,
    numbers,
    random_suite,
    shares,
    suite_of,
    suites,
    targets,
    twin_suite,
    twin_weights,
    weights,
)
from shared_data import needs_shared, shared
from testgrad import (
    Binary,
    Curriculum,
    Gated,
    MultiSignal,
    PassRate,
    Progression,
    RewardSignal,
    RewardWeights,
    SeverityWeighted,
    SuiteResult,
    TestResult,
    binary_reward,
    compute_reward_signal,
    pass_rate_reward,
    progression_reward,
    severity_weighted_reward,
    speed_score,
)

STRATEGIES = [ours for ours, _ in all_strategies()]
CLOSE = {"rel": 1e-12, "abs": 1e-12}


def names_of(strategy):
    return strategy.name


# The scalar rewards, with the published numbers


def test_nine_of_ten_is_a_pass_rate_of_nine_tenths():
    assert pass_rate_reward(suite_of("p" * 9 + "f")) == 0.9


def test_skipped_tests_are_left_out_of_the_pass_rate():
    assert pass_rate_reward(suite_of("pfss")) == 0.5


def test_errors_count_as_not_passed():
    assert pass_rate_reward(suite_of("pe")) == 0.5


@pytest.mark.parametrize("statuses", ["", "s", "ssss"])
@pytest.mark.parametrize(
    "reward", [binary_reward, pass_rate_reward, severity_weighted_reward], ids=lambda r: r.__name__
)
def test_nothing_active_earns_nothing(reward, statuses):
    assert reward(suite_of(statuses)) == 0.0


@pytest.mark.parametrize(
    ("statuses", "reward"), [("p", 1.0), ("ps", 1.0), ("pf", 0.0), ("pe", 0.0), ("f", 0.0)]
)
def test_binary_is_one_only_when_all_active_tests_pass(statuses, reward):
    assert binary_reward(suite_of(statuses)) == reward


def test_binary_is_zero_for_a_suite_with_problems():
    assert binary_reward(suite_of("pp", problems=["the report was cut"])) == 0.0


def test_problems_leave_the_pass_rate_as_it_is():
    assert pass_rate_reward(suite_of("pp", problems=["the report was cut"])) == 1.0


def test_severity_weighs_three_two_one():
    suite = SuiteResult(
        [
            TestResult("a", "passed", "critical"),
            TestResult("b", "failed", "major"),
            TestResult("c", "passed", "minor"),
            TestResult("d", "skipped", "critical"),
        ]
    )
    assert severity_weighted_reward(suite) == 4 / 6


def test_three_of_ten_then_seven_of_ten_is_a_progression_of_four_tenths():
    before, now = suite_of("p" * 3 + "f" * 7), suite_of("p" * 7 + "f" * 3)
    assert progression_reward(now, before) == pytest.approx(0.4, **CLOSE)


def test_a_step_back_is_a_negative_progression():
    assert progression_reward(suite_of("pfff"), suite_of("pppf")) == -0.5


def test_progression_is_the_pass_rate_when_there_is_no_previous_suite():
    assert progression_reward(suite_of("pf"), None) == 0.5


def test_progression_takes_a_previous_suite_with_nothing_active_as_zero():
    assert progression_reward(suite_of("pf"), suite_of("ss")) == 0.5


def test_speed_is_one_over_e_at_the_target():
    assert speed_score(suite_of("pp", duration_ms=250.0), target_ms=500.0) == math.exp(-1)


def test_speed_has_a_target_of_one_second():
    assert speed_score(suite_of("pp", duration_ms=500.0)) == math.exp(-1)


def test_speed_is_zero_for_no_tests():
    assert speed_score(suite_of("")) == 0.0


def test_speed_counts_the_time_of_skipped_tests():
    assert speed_score(suite_of("s", duration_ms=1000.0)) == math.exp(-1)


def test_speed_does_not_use_the_wall_time():
    assert speed_score(suite_of("p", duration_ms=0.0), 1.0) == 1.0


def test_durations_whose_sum_overflows_give_a_speed_of_zero():
    assert speed_score(suite_of("pp", duration_ms=1.7e308)) == 0.0


# The signal


def test_the_total_is_the_weighted_sum():
    signal = compute_reward_signal(suite_of("pf", duration_ms=500.0), coverage=0.5)
    by_hand = 0.35 * 0.5 + 0.25 * 0.5 + 0.2 * 0.5 + 0.1 * 0.5 + 0.1 * math.exp(-1)
    assert signal.total == pytest.approx(by_hand, **CLOSE)


def test_the_total_of_a_perfect_run_without_coverage_is_nine_tenths():
    assert compute_reward_signal(suite_of("pp")).total == pytest.approx(0.9, **CLOSE)


def test_the_total_is_not_clamped_below():
    before = suite_of("p" * 10)
    assert compute_reward_signal(suite_of("f" * 10, duration_ms=1e4), before).total < 0


def test_the_total_is_not_clamped_above():
    heavy = RewardWeights(pass_rate=3.0)
    assert compute_reward_signal(suite_of("p"), weights=heavy).total > 3.0


def test_coverage_defaults_to_the_suites_own():
    assert compute_reward_signal(suite_of("p", coverage=0.25)).coverage_score == 0.25


def test_coverage_given_beats_the_suites_own():
    assert compute_reward_signal(suite_of("p", coverage=0.25), coverage=0.0).coverage_score == 0.0


def test_coverage_not_measured_scores_zero():
    assert compute_reward_signal(suite_of("p")).coverage_score == 0.0


def test_weights_given_as_none_are_the_default_ones():
    suite = suite_of("pf", coverage=0.3, duration_ms=7.0)
    assert compute_reward_signal(suite, weights=None) == compute_reward_signal(
        suite, weights=RewardWeights(0.35, 0.25, 0.20, 0.10, 0.10)
    )


def test_a_signal_is_a_number_where_one_is_needed():
    assert float(RewardSignal(0.0, 0.0, 0.0, 0.0, 0.0, total=0.75)) == 0.75


@pytest.mark.parametrize("strategy", [MultiSignal, Gated, Curriculum])
def test_no_accepted_weights_make_a_total_that_is_not_finite(strategy):
    try:
        weights = RewardWeights(1e308, 1e308, 1e308, 1e308, 1e308)
        total = strategy(weights=weights)(suite_of("pf", coverage=1.0), suite_of("pppppf")).total
    except ValueError:
        return
    assert math.isfinite(total)


# The oracle


def both_ways(suite, previous, coverage, target_ms, weights, threshold):
    """Every number that a suite can earn, from testgrad and from the oracle."""
    twin, before = twin_suite(suite), twin_suite(previous)
    strategies = all_strategies(weights, target_ms, threshold)
    mine = [
        binary_reward(suite),
        pass_rate_reward(suite),
        severity_weighted_reward(suite),
        progression_reward(suite, previous),
        speed_score(suite, target_ms),
        *numbers(compute_reward_signal(suite, previous, coverage, target_ms, weights)),
    ]
    theirs = [
        reference.binary_reward(twin),
        reference.pass_rate_reward(twin),
        reference.severity_weighted_reward(twin),
        reference.progression_reward(twin, before),
        reference.speed_score(twin, target_ms),
        *numbers(
            reference.compute_reward_signal(
                twin, before, coverage, target_ms, twin_weights(weights)
            )
        ),
    ]
    for ours, oracle in strategies:
        mine += numbers(ours(suite, previous))
        theirs += numbers(oracle(twin, before))
    return mine, theirs


def same(mine, theirs):
    return all(
        math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12) for a, b in zip(mine, theirs, strict=True)
    )


@settings(max_examples=250)
@given(
    suite=suites(problems=st.sampled_from([(), ("a hook failed",)])),
    previous=st.none() | suites(max_size=4),
    coverage=st.none() | shares,
    target_ms=targets,
    weights=weights.filter(lambda w: w.pass_rate + w.severity > 1e-3),
    threshold=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
)
def test_every_function_and_strategy_agrees_with_the_oracle(
    suite, previous, coverage, target_ms, weights, threshold
):
    mine, theirs = both_ways(suite, previous, coverage, target_ms, weights, threshold)
    assert mine == pytest.approx(theirs, **CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_random_suites_agree_with_the_oracle(seed):
    random = Random(seed)
    for number in range(1000):
        suite = random_suite(random)
        previous = random_suite(random, max_size=9) if random.random() < 0.7 else None
        mine, theirs = both_ways(
            suite,
            previous,
            coverage=random.choice([None, 0.0, 1.0, random.random()]),
            target_ms=10.0 ** random.uniform(-2, 5),
            weights=RewardWeights(*[random.choice([0.01, 1.0, random.random()]) for _ in range(5)]),
            threshold=random.choice([0.0, 0.5, 0.8, 1.0]),
        )
        assert same(mine, theirs), f"seed {seed}, suite {number}: {mine} != {theirs}"


@settings(max_examples=100)
@given(suite=suites(max_size=8), data=st.data())
def test_passing_one_more_test_never_lowers_pass_rate_or_severity(suite, data):
    failing = [place for place, test in enumerate(suite) if test.is_failing]
    if not failing:
        return
    place = data.draw(st.sampled_from(failing))
    tests = list(suite)
    tests[place] = TestResult(tests[place].name, "passed", tests[place].severity)
    better = SuiteResult(tests)
    assert pass_rate_reward(better) >= pass_rate_reward(suite)
    assert severity_weighted_reward(better) >= severity_weighted_reward(suite)


# Strategies


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (Binary(), "binary"),
        (PassRate(), "pass_rate"),
        (SeverityWeighted(), "severity_weighted"),
        (Progression(), "progression"),
        (MultiSignal(), "multi_signal"),
        (Gated(), "gated"),
        (Curriculum(), "curriculum"),
    ],
)
def test_each_strategy_has_a_name(strategy, name):
    assert strategy.name == name


@pytest.mark.parametrize("strategy", STRATEGIES, ids=names_of)
def test_a_strategy_fills_in_all_components(strategy):
    suite, previous = suite_of("ppfs", coverage=0.25, duration_ms=3.0), suite_of("pf")
    whole = compute_reward_signal(suite, previous)
    assert numbers(strategy(suite, previous))[:5] == numbers(whole)[:5]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=names_of)
def test_a_strategy_needs_no_previous_suite(strategy):
    suite = suite_of("pf")
    assert strategy(suite) == strategy(suite, None) == strategy(suite, previous=None)


@pytest.mark.parametrize("strategy", [MultiSignal, Gated, Curriculum])
def test_a_strategy_keeps_its_own_speed_target(strategy):
    suite = suite_of("p", duration_ms=10.0)
    assert strategy(target_ms=10.0)(suite).speed_score == math.exp(-1)


def test_multi_signal_is_the_published_formula():
    suite, previous = suite_of("ppfs", coverage=0.5, duration_ms=40.0), suite_of("pf")
    assert MultiSignal()(suite, previous) == compute_reward_signal(suite, previous)


@settings(max_examples=100)
@given(suite=suites(), previous=st.none() | suites(max_size=3))
def test_gated_stays_between_zero_and_correctness(suite, previous):
    signal = Gated()(suite, previous)
    correctness = (0.35 * signal.pass_rate + 0.25 * signal.severity_score) / 0.6
    assert 0.0 <= signal.total <= correctness + 1e-12


@pytest.mark.parametrize("strategy", [Binary(), Gated(), Curriculum()], ids=names_of)
@pytest.mark.parametrize("previous", [None, suite_of("f"), suite_of("ppppf"), suite_of("p")])
def test_full_success_earns_exactly_one(strategy, previous):
    assert strategy(suite_of("p" * 7 + "s", duration_ms=1234.5), previous).total == 1.0


def test_gated_gives_less_than_one_when_one_test_fails():
    perfect_but_one = suite_of("p" * 999 + "f", coverage=1.0)
    assert Gated()(perfect_but_one).total < 1.0


@settings(max_examples=60)
@given(suite=suites(max_size=5), previous=suites(max_size=3))
def test_gated_does_not_depend_on_the_way(suite, previous):
    assert Gated()(suite, previous).total == Gated()(suite).total


def test_gated_without_correctness_weights_is_refused_when_made_or_called():
    with pytest.raises(ValueError, match="pass_rate and severity"):
        Gated(RewardWeights(pass_rate=0.0, severity=0.0))(suite_of("p"))


@pytest.mark.parametrize(
    ("previous", "total"),
    [
        (None, "pass rate"),
        ("pppff", "pass rate"),
        ("ppppf", "weighted sum"),
        ("ppppppf", "weighted sum"),
        ("pp", "binary"),
        ("pps", "binary"),
    ],
)
def test_the_curriculum_goes_by_what_was_reached_before(previous, total):
    before = None if previous is None else suite_of(previous)
    suite = suite_of("pf", coverage=0.5, duration_ms=30.0)
    rules = {
        "pass rate": 0.5,
        "weighted sum": compute_reward_signal(suite, before).total,
        "binary": 0.0,
    }
    assert Curriculum(threshold=0.8)(suite, before).total == rules[total]


def test_progression_telescopes_over_a_run():
    run = [suite_of(statuses) for statuses in ("fff", "pff", "fff", "ppf", "ppp")]
    before = [None, *run[:-1]]
    totals = [Progression()(now, then).total for now, then in zip(run, before, strict=True)]
    assert math.fsum(totals) == pytest.approx(1.0, **CLOSE)


# Hacks of the formula: which strategy falls to which


def earns_by_crashing_at_once(strategy, previous=None):
    """Everything in error in no time is worth more than nothing."""
    return strategy(suite_of("e" * 10), previous).total > 0


def earns_by_crashing_after_a_good_run(strategy):
    return earns_by_crashing_at_once(strategy, suite_of("ppppf"))


def earns_by_stalling(strategy):
    """Ten turns at a half before the solution sum up to more than one."""

    def total(words):
        run = [suite_of(word, duration_ms=10.0) for word in words]
        before = [None, *run[:-1]]
        return sum(strategy(now, then).total for now, then in zip(run, before, strict=True))

    return total(["pf"] * 10 + ["pp"]) > total(["pf", "pp"]) + 1e-9


def underpays_a_perfect_run(strategy):
    """A solution found on the second turn earns less than 1.0."""
    return strategy(suite_of("pp", duration_ms=10.0), suite_of("pf")).total < 1.0


def earns_by_skipping(strategy):
    """A test that fails is worth more as a skipped one."""
    return strategy(suite_of("ps")).total > strategy(suite_of("pf")).total


HACKS = [
    earns_by_crashing_at_once,
    earns_by_crashing_after_a_good_run,
    earns_by_stalling,
    underpays_a_perfect_run,
    earns_by_skipping,
]
# Skipping is answered where the list of tests is fixed, in the runner; no strategy can know it.
FALLS = {
    Binary(): {earns_by_skipping},
    PassRate(): {earns_by_stalling, earns_by_skipping},
    SeverityWeighted(): {earns_by_stalling, earns_by_skipping},
    Progression(): {underpays_a_perfect_run, earns_by_skipping},
    MultiSignal(): {
        earns_by_crashing_at_once,
        earns_by_stalling,
        underpays_a_perfect_run,
        earns_by_skipping,
    },
    Gated(): {earns_by_stalling, earns_by_skipping},
    Curriculum(): {earns_by_stalling, earns_by_skipping},
}


@pytest.mark.parametrize("hack", HACKS, ids=lambda hack: hack.__name__)
@pytest.mark.parametrize("strategy", FALLS, ids=names_of)
def test_the_table_of_hacks_says_which_strategy_falls_to_which(strategy, hack):
    assert hack(strategy) == (hack in FALLS[strategy])


SHAPE_FILE = shared("hacks", "shape.py")


def shape_module():
    spec = importlib.util.spec_from_file_location("shape", SHAPE_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shapes_without_a_trusted_list():
    if SHAPE_FILE is None:
        return []
    return [case for case in shape_module().load_shapes() if "expected" not in case]


def gated_reward(tests, previous=None, coverage=0.0, expected_ids=None):
    def suite(rows, coverage=None):
        results = [
            TestResult(row["id"], row["status"], row["severity"], duration_ms=row["duration_ms"])
            for row in rows
        ]
        return SuiteResult(results, coverage=coverage)

    before = None if previous is None else suite(previous)
    return Gated()(suite(tests, coverage), before).total


@needs_shared("hacks", "shape.py")
@pytest.mark.parametrize(
    "case", shapes_without_a_trusted_list(), ids=lambda case: case["id"].replace("-", "_")
)
def test_gated_withstands_the_hacks_of_the_reward_formula(case):
    assert shape_module().check_shape(case, gated_reward) == []


def test_the_published_strategies_are_all_public():
    assert {type(strategy).__name__ for strategy in STRATEGIES} <= set(testgrad.__all__)
