"""Figures; they need matplotlib, the extra `plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._testgrad import History

__all__ = ["plot_history"]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'testgrad[plot]'"
        ) from error
    return plt


def plot_history(history: History, ax: Any = None) -> Any:
    """Draw a run's learning curve: pass rate and total reward by iteration.

    Args:
        history: The run.
        ax: The matplotlib axes to draw on; None makes a new figure.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.
    """
    if ax is None:
        _, ax = _pyplot().subplots(figsize=(7, 3.5), layout="constrained")
    curve = history.learning_curve()
    iterations = [point.iteration for point in curve]
    marker = "o" if len(curve) <= 40 else None
    ax.plot(
        iterations, [p.pass_rate for p in curve], label="pass rate", color="#1a7f37", marker=marker
    )
    ax.plot(
        iterations, [p.total_reward for p in curve], label="reward", color="#0969da", marker=marker
    )
    for point in curve:
        if point.tests_broken:
            ax.axvline(point.iteration, color="#cf222e", alpha=0.15, linewidth=1)
    ax.set_xlabel("iteration")
    ax.set_ylabel("score")
    ax.set_title(f"{len(curve)} iterations, {history.stopped_by or 'under way'}")
    ax.legend(loc="best", frameon=False)
    return ax
