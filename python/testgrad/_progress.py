"""The progress bar of a run: a line in a terminal, an element in a notebook, else plain lines."""

from __future__ import annotations

import html
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from ._testgrad import FeedbackEntry, History

_WIDTH = 24
_REDRAW_S = 0.05


class _Canvas(Protocol):
    def draw(self, text: str, share: float) -> None: ...

    def close(self) -> None: ...


class _Bar:
    """A line and how full the bar beside it is; drawn again at most every 50 milliseconds."""

    def __init__(self) -> None:
        self._text, self._share = "", 0.0
        self._drawn_at = float("-inf")
        self._closed = False
        self._canvas: _Canvas = _canvas()

    def _show(self, text: str, share: float, *, now: bool) -> None:
        self._text, self._share = text, share
        if now or time.monotonic() - self._drawn_at >= _REDRAW_S:
            self._draw()

    def _draw(self) -> None:
        if self._text:
            self._drawn_at = time.monotonic()
            self._canvas.draw(self._text, self._share)

    def close(self) -> None:
        """Show the last state and end the line; a second time does nothing."""
        if not self._closed:
            self._closed = True
            self._draw()
            self._canvas.close()


class Bar(_Bar):
    """Shows how far a run is: iterations of the most allowed, pass rate, best reward.

    Args:
        total: The most iterations there can be.
        done: Iterations that were done before (a resumed run).
    """

    def __init__(self, total: int, *, done: int = 0) -> None:
        super().__init__()
        self._total = total
        self._done = done
        self._best = float("-inf")

    def update(self, entry: FeedbackEntry) -> None:
        """Show one more finished iteration."""
        self._done = entry.iteration
        self._best = max(self._best, entry.reward.total)
        suite = entry.suite_result
        text = (
            f"{self._done}/{self._total} iterations, "
            f"{suite.passed} of {suite.total - suite.skipped} tests pass, "
            f"reward {entry.reward.total:.3f}, best {self._best:.3f}"
        )
        is_last = suite.all_passed or self._done >= self._total
        self._show(text, self._done / self._total, now=is_last)


class TasksBar(_Bar):
    """Shows how far many runs are: tasks that have ended, those that passed, iterations so far.

    Args:
        total: How many tasks there are.
    """

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total = total

    def update(self, histories: Sequence[History]) -> None:
        """Show the state of all runs."""
        ends = [history.stopped_by for history in histories]
        ended = sum(end not in (None, "interrupted") for end in ends)
        failed = f", {n} failed with an exception" if (n := ends.count("exception")) else ""
        iterations = sum(map(len, histories))
        passed = ends.count("all_passed")
        text = f"{ended}/{self._total} tasks, {passed} passed{failed}, {iterations} iterations"
        self._show(text, ended / self._total, now=ended == self._total)


class CandidatesBar(_Bar):
    """Shows how far a batch is: candidates judged, those that passed, those without a verdict.

    Args:
        total: How many candidates there are.
    """

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total = total

    def update(self, done: int, passed: int, failed: int) -> None:
        """Show the state of the batch."""
        without = f", {failed} without a verdict" if failed else ""
        text = f"{done}/{self._total} candidates, {passed} passed{without}"
        self._show(text, done / max(1, self._total), now=done == self._total)


class _Terminal:
    def draw(self, text: str, share: float) -> None:
        full = round(share * _WIDTH)
        bar = "█" * full + "░" * (_WIDTH - full)
        # A line that wraps could not be drawn over.
        line = f"{bar} {text}"[: _columns() - 1]
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\n")
        sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class _Lines:
    """For logs: a line each time a tenth more is done."""

    def __init__(self) -> None:
        self._tenths = -1
        self._last = self._said = ""

    def draw(self, text: str, share: float) -> None:
        tenths = int(share * 10)
        if tenths > self._tenths:
            self._tenths = tenths
            self._say(text)
        self._last = text

    def close(self) -> None:
        if self._last != self._said:
            self._say(self._last)

    def _say(self, text: str) -> None:
        self._said = text
        sys.stderr.write(f"testgrad: {text}\n")
        sys.stderr.flush()


class _Notebook:
    def __init__(self, display: Any, html_class: Any) -> None:
        self._html = html_class
        self._handle = display(self._html(""), display_id=True)

    def draw(self, text: str, share: float) -> None:
        self._handle.update(
            self._html(
                f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> '
                f"{html.escape(text)}"
            )
        )

    def close(self) -> None:
        pass


def _canvas() -> _Canvas:
    # A notebook has loaded IPython long before; it is never imported for its sake.
    if "IPython" in sys.modules:
        from IPython import get_ipython
        from IPython.display import HTML, display

        shell = get_ipython()
        if shell is not None and type(shell).__name__ == "ZMQInteractiveShell":
            return _Notebook(display, HTML)
    return _Terminal() if sys.stderr.isatty() else _Lines()
