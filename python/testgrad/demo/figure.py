"""The PNG of the demo: one small curve a program, drawn by matplotlib (the extra `plot`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from testgrad.demo.repair import Repair

_COLUMNS = 4
_COLOURS = {"repaired": "#14803c", "not repaired": "#c0392b", "no verdict": "#c0392b"}


def write_figure(repairs: Sequence[Repair], path: Path) -> None:
    """Write the reward of each program by iteration, the best so far as a line.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = min(len(repairs), _COLUMNS)
    rows = math.ceil(len(repairs) / columns)
    figure = Figure(figsize=(3 * columns, 1.9 * rows + 0.3), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, sharey=True).flat)
    for plot in axes:
        plot.set_axis_off()
    for plot, repair in zip(axes, repairs, strict=False):
        iterations = range(1, len(repair.rewards) + 1)
        colour = _COLOURS.get(repair.status, "#8a6d00")
        plot.set_axis_on()
        plot.plot(iterations, repair.rewards, ".", color="#98a2b3", markersize=4)
        plot.step(iterations, list(accumulate(repair.rewards, max)), where="post", color=colour)
        plot.set_ylim(-0.05, 1.05)
        plot.set_title(f"{repair.case.name}: {repair.status}", fontsize=9, parse_math=False)
        plot.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        plot.tick_params(labelsize=7)
    figure.supxlabel("iteration", fontsize=9)
    figure.supylabel("reward", fontsize=9)
    figure.savefig(path, dpi=120)
