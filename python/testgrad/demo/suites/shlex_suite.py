"""Tests of `shlex`, written from its documentation."""

# mypy: ignore-errors
import pytest
import solution


@pytest.mark.critical
def test_split_at_spaces():
    assert solution.split("cp  a.txt b.txt") == ["cp", "a.txt", "b.txt"]


@pytest.mark.critical
def test_split_joins_quoted_words():
    assert solution.split("echo 'a b' \"c d\"") == ["echo", "a b", "c d"]


def test_split_reads_escapes():
    assert solution.split(r"a\ b 'c\d' \"e") == ["a b", r"c\d", '"e']


def test_split_keeps_empty_quotes():
    assert solution.split("a '' b") == ["a", "", "b"]


def test_split_ignores_comments_unless_asked():
    assert solution.split("a # b") == ["a", "#", "b"]


def test_split_can_drop_comments():
    assert solution.split("a # b\nc", comments=True) == ["a", "c"]


@pytest.mark.parametrize("text", ["'open", '"open', "open\\"])
def test_an_open_quote_is_an_error(text):
    with pytest.raises(ValueError, match="No "):
        solution.split(text)


@pytest.mark.critical
@pytest.mark.parametrize("text", ["plain", "a/b-c.txt", "x=1", "user@host:port"])
def test_quote_leaves_a_safe_word(text):
    assert solution.quote(text) == text


@pytest.mark.parametrize(("text", "quoted"), [("", "''"), ("a b", "'a b'"), ("$x; rm", "'$x; rm'")])
def test_quote_wraps_an_unsafe_word(text, quoted):
    assert solution.quote(text) == quoted


def test_quote_escapes_a_single_quote():
    assert solution.quote("it's") == "'it'\"'\"'s'"


def test_join_is_undone_by_split():
    words = ["a b", "c'd", "", "e"]
    assert solution.split(solution.join(words)) == words


@pytest.mark.minor
def test_lexer_counts_lines():
    lexer = solution.shlex("a\nb\nc\n")
    assert list(lexer) == ["a", "b", "c"]
    assert lexer.lineno == 4


def test_lexer_without_posix_keeps_quotes():
    assert list(solution.shlex("'a b' c")) == ["'a b'", "c"]


def test_lexer_gives_pushed_tokens_first():
    lexer = solution.shlex("b")
    lexer.push_token("a")
    assert list(lexer) == ["a", "b"]


def test_lexer_reads_punctuation_as_one_token():
    assert list(solution.shlex("a && b; c", punctuation_chars=True)) == ["a", "&&", "b", ";", "c"]


def test_lexer_skips_comments():
    assert list(solution.shlex("a # b\nc")) == ["a", "c"]
