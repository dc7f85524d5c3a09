"""Tests of `difflib`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution

OLD = ["one", "two", "three", "four"]
NEW = ["ore", "tree", "three", "emu", "four"]


def matcher(a, b):
    return solution.SequenceMatcher(None, a, b)


@pytest.mark.critical
@pytest.mark.parametrize(
    ("a", "b", "ratio"), [("abcd", "bcde", 0.75), ("abc", "abc", 1.0), ("abc", "xyz", 0.0)]
)
def test_ratio_is_twice_the_matches_over_the_length(a, b, ratio):
    assert matcher(a, b).ratio() == ratio


@pytest.mark.minor
def test_ratio_of_nothing_is_one():
    assert matcher("", "").ratio() == 1.0


@pytest.mark.parametrize("kind", ["quick_ratio", "real_quick_ratio"])
def test_quick_ratios_are_upper_bounds(kind):
    pair = matcher("abcd", "dcba")
    assert getattr(pair, kind)() == 1.0
    assert pair.ratio() == 0.25


def test_find_longest_match():
    assert matcher(" abcd", "abcd abcd").find_longest_match(0, 5, 0, 9) == (0, 4, 5)


def test_find_longest_match_of_nothing():
    assert matcher("ab", "c").find_longest_match(0, 2, 0, 1) == (0, 0, 0)


def test_matching_blocks_end_with_an_empty_one():
    assert matcher("abxcd", "abcd").get_matching_blocks() == [(0, 0, 2), (3, 2, 2), (5, 4, 0)]


@pytest.mark.critical
def test_opcodes_turn_one_into_the_other():
    assert [code[0] for code in matcher("qabxcd", "abycdf").get_opcodes()] == [
        "delete",
        "equal",
        "replace",
        "equal",
        "insert",
    ]


def test_opcodes_have_the_right_places():
    assert matcher("abxcd", "abcd").get_opcodes()[1] == ("delete", 2, 3, 2, 2)


def test_close_matches_come_best_first():
    words = ["ape", "apple", "peach", "puppy"]
    assert solution.get_close_matches("appel", words) == ["apple", "ape"]


def test_close_matches_at_the_cutoff_count():
    assert solution.get_close_matches("abcd", ["bcde", "zzzz"], cutoff=0.75) == ["bcde"]


def test_close_matches_are_limited():
    assert solution.get_close_matches("aa", ["aa", "aab", "aac"], n=1) == ["aa"]


@pytest.mark.minor
def test_no_close_matches_cannot_be_asked_for():
    with pytest.raises(ValueError, match="n must"):
        solution.get_close_matches("a", ["a"], n=0)


@pytest.mark.minor
def test_a_cutoff_beyond_one_is_refused():
    with pytest.raises(ValueError, match="cutoff"):
        solution.get_close_matches("a", ["a"], cutoff=1.5)


def test_unified_diff_names_the_files():
    diff = list(solution.unified_diff(OLD, NEW, "old", "new", lineterm=""))
    assert diff[:2] == ["--- old", "+++ new"]


def test_unified_diff_counts_lines_from_one():
    diff = list(solution.unified_diff(OLD, NEW, lineterm=""))
    assert diff[2] == "@@ -1,4 +1,5 @@"


def test_unified_diff_of_one_line_has_a_short_range():
    diff = list(solution.unified_diff(["a"], ["b"], lineterm=""))
    assert diff[2:] == ["@@ -1 +1 @@", "-a", "+b"]


def test_unified_diff_of_an_insertion_into_nothing():
    diff = list(solution.unified_diff([], ["a", "b"], lineterm=""))
    assert diff[2] == "@@ -0,0 +1,2 @@"


def test_unified_diff_of_equal_texts_is_empty():
    assert list(solution.unified_diff(OLD, OLD)) == []


def test_ndiff_is_undone_by_restore():
    delta = list(solution.ndiff(OLD, NEW))
    assert list(solution.restore(delta, 1)) == OLD
    assert list(solution.restore(delta, 2)) == NEW
