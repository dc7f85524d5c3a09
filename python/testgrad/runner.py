"""Running candidates: from code, through its tests, to a suite."""

import atexit

from ._testgrad import (
    CommandRunner,
    FunctionRunner,
    Limits,
    PytestRunner,
    StdioRunner,
    close,
    run_many,
    run_pytest,
)
from .errors import NoVerdict

__all__ = [
    "CommandRunner",
    "FunctionRunner",
    "Limits",
    "NoVerdict",
    "PytestRunner",
    "StdioRunner",
    "close",
    "run_many",
    "run_pytest",
]

atexit.register(close)
