"""Whether what tests judge with is still what it was, where a candidate shares their process.

It is looked at before any candidate comes and again after the last test, and a few canaries, which
must fail, are tried. A candidate that undoes its changes, or changes this module, is not caught:
only a process of its own keeps it away. Standard library and pytest only, Python 3.8 or later.
"""

from __future__ import annotations

import builtins
import importlib
import math
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST = 10
# Classes and modules of which every function is looked at.
WATCHED = (
    *("builtins", "math", "operator", "statistics", "time", "pytest", "unittest.case:TestCase"),
    *("_pytest.runner", "_pytest.reports:TestReport", "_pytest.reports:CollectReport"),
    *("_pytest.assertion", "_pytest.assertion.util", "_pytest.assertion.rewrite"),
    *("_pytest.outcomes", "_pytest.python:Function", "_pytest.python_api", "_pytest.raises"),
    *("_pytest.unittest:TestCaseFunction", "_pytest.main:Session", "pluggy._callers"),
    *("pluggy:HookCaller", "pluggy:PluginManager"),
)
# Tests themselves replace these and leave it at that.
OFTEN_REPLACED = frozenset({"input", "print", "open", "_", "sleep"})


class Integrity:
    """What there was at the start."""

    def __init__(self) -> None:
        self.known = {name: identity(value) for name, value in parts()}
        # Kept here because candidates replace functions.
        self._parts, self._identity, self._canaries = parts, identity, canaries
        self._suppress = suppress

    def broken(self) -> list[str]:
        """What is no longer what it was, and which canaries do not fail."""
        found = []
        for name, value in self._parts():
            if name in self.known and self._identity(value) != self.known[name]:
                found.append(f"{name} was replaced")
        found.extend(f"a test that must fail passes: {name}" for name in self._canaries())
        return found[:MOST]


def parts() -> Iterator[tuple[str, Any]]:
    """Whatever is looked at, by name."""
    for name in WATCHED:
        module, _, owner = name.partition(":")
        place = sys.modules.get(module)
        if owner:
            place = getattr(place, owner, None)
        for key, value in () if place is None else list(vars(place).items()):
            if key not in OFTEN_REPLACED and (callable(value) or isinstance(value, property)):
                yield f"{owner or module}.{key}", value


def identity(value: Any) -> tuple[int, ...]:
    """Which object it is; of a function also which code it runs."""
    function = getattr(value, "__func__", value)
    return id(value), id(getattr(function, "__code__", None))


def canaries() -> Iterator[str]:
    """The names of the canaries that live on: of what must fail, what does not."""
    for name, canary in CANARIES.items():
        with suppress(BaseException):
            if canary() is not False:
                yield name


def _asserts() -> None:
    assert math.pi == math.e


def _asserts_equal() -> None:
    importlib.import_module("unittest").TestCase().assertEqual(1, 2)  # noqa: PT009


def _raises() -> None:
    with importlib.import_module("pytest").raises(ValueError):
        pass


def _approx() -> bool:
    return bool(importlib.import_module("pytest").approx(1.0) == 2.0)


def _is_close() -> bool:
    return math.isclose(1.0, 2.0)


def _sorted() -> bool:
    return builtins.sorted([2, 1]) == [2, 1]


def _reports() -> bool:
    """A report of a call that has failed must say so."""
    runner = importlib.import_module("_pytest.runner")
    call = runner.CallInfo.from_call(_asserts, "call")
    return call.excinfo is None


CANARIES: dict[str, Callable[[], Any]] = {
    "assert math.pi == math.e": _asserts,
    "unittest.TestCase().assertEqual(1, 2)": _asserts_equal,
    "pytest.raises(ValueError) around nothing": _raises,
    "pytest.approx(1.0) == 2.0": _approx,
    "math.isclose(1.0, 2.0)": _is_close,
    "sorted([2, 1]) == [2, 1]": _sorted,
    "the call of a test that fails": _reports,
}
