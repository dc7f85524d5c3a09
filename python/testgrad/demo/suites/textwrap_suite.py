"""Tests of `textwrap`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution

FOX = "The quick brown fox jumped over the lazy dog."


@pytest.mark.critical
def test_wrap_breaks_at_spaces():
    assert solution.wrap(FOX, 16) == ["The quick brown", "fox jumped over", "the lazy dog."]


@pytest.mark.critical
def test_fill_joins_the_lines():
    assert solution.fill("one two three", 8) == "one two\nthree"


@pytest.mark.minor
def test_an_empty_text_has_no_lines():
    assert solution.wrap("", 10) == []


def test_a_width_of_zero_is_refused():
    with pytest.raises(ValueError, match="width"):
        solution.wrap(FOX, 0)


def test_indents_count_towards_the_width():
    lines = solution.wrap("aa bb cc dd", 7, initial_indent="* ", subsequent_indent="  ")
    assert lines == ["* aa bb", "  cc dd"]


def test_a_long_word_is_broken():
    assert solution.wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_a_long_word_can_be_kept():
    assert solution.wrap("a abcdefghij b", 4, break_long_words=False) == ["a", "abcdefghij", "b"]


def test_a_long_word_is_broken_after_its_hyphen():
    assert solution.wrap("1-abcdefgh", 6) == ["1-", "abcdef", "gh"]


def test_a_hyphenated_word_can_be_kept_together():
    lines = solution.wrap("so well-known", 11, break_on_hyphens=False)
    assert lines == ["so", "well-known"]


def test_tabs_become_spaces():
    assert solution.wrap("a\tb", 20, tabsize=4) == ["a   b"]


def test_leading_space_can_be_kept():
    assert solution.wrap("  a b", 10, drop_whitespace=False) == ["  a b"]


def test_sentence_endings_get_two_spaces():
    wrapper = solution.TextWrapper(fix_sentence_endings=True)
    assert wrapper.wrap("It ends. A new one! No. 1") == ["It ends.  A new one!  No.  1"]


def test_sentence_endings_need_a_lower_case_letter():
    wrapper = solution.TextWrapper(fix_sentence_endings=True)
    assert wrapper.wrap("the PLAN. it is") == ["the PLAN. it is"]


@pytest.mark.critical
def test_shorten_leaves_a_short_text():
    assert solution.shorten("Hello  world!", 12) == "Hello world!"


def test_shorten_drops_whole_words():
    assert solution.shorten("Hello  world!", 11) == "Hello [...]"


def test_shorten_with_another_placeholder():
    assert solution.shorten("Hello world", 10, placeholder="...") == "Hello..."


def test_max_lines_cuts_the_text():
    lines = solution.wrap(FOX, 16, max_lines=2)
    assert lines == ["The quick brown", "fox jumped [...]"]


def test_max_lines_that_suffice_change_nothing():
    assert len(solution.wrap(FOX, 16, max_lines=3)) == 3


def test_dedent_removes_the_common_margin():
    assert solution.dedent("    a\n      b\n    c\n") == "a\n  b\nc\n"


def test_dedent_finds_the_common_part_of_two_margins():
    assert solution.dedent("  \ta\n   b\n") == "\ta\n b\n"


def test_dedent_does_not_mix_tabs_and_spaces():
    assert solution.dedent("\ta\n  b\n") == "\ta\n  b\n"


def test_indent_skips_blank_lines():
    assert solution.indent("a\n\nb\n", "> ") == "> a\n\n> b\n"


def test_indent_asks_the_predicate():
    assert solution.indent("a\n\nb", "+", lambda _: True) == "+a\n+\n+b"
