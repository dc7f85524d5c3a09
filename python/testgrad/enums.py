"""Python's own enums for outcomes; the Rust core maps to and from their members."""

from __future__ import annotations

from enum import Enum

__all__ = ["TestSeverity", "TestStatus"]


class TestStatus(Enum):
    """What one test did.

    A member's value or name, in any case, is accepted too: `TestStatus("passed")`.
    """

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"

    @classmethod
    def _missing_(cls, value: object) -> TestStatus | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


class TestSeverity(Enum):
    """How much a test matters: its value is its weight in the severity score.

    A member's name, in any case, is accepted too: `TestSeverity(3)`, `TestSeverity("critical")`.
    """

    CRITICAL = 3
    MAJOR = 2
    MINOR = 1

    @classmethod
    def _missing_(cls, value: object) -> TestSeverity | None:
        return cls.__members__.get(value.upper()) if isinstance(value, str) else None


# pytest collects classes whose names begin with Test, in users' files too, unless they say no.
TestStatus.__test__ = False  # type: ignore[attr-defined]
TestSeverity.__test__ = False  # type: ignore[attr-defined]
