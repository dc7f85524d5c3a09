"""Tests of `getopt`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution
from solution import getopt, gnu_getopt


@pytest.mark.critical
def test_short_options():
    assert getopt(["-a", "-b", "value", "x", "y"], "ab:") == (
        [("-a", ""), ("-b", "value")],
        ["x", "y"],
    )


def test_short_options_can_stand_together():
    assert getopt(["-abvalue"], "ab:") == ([("-a", ""), ("-b", "value")], [])


@pytest.mark.critical
def test_long_options():
    assert getopt(["--all", "--out=file", "--size", "3", "x"], "", ["all", "out=", "size="]) == (
        [("--all", ""), ("--out", "file"), ("--size", "3")],
        ["x"],
    )


def test_a_long_option_can_be_cut_to_a_unique_start():
    assert getopt(["--col"], "", ["colour", "size"]) == ([("--colour", "")], [])


def test_a_cut_option_with_a_value():
    assert getopt(["--si=3"], "", ["colour", "size="]) == ([("--size", "3")], [])


def test_an_exact_name_wins_over_a_longer_one():
    assert getopt(["--in"], "", ["in", "input"]) == ([("--in", "")], [])


def test_a_start_of_two_names_is_refused():
    with pytest.raises(solution.GetoptError, match="unique"):
        getopt(["--i"], "", ["in", "input"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-x"], "not recognized"),
        (["--other"], "not recognized"),
        (["-b"], "requires argument"),
        (["--out"], "requires argument"),
        (["--all=1"], "must not have"),
    ],
)
def test_wrong_options_are_refused(arguments, message):
    with pytest.raises(solution.GetoptError, match=message):
        getopt(arguments, "ab:", ["all", "out="])


@pytest.mark.minor
def test_the_error_names_the_option():
    with pytest.raises(solution.GetoptError) as caught:
        getopt(["-x"], "ab:")
    assert caught.value.opt == "x"


def test_two_dashes_end_the_options():
    assert getopt(["-a", "--", "-b"], "ab") == ([("-a", "")], ["-b"])


def test_getopt_stops_at_the_first_argument():
    assert getopt(["x", "-a"], "a") == ([], ["x", "-a"])


def test_gnu_getopt_goes_on_after_an_argument():
    assert gnu_getopt(["x", "-a", "y", "--all"], "a", ["all"]) == (
        [("-a", ""), ("--all", "")],
        ["x", "y"],
    )


def test_gnu_getopt_stops_when_told():
    assert gnu_getopt(["x", "-a"], "+a") == ([], ["x", "-a"])


def test_gnu_getopt_keeps_a_single_dash():
    assert gnu_getopt(["-", "-a"], "a") == ([("-a", "")], ["-"])


def test_gnu_getopt_ends_at_two_dashes():
    assert gnu_getopt(["x", "--", "-a"], "a") == ([], ["x", "-a"])
