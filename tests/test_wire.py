"""What crosses between a judge and the process of a candidate; see also src/runner/wire.rs."""

from __future__ import annotations

import marshal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testgrad._testgrad import _is_sound

FUZZ = Path(__file__).parent.parent / "benches" / "fuzz_wire.py"


@pytest.mark.parametrize(
    "value",
    [
        (),
        (None, True, -1, 10**40, 1.5, 1j, "a", "\ud800", b"x", ...),
        ([1, [2, (3,)]], {"a": {1, 2}, (1, frozenset({2})): None}),
        (StopIteration, "object", 1),
    ],
)
def test_plain_data_passes(value: Any) -> None:
    assert _is_sound(marshal.dumps(value, 2))


@pytest.mark.parametrize(
    "message",
    [
        marshal.dumps(1, 2),
        marshal.dumps((compile("1", "", "eval"),), 2),
        marshal.dumps((["a"] * 2,), 4),
        b"(\x01\0\0\0",
        b"",
    ],
)
def test_what_is_more_or_less_does_not(message: bytes) -> None:
    assert not _is_sound(message)


def test_what_may_pass_is_read_without_harm() -> None:
    done = subprocess.run(
        [sys.executable, str(FUZZ), "--seconds", "2", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "plain data all the same" in done.stdout
