"""Tests of `base64`, written from its documentation and RFC 4648."""

# mypy: ignore-errors
import binascii

import pytest
import solution

BYTES = [b"", b"f", b"fo", b"foo", b"foob", b"fooba", b"foobar"]


@pytest.mark.critical
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", b""),
        (b"f", b"MY======"),
        (b"fo", b"MZXQ===="),
        (b"foo", b"MZXW6==="),
        (b"foob", b"MZXW6YQ="),
        (b"foobar", b"MZXW6YTBOI======"),
    ],
)
def test_b32encode(data, text):
    assert solution.b32encode(data) == text


@pytest.mark.parametrize("data", BYTES)
def test_b32decode_undoes_b32encode(data):
    assert solution.b32decode(solution.b32encode(data)) == data


def test_b32decode_reads_small_letters_when_asked():
    assert solution.b32decode(b"mzxw6===", casefold=True) == b"foo"


@pytest.mark.minor
@pytest.mark.parametrize("text", [b"MY", b"MY=====1", b"MZXW6YQ1"])
def test_b32decode_refuses_a_wrong_text(text):
    with pytest.raises(binascii.Error):
        solution.b32decode(text)


@pytest.mark.parametrize("data", BYTES)
def test_b85decode_undoes_b85encode(data):
    assert solution.b85decode(solution.b85encode(data)) == data


@pytest.mark.critical
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"Man ", b"9jqo^"),
        (b"Man is distinguished", b"9jqo^BlbD-BleB1DJ+*+F(f,q"),
        (b"\0\0\0\0", b"z"),
    ],
)
def test_a85encode(data, text):
    assert solution.a85encode(data) == text


@pytest.mark.parametrize("data", BYTES)
def test_a85decode_undoes_a85encode(data):
    assert solution.a85decode(solution.a85encode(data)) == data


def test_a85_in_adobe_frames():
    assert solution.a85encode(b"Man ", adobe=True) == b"<~9jqo^~>"
    assert solution.a85decode(b"<~9jqo^~>", adobe=True) == b"Man "


def test_a85decode_skips_white_space():
    assert solution.a85decode(b"9j q\no^") == b"Man "
