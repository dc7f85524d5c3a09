"""Tests of `bisect`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution

LETTERS = ["b", "d", "d", "f"]
GRADES = [60, 70, 80, 90]


@pytest.mark.critical
@pytest.mark.parametrize(("item", "place"), [("a", 0), ("b", 0), ("c", 1), ("d", 1), ("g", 4)])
def test_bisect_left_is_before_equal_items(item, place):
    assert solution.bisect_left(LETTERS, item) == place


@pytest.mark.critical
@pytest.mark.parametrize(("item", "place"), [("a", 0), ("b", 1), ("c", 1), ("d", 3), ("g", 4)])
def test_bisect_right_is_after_equal_items(item, place):
    assert solution.bisect_right(LETTERS, item) == place


def test_bisect_is_bisect_right():
    assert [solution.bisect(GRADES, score) for score in (33, 60, 89, 90)] == [0, 1, 3, 4]


@pytest.mark.minor
def test_an_empty_list_has_one_place():
    assert (solution.bisect_left([], 1), solution.bisect_right([], 1)) == (0, 0)


def test_bisect_left_stays_between_lo_and_hi():
    assert solution.bisect_left([1, 2, 3, 4, 5], 2, 2, 4) == 2
    assert solution.bisect_left([1, 2, 3, 4, 5], 9, 2, 4) == 4


def test_bisect_right_stays_between_lo_and_hi():
    assert solution.bisect_right([1, 2, 3, 4, 5], 2, 2, 4) == 2
    assert solution.bisect_right([1, 2, 3, 4, 5], 9, 2, 4) == 4


@pytest.mark.parametrize("function", ["bisect_left", "bisect_right"])
def test_a_negative_lo_is_refused(function):
    with pytest.raises(ValueError, match="lo"):
        getattr(solution, function)([1, 2, 3], 2, -1)


def test_bisect_left_compares_keys():
    assert solution.bisect_left(["a", "bb", "bb", "ccc"], 2, key=len) == 1


def test_bisect_right_compares_keys():
    assert solution.bisect_right(["a", "bb", "bb", "ccc"], 2, key=len) == 3


def test_insort_left_goes_before_equals():
    numbers = [1, 2, 3]
    solution.insort_left(numbers, 2.0)
    assert [type(number) for number in numbers] == [int, float, int, int]


def test_insort_right_goes_after_equals():
    numbers = [1, 2, 3]
    solution.insort_right(numbers, 2.0)
    assert [type(number) for number in numbers] == [int, int, float, int]


def test_insort_keeps_a_growing_list_sorted():
    numbers = []
    for number in (5, 1, 4, 1, 5, 9, 2, 6):
        solution.insort(numbers, number)
    assert numbers == [1, 1, 2, 4, 5, 5, 6, 9]


def test_insort_right_applies_the_key_to_the_item():
    words = ["a", "bb", "cccc"]
    solution.insort_right(words, "xx", key=len)
    assert words == ["a", "bb", "xx", "cccc"]


def test_insort_left_applies_the_key_to_the_item():
    words = ["a", "bb", "cccc"]
    solution.insort_left(words, "xx", key=len)
    assert words == ["a", "xx", "bb", "cccc"]
