"""What a notebook shows: tables and an inline SVG curve. All that comes from tests is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ._testgrad import FeedbackEntry, History, SuiteResult, TestResult
from .enums import TestStatus

_WIDTH, _HEIGHT, _PAD = 480, 150, 26
_MOST_ROWS = 60
_MOST_POINTS = 240
_COLORS = {
    TestStatus.PASSED: "#1a7f37",
    TestStatus.FAILED: "#cf222e",
    TestStatus.ERROR: "#9a6700",
    TestStatus.SKIPPED: "#6e7781",
}


def curve_svg(entries: Sequence[FeedbackEntry]) -> str:
    """Pass rate and total reward over the iterations, as one inline SVG element."""
    if not entries:
        return ""
    # Of a long run every n-th iteration, counted from the last.
    last = entries[-1].iteration
    entries = entries[:: -math.ceil(len(entries) / _MOST_POINTS)][::-1]
    rates = [entry.suite_result.pass_rate for entry in entries]
    totals = [entry.reward.total for entry in entries]
    low, high = min(0.0, *totals), max(1.0, *totals)
    step = (_WIDTH - 2 * _PAD) / max(1, len(entries) - 1)

    def points(values: list[float]) -> str:
        return " ".join(
            f"{_PAD + i * step:.1f},"
            f"{_HEIGHT - _PAD - (v - low) / (high - low) * (_HEIGHT - 2 * _PAD):.1f}"
            for i, v in enumerate(values)
        )

    def line(values: list[float], color: str) -> str:
        shown = points(values if len(values) > 1 else values * 2)
        return f'<polyline points="{shown}" fill="none" stroke="{color}" stroke-width="2"/>'

    base = f"{_HEIGHT - _PAD}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="pass rate and reward by iteration" style="max-width:100%">'
        f'<line x1="{_PAD}" y1="{base}" x2="{_WIDTH - _PAD}" y2="{base}" stroke="#8884"/>'
        f'<line x1="{_PAD}" y1="{_PAD}" x2="{_WIDTH - _PAD}" y2="{_PAD}" stroke="#8884"/>'
        f"{line(rates, '#1a7f37')}{line(totals, '#0969da')}"
        '<g font-size="11" font-family="sans-serif" fill="currentColor">'
        f'<text x="2" y="{_PAD + 4}">{high:.1f}</text><text x="2" y="{base}">{low:.1f}</text>'
        f'<text x="{_PAD}" y="14"><tspan fill="#1a7f37">pass rate</tspan> '
        '<tspan fill="#0969da">reward</tspan></text>'
        f'<text x="{_WIDTH - _PAD}" y="{_HEIGHT - 8}" text-anchor="end">'
        f"iteration {last}</text></g></svg>"
    )


def history_html(history: History) -> str:
    """Show a run: how it ended, its curve, and a row for each iteration."""
    entries = list(history)
    best = history.best
    head = f"{len(entries)} iterations, {escape(history.stopped_by or 'under way')}"
    if best is not None:
        head += f", best reward {best.reward.total:.3f} in iteration {best.iteration}"
    if history.error is not None:
        head += f", {escape(_error_text(history.error))}"
    rows = [_iteration_row(entry) for entry in _ends(entries)]
    if len(entries) > _MOST_ROWS:
        hidden = len(entries) - _MOST_ROWS
        rows.insert(_MOST_ROWS // 2, f'<tr><td colspan="6">… {hidden} more …</td></tr>')
    names = ("iteration", "strategy", "tests", "pass rate", "reward", "first failing test")
    return f"<div><p>{head}</p>{curve_svg(entries)}{_table(names, rows)}</div>"


def suite_html(suite: SuiteResult) -> str:
    """Show a suite: its counts, what went wrong outside the tests, and a row for each test."""
    shown = sorted(suite, key=lambda test: not test.is_failing)[:_MOST_ROWS]
    rows = [_test_row(test) for test in shown]
    if len(suite) > len(rows):
        rows.append(f'<tr><td colspan="5">… {len(suite) - len(rows)} more …</td></tr>')
    problems = "".join(
        f"<p><b>problem:</b> {escape(_cut(problem))}</p>" for problem in suite.problems
    )
    names = ("test", "status", "severity", "ms", "message")
    return f"<div><p>{escape(repr(suite))}</p>{problems}{_table(names, rows)}</div>"


def audit_html(
    task_id: str, ok: bool, summary: Sequence[tuple[str, str]], findings: Sequence[str]
) -> str:
    """Show an audit: a row for each thing measured, and what is wrong below."""
    color = _COLORS[TestStatus.PASSED if ok else TestStatus.FAILED]
    head = f'<b style="color:{color}">{"ok" if ok else "not ok"}</b> {escape(_cut(task_id))}'
    rows = [f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in summary]
    wrong = "".join(f"<li>{escape(_cut(text))}</li>" for text in findings[:_MOST_ROWS])
    return f"<div><p>{head}</p>{_table(('what', 'result'), rows)}<ul>{wrong}</ul></div>"


def _ends(entries: list[FeedbackEntry]) -> list[FeedbackEntry]:
    if len(entries) <= _MOST_ROWS:
        return entries
    half = _MOST_ROWS // 2
    return entries[:half] + entries[-half:]


def _iteration_row(entry: FeedbackEntry) -> str:
    suite = entry.suite_result
    first = entry.failing_tests[0] if entry.failing_tests else ("", "")
    failing = f"{first[0]}: {first[1]}" if first[1] else first[0]
    cells = (
        str(entry.iteration),
        entry.submission.strategy,
        f"{suite.passed} of {suite.total - suite.skipped}",
        f"{suite.pass_rate:.3f}",
        f"{entry.reward.total:.3f}",
        _cut(failing),
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _test_row(test: TestResult) -> str:
    status = f'<td style="color:{_COLORS[test.status]}">{escape(test.status.value)}</td>'
    return (
        f"<tr><td>{escape(_cut(test.name))}</td>{status}<td>{escape(test.severity.name.lower())}</td>"
        f"<td>{test.duration_ms:.1f}</td><td>{escape(_cut(test.message))}</td></tr>"
    )


def _table(names: tuple[str, ...], rows: list[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _error_text(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = f"{name}: {error}"
    except Exception:
        return f"{name}, whose message cannot be shown"
    return _cut(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _cut(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
