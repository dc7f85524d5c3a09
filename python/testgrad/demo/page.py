"""The HTML page of the demo: one file, no scripts, nothing loaded from elsewhere.

Everything that comes from programs, tests or task files is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate

from testgrad.demo.repair import Repair

_WIDTH, _HEIGHT = 420, 110
_LEFT, _RIGHT, _TOP, _BOTTOM = 30, 8, 8, 22
_CONTEXT = 2
_SHOWN = 4
_CLASSES = {"repaired": "good", "not repaired": "bad", "no verdict": "bad"}

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --soft: #667080; --paper: #fff; --card: #f6f7f9;
  --rule: #d9dde3; --good: #14803c; --bad: #c0392b; --line: #2f6fde;
  --plus: #e3f5e8; --minus: #fbe7e4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --soft: #98a2b3; --paper: #14171c;
  --card: #1c2027; --rule: #343a45; --good: #4cc27a; --bad: #f0806f; --line: #7aa7ff;
  --plus: #17331f; --minus: #3b1e1b; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.05rem; margin: 0; }
p { margin: 0.2rem 0 0.4rem; color: var(--soft); }
ul { margin: 0; padding-left: 1.2rem; font-size: 13px; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { text-align: left; white-space: nowrap; padding: 0.3rem 0.6rem;
  border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
a { color: inherit; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: 1rem; margin: 1rem 0; }
.columns { display: grid; gap: 0.6rem 1.5rem; margin-top: 0.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
.columns > div { min-width: 0; }
pre { margin: 0.2rem 0; overflow-x: auto; font: 12.5px/1.45 ui-monospace, monospace; }
pre span { display: block; width: max-content; min-width: 100%; }
.plus { background: var(--plus); } .minus { background: var(--minus); }
.place { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
svg { width: 100%; max-width: 420px; height: auto; }
svg text { fill: var(--soft); font: 10px system-ui, sans-serif; }
svg .axis { stroke: var(--rule); } svg .try { fill: var(--soft); fill-opacity: 0.55; }
svg .best { fill: none; stroke: var(--line); stroke-width: 2; }
"""


def page_html(repairs: Sequence[Repair], *, title: str, note: str) -> str:
    """Return the page: a table of all repairs, then each with its curve and its diffs."""
    rows = "\n".join(_row(number, repair) for number, repair in enumerate(repairs))
    sections = "\n".join(_section(number, repair) for number, repair in enumerate(repairs))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(note)}</p>
<div class="scroll"><table>
<thead><tr><th>program</th><th>result</th><th class="number">iterations</th>
<th class="number">seconds</th><th class="number">first reward</th>
<th class="number">best reward</th><th>what was broken</th></tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
{sections}
</body>
</html>
"""


def curve_svg(rewards: Sequence[float], label: str) -> str:
    """Return an SVG of the reward by iteration: a dot for each, a line for the best so far.

    Rewards below 0 or above 1 are drawn at the edge.
    """
    across = (_WIDTH - _LEFT - _RIGHT) / max(len(rewards) - 1, 1)
    points = [(_LEFT + index * across, _y(reward)) for index, reward in enumerate(rewards)]
    dots = "".join(f'<circle class="try" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
    best = accumulate((y for _, y in points), min)
    path = " ".join(
        f"{'H' if index else 'M'}{x:.1f}{'V' if index else ' '}{y:.1f}"
        for index, ((x, _), y) in enumerate(zip(points, best, strict=True))
    )
    return f"""<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">
<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(1)}" y2="{_y(1)}"/>
<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(0)}" y2="{_y(0)}"/>
<text x="{_LEFT - 6}" y="{_y(1) + 4}" text-anchor="end">1.0</text>
<text x="{_LEFT - 6}" y="{_y(0) + 4}" text-anchor="end">0.0</text>
<text x="{_LEFT}" y="{_HEIGHT - 6}">iteration 1</text>
<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{len(rewards)}</text>
{dots}<path class="best" d="{path}"/>
</svg>"""


def _y(reward: float) -> float:
    return _TOP + (1 - min(max(reward, 0.0), 1.0)) * (_HEIGHT - _TOP - _BOTTOM)


def _row(number: int, repair: Repair) -> str:
    rewards = [f"{value:.2f}" for value in repair.rewards]
    return (
        f'<tr><td><a href="#p{number}">{escape(repair.case.name)}</a></td>'
        f"<td>{_status(repair)}</td>"
        f'<td class="number">{len(rewards)}</td>'
        f'<td class="number">{repair.elapsed_s:.1f}</td>'
        f'<td class="number">{rewards[0] if rewards else ""}</td>'
        f'<td class="number">{max(rewards, default="")}</td>'
        f"<td>{escape(repair.case.defect)}</td></tr>"
    )


def _section(number: int, repair: Repair) -> str:
    name = escape(repair.case.name)
    curve = ""
    if repair.rewards:
        curve = curve_svg(repair.rewards, f"reward of {repair.case.name} by iteration")
    return f"""<section id="p{number}"><h2>{name}: {_status(repair)}</h2>
<div class="columns"><div>{curve}</div><div>{_failing(repair)}</div>
{_diff("what was broken", repair.defect_diff(_CONTEXT))}
{_diff("what the agent changed", repair.repair_diff(_CONTEXT))}
</div></section>"""


def _status(repair: Repair) -> str:
    return f'<span class="{_CLASSES.get(repair.status, "place")}">{escape(repair.status)}</span>'


def _failing(repair: Repair) -> str:
    if repair.error:
        return f"<p>{escape(repair.error)}</p>"
    if not repair.entries:
        return ""
    first = repair.entries[0]
    names = [name for name, _ in first.failing_tests]
    items = "".join(f"<li>{escape(name)}</li>" for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        items += f"<li>and {len(names) - _SHOWN} more</li>"
    return (
        f"<p>{len(names)} of {first.suite_result.total} tests failed at first</p><ul>{items}</ul>"
    )


def _diff(title: str, lines: Iterable[str]) -> str:
    classes = {"+": "plus", "-": "minus", "@": "place"}
    spans = "".join(
        f'<span class="{classes.get(line[:1], "same")}">{escape(line) or " "}</span>'
        for line in lines
    )
    return f"<div><p>{escape(title)}</p><pre>{spans or 'nothing'}</pre></div>"
