"""What the subcommands share: words to people, the error of wrong usage, types of arguments."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # At run time this class takes no parameters.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


class UsageError(Exception):
    """An argument that cannot be used; says which and why."""

    @classmethod
    def of(cls, error: Exception) -> UsageError:
        """Return the error of a file, or of what is in it, as one of usage."""
        if isinstance(error, OSError) and error.strerror and error.filename is not None:
            return cls(f"{error.filename}: {error.strerror.lower()}")
        return cls(str(error))


def warn(message: str) -> None:
    """Say it on standard error."""
    sys.stderr.write(f"testgrad: {message}\n")


def names(text: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def not_below(least: int) -> Callable[[str], int]:
    """Return an argument type: a whole number of at least this."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return number

    return parse


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Return an argument type: a finite number of this kind above 0."""

    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(0)
        if not math.isfinite(number) or number <= 0:
            word = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r} is not a {word} above 0")
        return number

    return parse
