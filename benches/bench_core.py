"""What the core costs, as ratios measured in one run: `make bench`.

Each pair does the same work. The slow side is the plain-Python reference that the tests use as
their oracle (frozen dataclasses), or numpy code written for the purpose. A bound beside a ratio is
what we promise.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import testgrad as tg
from testgrad import _testgrad

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import reference as ref  # noqa: E402

ROLLOUTS, TESTS = 10_000, 100
WEIGHTS = (0.35, 0.25, 0.20, 0.10, 0.10)


def best_of(function: Callable[[], object], *, repeat: int = 7, number: int = 1) -> float:
    """The least time of one call, in seconds."""
    times = []
    for _ in range(repeat):
        gc.collect()
        gc.disable()
        began = time.perf_counter()
        for _ in range(number):
            function()
        times.append((time.perf_counter() - began) / number)
        gc.enable()
    return min(times)


def statuses(n: int) -> list[str]:
    return [("passed", "passed", "failed", "passed", "error", "skipped")[i % 6] for i in range(n)]


def our_tests(n: int) -> list[tg.TestResult]:
    return [
        tg.TestResult(f"tests/test_a.py::test_{i}", status, duration_ms=0.1 * i)
        for i, status in enumerate(statuses(n))
    ]


def reference_tests(n: int) -> list[ref.TestResult]:
    return [
        ref.TestResult(f"tests/test_a.py::test_{i}", status, duration_ms=0.1 * i)
        for i, status in enumerate(statuses(n))
    ]


Row = tuple[str, float, str]


def signal() -> list[Row]:
    """One reward signal of a 100-test suite."""
    ours, theirs = tg.SuiteResult(our_tests(100)), ref.SuiteResult(tuple(reference_tests(100)))
    fast = best_of(lambda: tg.compute_reward_signal(ours), number=20_000)
    slow = best_of(lambda: ref.compute_reward_signal(theirs), number=300)
    return [("compute_reward_signal, 100 tests: reference / ours", slow / fast, ">= 20")]


def build() -> list[Row]:
    """A 1,000-test suite from Python."""
    names = [f"tests/test_a.py::test_{i}" for i in range(1000)]
    ours_passed, theirs_passed = tg.TestStatus.PASSED, "passed"

    def fast() -> object:
        make = tg.TestResult
        return tg.SuiteResult([make(name, ours_passed, duration_ms=1.5) for name in names])

    def slow() -> object:
        make = ref.TestResult
        return ref.SuiteResult(
            tuple([make(name, theirs_passed, duration_ms=1.5) for name in names])
        )

    ratio = best_of(slow, number=20) / best_of(fast, number=20)
    return [("building a 1,000-test suite: frozen dataclasses / ours", ratio, "> 1")]


def per_row(status: np.ndarray, severity: np.ndarray, duration: np.ndarray) -> np.ndarray:
    """Numpy within a row, Python over the rows."""
    totals = np.empty(len(status))
    for row in range(len(status)):
        codes = status[row]
        active = codes != 3
        passed = codes == 0
        n = np.count_nonzero(active)
        pass_rate = np.count_nonzero(passed) / n if n else 0.0
        weight = severity[active].sum()
        score = severity[passed].sum() / weight if weight else 0.0
        speed = np.exp(-duration[row].sum() / 1000.0)
        totals[row] = np.dot(WEIGHTS, (pass_rate, score, pass_rate, 0.0, speed))
    return totals


def vectorised(status: np.ndarray, severity: np.ndarray, duration: np.ndarray) -> np.ndarray:
    """The same by hand over whole arrays."""
    passed = status == 0
    active = status != 3
    n = np.count_nonzero(active, axis=1)
    pass_rate = np.count_nonzero(passed, axis=1) / np.maximum(n, 1)
    weights = severity.astype(np.float32)
    score = (passed @ weights) / np.maximum(active @ weights, 1)
    speed = np.exp(-duration.sum(axis=1) / 1000.0)
    zero = np.zeros(len(status))
    return np.stack([pass_rate, score, pass_rate, zero, speed], axis=1) @ np.array(WEIGHTS)


def arrays() -> list[Row]:
    """10,000 rollouts of 100 tests."""
    rng = np.random.default_rng(0)
    status = rng.integers(0, 4, (ROLLOUTS, TESTS), dtype=np.uint8)
    severity = rng.integers(1, 4, TESTS, dtype=np.uint8)
    duration = rng.random((ROLLOUTS, TESTS)) * 10.0

    def ours() -> np.ndarray:
        return tg.batch.rewards_from_arrays(status, severity=severity, duration_ms=duration)[1]

    np.testing.assert_allclose(ours(), per_row(status, severity, duration), atol=1e-9)
    np.testing.assert_allclose(ours(), vectorised(status, severity, duration), atol=1e-6)
    all_cores = best_of(ours, number=10)
    slow = best_of(lambda: per_row(status, severity, duration), repeat=3)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        one_core = best_of(ours, number=10)
        by_hand = best_of(lambda: vectorised(status, severity, duration), number=3)
    finally:
        os.sched_setaffinity(0, cores)
    return [
        ("arrays 10,000 x 100: numpy a row at a time / ours", slow / all_cores, ">= 100"),
        ("arrays 10,000 x 100, one thread: numpy by hand / ours", by_hand / one_core, ">= 2"),
        ("arrays 10,000 x 100: one thread / all", one_core / all_cores, ""),
    ]


def loop() -> list[Row]:
    """What the loop adds to its callables, in microseconds an iteration."""
    iterations = 20_000
    suite = tg.SuiteResult(our_tests(10))
    code = "x = 1"

    def agent(history: object, task: object) -> str:
        return code

    def reading_agent(history: tg.History, task: object) -> str:
        return code if not history or history[-1].reward.total >= 0 else ""

    def runner(code: str) -> tg.SuiteResult:
        return suite

    def bare() -> None:
        for _ in range(iterations):
            runner(agent(None, None))

    whole = tg.AgentTestLoop(runner, agent, iterations)
    added = (best_of(whole.run, repeat=5) - best_of(bare, repeat=5)) / iterations
    reads = tg.AgentTestLoop(runner, reading_agent, iterations)
    reading = best_of(reads.run, repeat=3) / iterations
    return [
        ("the loop adds, microseconds an iteration (10 tests)", added * 1e6, "< 5"),
        ("with an agent that reads history[-1], all in all", reading * 1e6, ""),
    ]


MEMORY = """
import gc, json, resource, sys
sys.path.insert(0, {tests!r})
iterations, tests = 10_000, 1_000
which = sys.argv[1]
names = [f"tests/test_module.py::TestClass::test_{{i}}" for i in range(tests)]
import testgrad as tg, reference as ref

def resident():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

make = tg.TestResult if which == "ours" else ref.TestResult
suite_of = tg.SuiteResult if which == "ours" else (lambda tests: ref.SuiteResult(tuple(tests)))
submission = tg.CodeSubmission("x = 1", 1)
reward = tg.RewardSignal(0, 0, 0, 0, 0, 0)
before = resident()
kept = []
for n in range(iterations):
    suite = suite_of([make(names[i], "passed", duration_ms=n + i / 7) for i in range(tests)])
    kept.append(tg.FeedbackEntry(n, submission, suite, reward, ()) if which == "ours" else suite)
history = tg.History(kept) if which == "ours" else kept
del kept
print(json.dumps(resident() - before))
"""


def memory() -> list[Row]:
    """A history of 10,000 suites of 1,000 tests; the dataclasses share their names."""

    def measure(which: str) -> int:
        script = MEMORY.format(tests=str(ROOT / "tests"))
        out = subprocess.run(
            [sys.executable, "-c", script, which], check=True, capture_output=True, text=True
        )
        return int(json.loads(out.stdout))

    return [
        ("history memory: ours / frozen dataclasses", measure("ours") / measure("theirs"), "< 0.4")
    ]


def imports() -> list[Row]:
    """What `import testgrad` adds to `import numpy`, in milliseconds."""
    script = "import time,numpy;t=time.perf_counter();import testgrad;print(time.perf_counter()-t)"
    times = [
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout)
        for _ in range(7)
    ]
    return [("import testgrad after numpy, milliseconds", statistics.median(times) * 1e3, "<= 15")]


def holds(value: float, bound: str) -> bool:
    """Whether a value keeps its bound, such as `>= 20`."""
    if not bound:
        return True
    how, limit = bound.split()
    number = float(limit)
    kept = {">=": value >= number, ">": value > number, "<": value < number, "<=": value <= number}
    return kept[how]


def main() -> int:
    if _testgrad.DEBUG_BUILD:
        print(
            "this is a debug build; run `make bench`, which builds an optimised one",
            file=sys.stderr,
        )
        return 2
    results, missed = {}, []
    for part in (signal, build, arrays, loop, memory, imports):
        for name, value, bound in part():
            print(f"{name:<58} {value:9.2f}   {bound}", flush=True)
            results[name] = {"value": value, "bound": bound}
            if not holds(value, bound):
                missed.append(name)
    (ROOT / "benches" / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    for name in missed:
        print(f"missed: {name}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
