"""How a run went: learning curve, convergence rate, reward trend."""

from itertools import pairwise
from random import Random

import pytest

import reference
from generated import STATUSES, random_suite, suite_of, twin_suite
from testgrad import (
    CodeSubmission,
    FeedbackEntry,
    History,
    PassRate,
    RewardSignal,
    SuiteResult,
    TestResult,
    build_feedback,
    convergence_rate,
    learning_curve,
    reward_trend,
)

CLOSE = {"rel": 1e-12, "abs": 1e-12}


def entries(suites):
    """The turns of a run over these suites."""
    return [
        build_feedback(CodeSubmission("", number), now, before)
        for number, (before, now) in enumerate(pairwise([None, *suites]), start=1)
    ]


def with_totals(totals):
    """Turns that earned these totals."""
    suite = SuiteResult([])
    return [
        FeedbackEntry(n, CodeSubmission("", n), suite, RewardSignal(0, 0, 0, 0, 0, total), ())
        for n, total in enumerate(totals, start=1)
    ]


def random_run(random):
    """A run whose suites change their tests, their order and their names on the way."""
    suites = [random_suite(random, max_size=12) for _ in range(random.randrange(8))]
    return [SuiteResult(random.sample(list(suite), len(suite))) for suite in suites]


def changes(*runs):
    """(tests_fixed, tests_broken) of each turn; a run is a dict of name to passed."""
    suites = [
        SuiteResult([TestResult(name, "passed" if ok else "failed") for name, ok in run.items()])
        for run in runs
    ]
    return [(point.tests_fixed, point.tests_broken) for point in learning_curve(entries(suites))]


# Against the oracle


@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_random_curves_agree_with_the_oracle(seed):
    random = Random(seed)
    for number in range(100):
        run = random_run(random)
        history = entries(run)
        totals = [entry.reward.total for entry in history]
        expected = reference.learning_curve([twin_suite(suite) for suite in run], totals)
        for mine, theirs in zip(learning_curve(history), expected, strict=True):
            for field in reference.LearningPoint.__match_args__:
                assert getattr(mine, field) == pytest.approx(getattr(theirs, field), **CLOSE), (
                    f"seed {seed}, run {number}, {field}"
                )


@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_random_convergence_rates_agree_with_the_oracle(seed):
    random = Random(seed)
    for _ in range(100):
        run = [suite_of("f"), *random_run(random), random_suite(random)]
        expected = reference.convergence_rate([suite.pass_rate for suite in run])
        assert convergence_rate(entries(run)) == pytest.approx(expected, **CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_random_trends_agree_with_the_oracle(seed):
    random = Random(seed)
    for _ in range(200):
        totals = [random.uniform(-1, 2) for _ in range(random.randrange(12))]
        window = random.randrange(2, 15)
        expected = reference.reward_trend(totals, window)
        assert reward_trend(with_totals(totals), window) == pytest.approx(expected, **CLOSE)


# Learning curve


def test_no_history_has_no_points():
    assert learning_curve([]) == ()


def test_before_the_first_turn_nothing_passes():
    assert changes({"a": True, "b": False, "c": True}) == [(2, 0)]


def test_fixed_and_broken_are_counted_by_name():
    assert changes({"a": True, "b": False}, {"b": True, "a": False})[1] == (1, 1)


def test_a_new_test_that_passes_is_fixed():
    assert changes({"a": True}, {"a": True, "b": True})[1] == (1, 0)


def test_a_passing_test_that_is_gone_is_broken():
    assert changes({"a": True, "b": True}, {"a": True})[1] == (0, 1)


def test_a_test_that_stays_as_it_was_is_neither():
    assert changes({"a": True, "b": False}, {"a": True, "b": False})[1] == (0, 0)


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("now", STATUSES)
def test_only_passing_counts_for_fixed_and_broken(before, now):
    suites = [SuiteResult([TestResult("a", status)]) for status in (before, now)]
    point = learning_curve(entries(suites))[1]
    passed = [status.name == "PASSED" for status in (before, now)]
    assert (point.tests_fixed, point.tests_broken) == (
        int(passed == [False, True]),
        int(passed == [True, False]),
    )


def test_tests_of_one_name_count_alike_whatever_stands_beside_them():
    def fixed(*beside):
        runs = [[TestResult("twice", status)] * 2 for status in ("failed", "passed")]
        suites = [SuiteResult(runs[0]), SuiteResult([*runs[1], *beside])]
        return learning_curve(entries(suites))[1].tests_fixed

    assert fixed() == fixed(TestResult("other", "skipped"))


def test_the_cumulative_reward_adds_up():
    points = learning_curve(with_totals([0.5, -0.25, 1.0]))
    assert [point.cumulative_reward for point in points] == [0.5, 0.25, 1.25]


def test_a_point_has_the_iteration_of_its_entry():
    history = [build_feedback(CodeSubmission("", number), suite_of("p")) for number in (4, 9)]
    assert [point.iteration for point in learning_curve(history)] == [4, 9]


# Convergence and trend


def test_the_convergence_rate_is_the_mean_gain():
    history = entries([suite_of(word) for word in ("ffff", "pfff", "pppf")])
    assert convergence_rate(history) == pytest.approx(0.375, **CLOSE)


@pytest.mark.parametrize("runs", [[], ["pf"]])
def test_the_convergence_rate_needs_two_turns(runs):
    assert convergence_rate(entries([suite_of(word) for word in runs])) is None


def test_a_run_that_gets_worse_has_a_negative_convergence_rate():
    assert convergence_rate(entries([suite_of("pp"), suite_of("pf")])) == -0.5


def test_a_straight_line_has_its_slope_as_trend():
    assert reward_trend(with_totals([0.1, 0.3, 0.5])) == pytest.approx(0.2, **CLOSE)


def test_the_trend_looks_at_the_last_turns_only():
    totals = [9.0, -9.0, 0.0, 0.5, 1.0]
    assert reward_trend(with_totals(totals), window=3) == pytest.approx(0.5, **CLOSE)


def test_the_trend_looks_at_three_turns_unless_told():
    history = with_totals([9.0, -9.0, 0.0, 0.5, 1.0])
    assert reward_trend(history) == reward_trend(history, window=3)


@pytest.mark.parametrize("totals", [[], [0.7]])
def test_the_trend_of_fewer_than_two_turns_is_zero(totals):
    assert reward_trend(with_totals(totals)) == 0.0


def test_a_window_longer_than_the_run_takes_the_whole_run():
    assert reward_trend(with_totals([0.0, 1.0]), window=100) == 1.0


@pytest.mark.parametrize("function", [learning_curve, convergence_rate, reward_trend])
@pytest.mark.parametrize("make", [list, tuple, iter, History])
def test_a_history_may_come_as_any_iterable(function, make):
    history = entries([suite_of("ff"), suite_of("pf"), suite_of("pp")])
    assert function(make(history)) == function(history)


def test_a_history_says_the_same_itself():
    history = History(entries([suite_of("ff"), suite_of("pf"), suite_of("pp")]))
    themselves = (history.learning_curve(), history.convergence_rate(), history.reward_trend(2))
    assert themselves == (
        learning_curve(history),
        convergence_rate(history),
        reward_trend(history, 2),
    )


def test_the_pass_rate_of_a_point_does_not_depend_on_the_strategy():
    suite = suite_of("pfs")
    entry = FeedbackEntry(1, CodeSubmission("", 1), suite, PassRate()(suite), ())
    assert learning_curve([entry])[0].pass_rate == suite.pass_rate
