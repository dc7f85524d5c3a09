"""Running candidates: from code, through its tests, to a suite."""

from ._testgrad import PytestRunner, run_pytest
from .errors import NoVerdict

__all__ = ["NoVerdict", "PytestRunner", "run_pytest"]
