"""Repair many programs at a time: one `AgentTestLoop` with a `RepairAgent` for each.

What is shown while it runs, and after, is not done here; a `Watcher` is told.
"""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal, Protocol

from testgrad import (
    AgentTestLoop,
    Binary,
    Curriculum,
    FeedbackEntry,
    Gated,
    History,
    Limits,
    MultiSignal,
    NoVerdict,
    PassRate,
    Progression,
    PytestRunner,
    SeverityWeighted,
)
from testgrad.agents import RepairAgent, SearchExhausted

Strategy = Binary | Curriculum | Gated | MultiSignal | PassRate | Progression | SeverityWeighted
Status = Literal["repaired", "not repaired", "passes as it is", "no verdict", "interrupted"]

STRATEGIES: Mapping[str, Callable[[], Strategy]] = {
    "binary": Binary,
    "pass_rate": PassRate,
    "severity_weighted": SeverityWeighted,
    "progression": Progression,
    "multi_signal": MultiSignal,
    "gated": Gated,
    "curriculum": Curriculum,
}


@dataclass(frozen=True)
class Case:
    """A broken program and the tests that judge it.

    `original` is the program before it was broken, if that is known. The agent never sees it, nor
    the `defect`, which says in words what was broken.
    """

    name: str
    broken: str
    tests: Mapping[str, str]
    module: str = "solution"
    original: str | None = None
    defect: str = ""


@dataclass(frozen=True)
class Options:
    """How to search: by which strategy, how often, how many programs at a time.

    The default strategy takes no time into account, so equal seeds give equal runs.
    """

    max_iterations: int = 100
    jobs: int = 2
    seed: int = 0
    timeout_s: float = 5.0
    strategy: str = "severity_weighted"


@dataclass(frozen=True)
class Repair:
    """What became of a case: every iteration, and how it ended."""

    case: Case
    entries: tuple[FeedbackEntry, ...]
    status: Status
    elapsed_s: float
    error: str = ""

    @property
    def rewards(self) -> tuple[float, ...]:
        """The total of each iteration."""
        return tuple(entry.reward.total for entry in self.entries)

    @property
    def answer(self) -> str:
        """The best program of all iterations, the first of equals."""
        best = max(self.entries, key=lambda entry: entry.reward.total, default=None)
        return self.case.broken if best is None else best.submission.code

    def defect_diff(self, context: int = 0) -> tuple[str, ...]:
        """Lines of a unified diff: what was broken. Empty when the original is not known."""
        return _diff(self.case.original or self.case.broken, self.case.broken, context)

    def repair_diff(self, context: int = 0) -> tuple[str, ...]:
        """Lines of a unified diff: what the agent changed."""
        return _diff(self.case.broken, self.answer, context)


class Watcher(Protocol):
    """Is told how the repairs go, from several threads."""

    def started(self, case: Case) -> None:
        """Hear that a case has its turn."""

    def iterated(self, case: Case, entry: FeedbackEntry) -> None:
        """Hear that a case has one more iteration."""

    def finished(self, repair: Repair) -> None:
        """Hear that a case has ended."""


def repair_all(
    cases: Sequence[Case], options: Options, watcher: Watcher
) -> tuple[list[Repair], bool]:
    """Repair each case, `options.jobs` at a time; one that breaks does not stop the others.

    Returns: the repairs in the order of the cases, and whether Ctrl-C cut them short. Cases that
    had not begun by then are left out.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(_repair, case, options, watcher, stop) for case in cases]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            for future in futures:
                future.cancel()
    return [future.result() for future in futures if not future.cancelled()], stop.is_set()


def _repair(case: Case, options: Options, watcher: Watcher, stop: threading.Event) -> Repair:
    entries: list[FeedbackEntry] = []

    def note(entry: FeedbackEntry) -> None:
        entries.append(entry)
        watcher.iterated(case, entry)

    def is_stopped(_: History) -> bool:
        return stop.is_set()

    watcher.started(case)
    started = time.perf_counter()
    error = ""
    try:
        loop = AgentTestLoop(
            PytestRunner(
                case.tests,
                module=case.module,
                isolation="none",  # edits of our own do not cheat
                limits=Limits(timeout_s=options.timeout_s),
            ),
            RepairAgent(case.broken, seed=options.seed),
            max_iterations=options.max_iterations,
            strategy=STRATEGIES[options.strategy](),
            stop_when=is_stopped,
            on_iteration=note,
        )
        loop.run(case.name)
    except SearchExhausted:
        pass
    except NoVerdict as failure:
        error = str(failure)
    except Exception as failure:  # one case's failure, whatever it is, must not lose the others
        error = f"{type(failure).__name__}: {failure}"
    repair = Repair(
        case,
        tuple(entries),
        _status(entries, error, stop),
        time.perf_counter() - started,
        error,
    )
    watcher.finished(repair)
    return repair


def _status(entries: Sequence[FeedbackEntry], error: str, stop: threading.Event) -> Status:
    if error:
        return "no verdict"
    if entries and entries[-1].suite_result.all_passed:
        return "passes as it is" if len(entries) == 1 else "repaired"
    return "interrupted" if stop.is_set() else "not repaired"


def _diff(before: str, after: str, context: int) -> tuple[str, ...]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
    return tuple(lines)[2:]
