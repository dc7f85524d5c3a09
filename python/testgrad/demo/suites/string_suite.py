"""Tests of `string`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution
from solution import Formatter, Template


@pytest.mark.critical
def test_capwords_joins_with_one_space():
    assert solution.capwords("  hello   wORLD ") == "Hello World"


def test_capwords_with_a_separator():
    assert solution.capwords("ab-cd", "-") == "Ab-Cd"


@pytest.mark.critical
def test_substitute_fills_names_in():
    text = Template("$who likes ${what}s").substitute(who="tim", what="snake")
    assert text == "tim likes snakes"


def test_substitute_prefers_keywords_to_the_mapping():
    assert Template("$a $b").substitute({"a": 1, "b": 2}, b=3) == "1 3"


def test_two_dollars_are_one():
    assert Template("$$$price").substitute(price=5) == "$5"


def test_substitute_misses_a_name():
    with pytest.raises(KeyError):
        Template("$who").substitute()


def test_safe_substitute_leaves_what_is_missing():
    assert Template("$who $what $").safe_substitute(who="tim") == "tim $what $"


@pytest.mark.parametrize(
    ("text", "place"), [("a $", "line 1, col 3"), ("a\nbc $!", "line 2, col 4")]
)
def test_a_wrong_placeholder_has_a_place(text, place):
    with pytest.raises(ValueError, match=place):
        Template(text).substitute()


def test_is_valid():
    assert Template("$a ${b} $$").is_valid()
    assert not Template("$a $").is_valid()


def test_identifiers_are_listed_once():
    assert Template("$b ${a} $b $$").get_identifiers() == ["b", "a"]


@pytest.mark.critical
@pytest.mark.parametrize("text", ["{} {} {}", "{0} {1} {2}"])
def test_format_numbers_fields(text):
    assert Formatter().format(text, 1, 2, 3) == "1 2 3"


def test_format_looks_up_names_attributes_and_items():
    assert Formatter().format("{x.real} {y[k]}", x=3, y={"k": 4}) == "3 4"


@pytest.mark.parametrize(("text", "out"), [("{!r}", "'é'"), ("{!s}", "é"), ("{!a}", "'\\xe9'")])
def test_format_converts(text, out):
    assert Formatter().format(text, "é") == out


def test_format_expands_the_specification():
    assert Formatter().format("{:>{}}|", "a", 3) == "  a|"


@pytest.mark.minor
def test_format_does_not_mix_numbering():
    with pytest.raises(ValueError, match="cannot switch"):
        Formatter().format("{0} {}", 1, 2)


@pytest.mark.minor
def test_an_unknown_conversion_is_refused():
    with pytest.raises(ValueError, match="conversion"):
        Formatter().format("{!x}", 1)
