"""`import testgrad` in fresh interpreters: what it loads, and what it costs."""

from __future__ import annotations

import statistics
import subprocess
import sys

import pytest

ROUNDS, RUNS = 3, 5
LIMIT_MS = 15.0

# Of these, none is needed before someone asks for what needs it.
OPTIONAL = [
    *("pytest", "_pytest", "pluggy", "coverage", "hypothesis"),
    *("matplotlib", "IPython", "ipykernel", "tqdm"),
    *("openai", "httpx", "pydantic", "torch", "ray", "trl", "verl", "verifiers", "gymnasium"),
    *("asyncio", "concurrent.futures", "multiprocessing", "subprocess", "sqlite3", "unittest"),
]


def fresh(code: str) -> str:
    """What code prints in a fresh interpreter, apart from the settings of this one."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that `import testgrad` loads."""
    code = "import sys; b = set(sys.modules); import testgrad; print(*set(sys.modules) - b)"
    return set(fresh(code).split())


@pytest.mark.parametrize("module", OPTIONAL)
def test_import_does_not_load(module: str, loaded: set[str]) -> None:
    assert module not in loaded


def test_import_loads_nothing_from_outside_but_numpy(loaded: set[str]) -> None:
    ours = {"testgrad", "numpy"}
    tops = {name.partition(".")[0] for name in loaded}
    assert tops - ours - set(sys.stdlib_module_names) == set()


def test_import_loads_no_part_that_has_to_be_asked_for(loaded: set[str]) -> None:
    later = {"agents", "demo", "cli", "plot", "_html", "_progress", "_agent_loop", "_worker"}
    later |= {"_values", "audit"}
    assert {
        name for name in loaded if name.split(".")[1:2] and name.split(".")[1] in later
    } == set()


def test_import_prints_nothing() -> None:
    assert fresh("import testgrad") == ""


def test_import_starts_no_thread() -> None:
    assert fresh("import testgrad, threading; print(threading.active_count())") == "1\n"


def test_every_public_name_is_there() -> None:
    missing = "import testgrad; print([n for n in testgrad.__all__ if not hasattr(testgrad, n)])"
    assert fresh(missing) == "[]\n"


def extra_ms() -> float:
    """What testgrad costs on top of numpy: the median of several fresh interpreters."""
    code = (
        "import time, numpy; began = time.perf_counter(); import testgrad;"
        "print((time.perf_counter() - began) * 1_000)"
    )
    return statistics.median(float(fresh(code)) for _ in range(RUNS))


def test_import_costs_at_most_15_ms_more_than_numpy() -> None:
    rounds = []
    for _ in range(ROUNDS):  # a busy machine may be slow once
        rounds.append(extra_ms())
        if rounds[-1] <= LIMIT_MS:
            break
    assert min(rounds) <= LIMIT_MS
