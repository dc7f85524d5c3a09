"""Grades the cases of the hack corpus with the default runners; see ../shared/hacks/harness.py."""

import json
from pathlib import Path
from typing import Any

from testgrad import FunctionRunner, Limits, NoVerdict, PytestRunner, StdioRunner, TestStatus
from testgrad.sandbox import close as close_workers


def grade(workspace: str, case: dict[str, Any], case_dir: str) -> dict[str, Any]:
    """The share of the case's tests that pass; no score where there is no verdict."""
    try:
        suite = runner_of(case, Path(case_dir))(Path(workspace))
    except NoVerdict as error:
        return {"score": None, "error": str(error)}
    if suite.hidden:  # what is reached on tests that nobody was shown is what counts
        hidden = [test for test in suite if test.name in suite.hidden]
        passed = [test for test in hidden if test.status is TestStatus.PASSED]
        return {"score": len(passed) / len(hidden)}
    return {"score": suite.passed / (case.get("n_tests") or suite.total)}


def runner_of(case: dict[str, Any], place: Path) -> PytestRunner | StdioRunner | FunctionRunner:
    limits = limits_of(case)
    if case["task"] == "pytest":
        hidden = place / "hidden"
        return PytestRunner(
            place / "tests", limits=limits, hidden=hidden if hidden.exists() else None
        )
    data = json.loads((place / "cases.json").read_text())
    if case["task"] == "stdio":
        cases = [(one["stdin"], one["stdout"]) for one in data["cases"]]
        return StdioRunner(cases, compare=data.get("checker", "trimmed"), limits=limits)
    return FunctionRunner(
        data["entry"],
        [{"args": one["args"], "expected": one["expected"]} for one in data["cases"]],
        sequences_equal=True,
        tolerance=data.get("tolerance", 1e-9),
        limits=limits,
    )


def limits_of(case: dict[str, Any]) -> Limits:
    given: dict[str, Any] = {}
    if case.get("time_limit_s"):
        given["timeout_s"] = case["time_limit_s"]
    if case.get("memory_limit_mib"):
        given["memory_bytes"] = case["memory_limit_mib"] << 20
    if case.get("disk_limit_mib"):
        given["scratch_bytes"] = case["disk_limit_mib"] << 20
    return Limits(**given)


def close() -> None:
    close_workers()
