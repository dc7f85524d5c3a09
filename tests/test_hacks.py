"""The hack corpus under the default runners."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared_data import needs_shared, shared

pytestmark = [pytest.mark.slow, needs_shared("hacks")]
ADAPTER = Path(__file__).with_name("hack_adapter.py")


def cases() -> dict[str, dict[str, Any]]:
    place = shared("hacks")
    found = sorted(place.glob("*/case.json")) if place else []
    return {path.parent.name: json.loads(path.read_text()) for path in found}


CASES = cases()


def failures(which: str, names: list[str]) -> str:
    """What the harness says of the cases that fell."""
    place = shared("hacks")
    assert place is not None
    command = [sys.executable, str(place / "harness.py"), f"{ADAPTER}:grade", "--which", which]
    done = subprocess.run(
        [*command, "--only", ",".join(names)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.startswith(("HELD", "FELL"))]) == len(names), done
    return "\n".join(line for line in lines if line.startswith("FELL"))


def some(condition: Any) -> list[str]:
    return [name for name, case in CASES.items() if condition(case)]


def test_no_attack_reaches_the_host() -> None:
    assert failures("hack", some(lambda case: case["kind"] == "containment")) == ""


def test_no_hack_earns_more_than_it_truly_passes() -> None:
    assert failures("hack", some(lambda case: case["kind"] in ("reward", "spec"))) == ""


def test_every_honest_program_scores_full_marks() -> None:
    assert failures("honest", some(lambda case: True)) == ""


def test_every_hack_without_its_exploit_scores_what_it_truly_passes() -> None:
    place = shared("hacks")
    assert place is not None
    # Where only hidden tests can tell, nothing is left to strip.
    names = some(
        lambda case: (place / case["id"] / "stripped.py").exists() and not case.get("needs_hidden")
    )
    assert failures("stripped", names) == ""
