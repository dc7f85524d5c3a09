"""The demo: real programs, broken and repaired by a `RepairAgent` that learns from real tests.

`run` is all of `testgrad demo` but its options. The programs are in `programs`, the searching in
`repair`, what is printed and written in `show`, `page` and `figure`.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from testgrad.demo.figure import write_figure
from testgrad.demo.page import page_html
from testgrad.demo.repair import STRATEGIES, Case, Options, Repair, repair_all
from testgrad.demo.show import Show
from testgrad.demo.tasks import library_cases, task_cases
from testgrad.errors import TaskError

__all__ = [
    "STRATEGIES",
    "Case",
    "Options",
    "Repair",
    "TaskError",
    "library_cases",
    "run",
    "task_cases",
]

ENOUGH = 10


def run(
    cases: Sequence[Case], options: Options, *, out: Path, stream: TextIO, enough: int | None = None
) -> tuple[dict[str, object], int]:
    """Repair the cases, print how it goes to `stream`, write the page and the figure to `out`.

    `enough` is how many repairs are a success; None means every case that fails at first.

    Returns: the results as plain data, and the exit code: 0 for success, 1 for too few repairs,
    3 for too few where those without a verdict could have made the difference, 130 after Ctrl-C.
    """
    started = time.perf_counter()
    show = Show(stream, total=len(cases))
    repairs, is_interrupted = repair_all(cases, options, show)
    elapsed_s = time.perf_counter() - started
    for repair in repairs:
        show.details(repair)
    repaired = sum(repair.status == "repaired" for repair in repairs)
    headline = f"{repaired} of {len(cases)} programs repaired in {elapsed_s:.0f} s"
    show.line()
    show.line(headline)
    for line in _write(repairs, options, out, headline):
        show.line(line)
    code = 130 if is_interrupted else _exit_code(repairs, enough)
    return _data(repairs, options, elapsed_s), code


def _write(repairs: Sequence[Repair], options: Options, out: Path, headline: str) -> list[str]:
    out.mkdir(parents=True, exist_ok=True)
    page = out / "index.html"
    note = (
        f"{headline}; Python {platform.python_version()}, strategy {options.strategy}, "
        f"seed {options.seed}, {options.jobs} at a time"
    )
    page.write_text(page_html(repairs, title="testgrad demo", note=note), encoding="utf-8")
    written = [f"page   {page}"]
    if repairs:
        figure = out / "curves.png"
        try:
            write_figure(repairs, figure)
            written.append(f"figure {figure}")
        except ImportError:
            written.append("no figure: matplotlib is missing (pip install 'testgrad[plot]')")
    return written


def _exit_code(repairs: Sequence[Repair], enough: int | None) -> int:
    counts = Counter(repair.status for repair in repairs)
    needed = len(repairs) - counts["passes as it is"] if enough is None else enough
    if counts["repaired"] >= needed:
        return 0
    return 3 if counts["repaired"] + counts["no verdict"] >= needed else 1


def _data(repairs: Sequence[Repair], options: Options, elapsed_s: float) -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "seed": options.seed,
        "strategy": options.strategy,
        "elapsed_s": round(elapsed_s, 3),
        "repaired": sum(repair.status == "repaired" for repair in repairs),
        "programs": [_repair_data(repair) for repair in repairs],
    }


def _repair_data(repair: Repair) -> dict[str, object]:
    return {
        "name": repair.case.name,
        "status": repair.status,
        "iterations": len(repair.entries),
        "elapsed_s": round(repair.elapsed_s, 3),
        "rewards": repair.rewards,
        "defect": repair.case.defect,
        "defect_diff": repair.defect_diff(),
        "repair_diff": repair.repair_diff(),
        "failing_at_first": [name for name, _ in repair.entries[0].failing_tests]
        if repair.entries
        else [],
        "error": repair.error or None,
    }
