"""Tests of `reprlib`, written from its documentation."""

# mypy: ignore-errors
from array import array
from collections import deque

import pytest
import solution


@pytest.mark.critical
@pytest.mark.parametrize("value", [[1, 2, 3], (1,), (), {1, 2}, {"a": 1}, "text", 42, None, 1.5])
def test_a_short_value_is_shown_whole(value):
    assert solution.repr(value) == repr(value)


@pytest.mark.critical
def test_repr_list_is_cut_after_six():
    assert solution.repr(list(range(10))) == "[0, 1, 2, 3, 4, 5, ...]"


def test_repr_list_of_six_is_not_cut():
    assert solution.repr(list(range(6))) == "[0, 1, 2, 3, 4, 5]"


def test_repr_tuple_is_cut_after_six():
    assert solution.repr(tuple(range(7))) == "(0, 1, 2, 3, 4, 5, ...)"


def test_repr_set_is_sorted_and_cut():
    assert solution.repr(set(range(9, 0, -1))) == "{1, 2, 3, 4, 5, 6, ...}"


def test_repr_dict_is_cut_after_four():
    assert solution.repr(dict.fromkeys(range(5))) == "{0: None, 1: None, 2: None, 3: None, ...}"


def test_repr_dict_of_four_is_not_cut():
    assert solution.repr(dict.fromkeys(range(4))) == "{0: None, 1: None, 2: None, 3: None}"


@pytest.mark.parametrize(("value", "out"), [(frozenset(), "frozenset()"), (set(), "set()")])
def test_repr_of_an_empty_set_has_its_name(value, out):
    assert solution.repr(value) == out


def test_repr_deque_and_repr_array_have_names():
    assert solution.repr(deque([1, 2])) == "deque([1, 2])"
    assert solution.repr(array("i", range(6))) == "array('i', [0, 1, 2, 3, 4, ...])"


def test_repr_str_is_cut_in_the_middle():
    shown = solution.repr("a" * 30 + "b" * 30)
    assert shown == "'aaaaaaaaaaaa...bbbbbbbbbbbbb'"


def test_repr_str_of_thirty_is_not_cut():
    assert solution.repr("x" * 28) == repr("x" * 28)
    assert len(solution.repr("x" * 29)) == 30


def test_repr_int_is_cut_in_the_middle():
    shown = solution.repr(10**60)
    assert shown == "1" + "0" * 17 + "..." + "0" * 19


def test_repr_list_and_repr_dict_are_cut_at_their_level():
    shallow = solution.Repr()
    shallow.maxlevel = 2
    assert shallow.repr([[[[]]]]) == "[[[...]]]"
    assert shallow.repr({1: {2: {3: 4}}}) == "{1: {2: {...}}}"


def test_repr_list_in_repr_dict_is_shown():
    assert solution.repr([[1], {2: [3]}]) == "[[1], {2: [3]}]"


@pytest.mark.minor
def test_repr_instance_replaces_a_broken_one():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    assert solution.repr(Broken()).startswith("<Broken instance at 0x")


def test_recursive_repr_stops():
    class Ring:
        @solution.recursive_repr(fillvalue="<ring>")
        def __repr__(self):
            return f"Ring({self!r})"

    assert repr(Ring()) == "Ring(<ring>)"
