"""What `testgrad demo` prints: live progress, then each program with its curve and its diffs.

Plain text where the stream is no terminal; no colour where `NO_COLOR` is set. Nothing is run here.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TextIO

from testgrad import FeedbackEntry
from testgrad.demo.repair import Case, Repair

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = " .:-=+*%#"

_GREEN, _RED, _YELLOW, _BOLD, _DIM = "32", "31", "33", "1", "2"
_STATUS_COLOURS = {"repaired": _GREEN, "not repaired": _RED, "no verdict": _RED}
_CURVE_WIDTH = 60
_CURVE_HEIGHT = 3
_DIFF_LINES = 6


def squeeze(values: Sequence[float], width: int) -> list[float]:
    """Return at most `width` values: the highest of each of as many even stretches."""
    if len(values) <= width:
        return list(values)
    edges = [len(values) * column // width for column in range(width + 1)]
    return [max(values[start:end]) for start, end in pairwise(edges)]


def curve_rows(
    values: Sequence[float], *, width: int = _CURVE_WIDTH, height: int = 1, blocks: str = BLOCKS
) -> list[str]:
    """Draw values from 0 to 1 as a bar chart of `height` rows of text, the top row first.

    Values outside are drawn at the edge; a value above 0 always shows.
    """
    steps = len(blocks) - 1
    levels = [
        max(round(min(max(value, 0.0), 1.0) * height * steps), 1 if value > 0 else 0)
        for value in squeeze(values, width)
    ]
    return [
        "".join(blocks[min(max(level - row * steps, 0), steps)] for level in levels)
        for row in reversed(range(height))
    ]


class Show:
    """Prints how the repairs go; a `Watcher`. On a terminal the running ones stay at the bottom."""

    def __init__(self, stream: TextIO, *, total: int) -> None:
        self._stream = stream
        self._total = total
        self._is_live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._has_colour = self._is_live and not os.environ.get("NO_COLOR")
        self._blocks = BLOCKS if _can_print(stream, BLOCKS) else ASCII_BLOCKS
        self._lock = threading.Lock()
        self._running: dict[str, list[FeedbackEntry]] = {}
        self._drawn_rows = 0
        self._finished = 0

    def started(self, case: Case) -> None:
        """Show a line for the case from now on."""
        with self._lock:
            self._running[case.name] = []
            self._redraw()

    def iterated(self, case: Case, entry: FeedbackEntry) -> None:
        """Bring the case's line up to date."""
        with self._lock:
            self._running[case.name].append(entry)
            self._redraw()

    def finished(self, repair: Repair) -> None:
        """Turn the case's line into one that stays."""
        with self._lock:
            self._running.pop(repair.case.name, None)
            self._finished += 1
            self._redraw(self._result_line(repair))

    def line(self, text: str = "") -> None:
        """Print a line as it is."""
        with self._lock:
            self._redraw(text)

    def details(self, repair: Repair) -> None:
        """Print the case's curve, what was broken, and what the agent changed."""
        self.line()
        self.line(self._result_line(repair))
        for row, label in zip(self._curve(repair), ("1.0", "   ", "0.0"), strict=True):
            self.line(f"    {self._paint(label, _DIM)} {row}")
        defect = repair.defect_diff()
        if defect:
            self.line(f"    broken   {repair.case.defect}")
            self._diff(defect)
        change = repair.repair_diff()
        self.line("    changed" if change else "    changed  nothing")
        self._diff(change)

    def _curve(self, repair: Repair) -> list[str]:
        rows = curve_rows(repair.rewards, height=_CURVE_HEIGHT, blocks=self._blocks)
        return [self._paint(row, _STATUS_COLOURS.get(repair.status, _YELLOW)) for row in rows]

    def _diff(self, lines: Iterable[str]) -> None:
        changes = [line for line in lines if line[0] in "+-" and line[1:].strip()]
        for line in changes[:_DIFF_LINES]:
            self.line("      " + self._paint(line, _GREEN if line[0] == "+" else _RED))
        if len(changes) > _DIFF_LINES:
            self.line(f"      and {len(changes) - _DIFF_LINES} lines more")

    def _result_line(self, repair: Repair) -> str:
        status = self._paint(f"{repair.status:<15}", _STATUS_COLOURS.get(repair.status, _YELLOW))
        name = self._paint(f"{repair.case.name:<12}", _BOLD)
        if repair.error:
            return f"{name} {status} {repair.error.splitlines()[0]}"
        if not repair.entries:
            return f"{name} {status}"
        first, last = repair.rewards[0], max(repair.rewards)
        return (
            f"{name} {status} {len(repair.entries):>4} iterations {repair.elapsed_s:>6.1f} s"
            f"   reward {first:.2f} to {last:.2f}"
        )

    def _running_line(self, name: str, entries: Sequence[FeedbackEntry]) -> str:
        if not entries:
            return f"{name:<12} begins"
        suite = entries[-1].suite_result
        [curve] = curve_rows([entry.reward.total for entry in entries[-30:]], blocks=self._blocks)
        return f"{name:<12} {len(entries):>4} {curve} {suite.passed} of {suite.total} tests pass"

    def _redraw(self, *lasting: str) -> None:
        if not self._is_live:
            for line in lasting:
                print(line, file=self._stream, flush=True)
            return
        columns = shutil.get_terminal_size().columns - 1
        rows = [self._running_line(*item)[:columns] for item in self._running.items()]
        if rows:
            rows.append(f"{self._finished} of {self._total} done"[:columns])
        up = f"\x1b[{self._drawn_rows}F" if self._drawn_rows else ""
        self._drawn_rows = len(rows)
        text = "".join(f"{row}\n" for row in (*lasting, *rows))
        self._stream.write(f"{up}\x1b[J{text}" if up else text)
        self._stream.flush()

    def _paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._has_colour else text


def _can_print(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
