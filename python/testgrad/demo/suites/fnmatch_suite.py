"""Tests of `fnmatch`, written from its documentation."""

# mypy: ignore-errors
import re

import pytest
import solution


@pytest.mark.critical
@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("notes.txt", "*.txt"),
        ("notes.txt", "n*s.t?t"),
        ("a", "[abc]"),
        ("b", "[a-c]"),
        ("5", "[0-9]"),
        ("d", "[!a-c]"),
        ("]", "[]]"),
        ("-", "[a-]"),
        ("[x", "[x"),
        ("a[b", "a[b"),
        ("", "*"),
        ("x\ny", "x*y"),
    ],
)
def test_fnmatchcase_accepts(name, pattern):
    assert solution.fnmatchcase(name, pattern) is True


@pytest.mark.critical
@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("notes.txt", "*.md"),
        ("notes", "note"),
        ("d", "[a-c]"),
        ("b", "[!a-c]"),
        ("b", "[c-a]"),
        ("A", "a"),
        ("ab", "?"),
    ],
)
def test_fnmatchcase_refuses(name, pattern):
    assert solution.fnmatchcase(name, pattern) is False


def test_fnmatchcase_reads_bytes():
    assert solution.fnmatchcase(b"a.py", b"*.py")


def test_fnmatch_is_fnmatchcase_for_lower_case():
    assert solution.fnmatch("a.py", "*.py")
    assert not solution.fnmatch("a.py", "*.pyc")


def test_filter_keeps_the_names_that_match():
    assert solution.filter(["a.py", "b.txt", "c.py"], "*.py") == ["a.py", "c.py"]


@pytest.mark.minor
def test_translate_gives_a_regular_expression():
    pattern = re.compile(solution.translate("a?[!x]*"))
    assert pattern.match("abc-and-more")
    assert not pattern.match("abx")
