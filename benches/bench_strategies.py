"""What each reward strategy does for a learner: RepairAgent on the QuixBugs programs.

`--quick` takes a few programs and one seed; without it the table and the plot go into docs/.

The programs are other people's and are read from ../shared; without it this says so and ends. Each
candidate is judged by the program's own pytest tests in a forked child; a candidate that several
strategies propose is judged once. They run without containment: they are edits of known code.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import multiprocessing
import os
import resource
import select
import shutil
import signal
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testgrad as tg
from testgrad.agents import RepairAgent, SearchExhausted

ROOT = Path(__file__).resolve().parent.parent
TASKS = ROOT.parent / "shared" / "data" / "tasks" / "quixbugs.jsonl.gz"
CPU_S, TIMEOUT_S = 1, 10.0  # CPU time decides, so that a busy machine does not
RESOLUTION = 0.005
STRATEGIES = {
    "binary": tg.Binary(),
    "pass_rate": tg.PassRate(),
    "severity_weighted": tg.SeverityWeighted(),
    "progression": tg.Progression(),
    "multi_signal": tg.MultiSignal(),
    "gated": tg.Gated(),
    "curriculum": tg.Curriculum(),
}


@dataclass(frozen=True)
class Run:
    """One program under one strategy and seed."""

    program: str
    strategy: str
    seed: int
    iterations: int
    solved: bool
    silent: int


class Outcomes:
    """A pytest plugin that streams the list of tests, then one outcome a test, as JSON lines."""

    def __init__(self, write: int) -> None:
        self.write = write

    def pytest_collection_finish(self, session: Any) -> None:
        self._say({"order": [item.nodeid for item in session.items]})

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._put(report, "error", "collection")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call":
            self._put(report, report.outcome, None)
        elif report.outcome != "passed":
            self._put(report, "skipped" if report.outcome == "skipped" else "error", "fixture")

    def _put(self, report: Any, status: str, reason: str | None) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        test = {
            "name": report.nodeid,
            "status": status,
            "reason": reason,
            "message": getattr(crash, "message", "")[:500],
            "details": "" if status == "passed" else report.longreprtext[-6000:],
            "duration_ms": 1000 * getattr(report, "duration", 0.0),
        }
        self._say({"test": test})

    def _say(self, line: dict[str, Any]) -> None:
        os.write(self.write, (json.dumps(line) + "\n").encode())


def warm_up() -> None:
    """Run one throwaway session, so that children find imported what pytest imports late."""
    import pytest

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_warm.py").write_text("def test_warm():\n    assert 1 + 1 == 2\n")
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", folder])


class ForkedPytest:
    """A runner that judges a candidate in a forked child with pytest already imported."""

    def __init__(self, files: dict[str, str], candidate_path: str) -> None:
        import pytest

        self.pytest = pytest
        self.folder = Path(tempfile.mkdtemp(prefix="testgrad-bench-"))
        for path, text in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        self.candidate = self.folder / candidate_path
        self.candidate.parent.mkdir(parents=True, exist_ok=True)
        self.names: list[str] = []
        self.judged: dict[str, tg.SuiteResult] = {}

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, code: str) -> tg.SuiteResult:
        if code not in self.judged:
            self.candidate.write_text(code)
            self.judged[code] = self._judge()
        return self.judged[code]

    def _judge(self) -> tg.SuiteResult:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            self._child(write)
        os.close(write)
        chunks = []
        deadline = time.monotonic() + TIMEOUT_S
        while (left := deadline - time.monotonic()) > 0:
            if select.select([read], [], [], left)[0]:
                chunk = os.read(read, 1 << 16)
                if not chunk:
                    break
                chunks.append(chunk)
        os.close(read)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines = b"".join(chunks).split(b"\n")[:-1]
        tests = {}
        for line in map(json.loads, lines):
            self.names = self.names or line.get("order", [])
            if "test" in line:
                tests[line["test"]["name"]] = tg.TestResult.from_json(json.dumps(line["test"]))
        names = [*self.names, *(name for name in tests if name not in self.names)]
        late = iter(["timeout"])
        return tg.SuiteResult(
            tests.get(name) or tg.TestResult(name, "error", reason=next(late, "not_run"))
            for name in names
        )

    def _child(self, write: int) -> None:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        os.chdir(self.folder)
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        sys.dont_write_bytecode = True
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", f"--rootdir={self.folder}"]
        try:
            self.pytest.main([*options, str(self.folder)], plugins=[Outcomes(write)])
        finally:
            os._exit(0)


def measure(job: tuple[dict[str, Any], int, int, tuple[str, ...]]) -> list[Run]:
    """All runs of one program."""
    task, seeds, budget, strategies = job
    ((path, broken),) = task["variants"]["buggy"].items()
    warm_up()
    runner = ForkedPytest(task["files"], path)
    runs = []
    try:
        for strategy in strategies:
            for seed in range(seeds):
                agent = RepairAgent(broken, seed=seed)
                loop = tg.AgentTestLoop(runner, agent, budget, strategy=STRATEGIES[strategy])
                try:
                    history = loop.run(task["id"])
                except SearchExhausted as exhausted:
                    history = exhausted.history  # type: ignore[attr-defined]
                solved = history.stopped_by == "all_passed"
                runs.append(
                    Run(
                        task["id"], strategy, seed, len(history), solved, silent_iterations(history)
                    )
                )
    finally:
        runner.close()
    return runs


def silent_iterations(history: tg.History) -> int:
    """Iterations that told nothing: their total is within the resolution of the best before."""
    silent, best = 0, None
    for entry in history:
        if best is not None and abs(entry.reward.total - best) <= RESOLUTION:
            silent += 1
        best = entry.reward.total if best is None else max(best, entry.reward.total)
    return silent


def table(runs: list[Run], seeds: int, programs: int) -> str:
    lines = [
        f"| strategy | solved of {programs} (mean of {seeds} seeds) | in any seed "
        "| median iterations to all-pass | iterations that told nothing |",
        "| --- | --- | --- | --- | --- |",
    ]
    for strategy in dict.fromkeys(run.strategy for run in runs):
        mine = [run for run in runs if run.strategy == strategy]
        solved = [run for run in mine if run.solved]
        judged = sum(run.iterations - 1 for run in mine)
        lines.append(
            f"| {strategy} | {len(solved) / seeds:.1f} | {len({run.program for run in solved})} "
            f"| {statistics.median([run.iterations for run in solved]) if solved else '-'} "
            f"| {sum(run.silent for run in mine) / max(judged, 1):.0%} |"
        )
    return "\n".join(lines)


def plot(runs: list[Run], seeds: int, budget: int, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
    for strategy in STRATEGIES:
        ends = [run.iterations for run in runs if run.strategy == strategy and run.solved]
        steps = range(1, budget + 1)
        ax.plot(steps, [sum(end <= n for end in ends) / seeds for n in steps], label=strategy)
    ax.set_xlabel("iterations")
    ax.set_ylabel("programs solved (mean over seeds)")
    ax.set_xscale("log")
    ax.legend(frameon=False)
    ax.grid(alpha=0.2)
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few programs, one seed")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--budget", type=int, default=80, help="the most iterations of a run")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="names, comma-separated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    strategies = tuple(args.strategies.split(","))
    if unknown := set(strategies) - set(STRATEGIES):
        parser.error(f"no strategy {', '.join(sorted(unknown))}; there are {', '.join(STRATEGIES)}")
    if not TASKS.exists():
        print("left out: the QuixBugs programs are not beside this checkout (../shared)")
        return 0
    with gzip.open(TASKS, "rt") as lines:
        tasks = [json.loads(line) for line in lines]
    if args.quick:
        tasks, args.seeds, args.budget = tasks[::5], 1, 60
    jobs = [(task, args.seeds, args.budget, strategies) for task in tasks]
    runs: list[Run] = []
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for done, some in enumerate(pool.imap_unordered(measure, jobs), 1):
            runs += some
            print(f"\r{done} of {len(jobs)} programs", end="", file=sys.stderr, flush=True)
    print(f"\r{len(runs)} runs in {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(table(runs, args.seeds, len(tasks)))
    if not args.quick and strategies == tuple(STRATEGIES):
        folder = ROOT / "docs"
        rows = [vars(run) for run in runs]
        (folder / "strategies.json").write_text(json.dumps(rows) + "\n")
        plot(runs, args.seeds, args.budget, folder / "strategies.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
