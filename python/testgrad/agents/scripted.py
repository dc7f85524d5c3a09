"""An agent that gives prepared answers: for tests, examples and replays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testgrad import FeedbackEntry


class AnswersExhausted(RuntimeError):
    """A scripted agent was asked once more than it has answers."""


class ScriptedAgent:
    """Replays given answers: the first for an empty history, the next for one entry, and so on.

    The answer depends on the length of the history alone, so a run can be resumed with it.

    Args:
        answers: the programs, in order; at least one.
        repeat_last: give the last answer again when there are no more.

    Raises:
        ValueError: for no answers at all.
        AnswersExhausted: from a call, when the history is longer than the answers.

    Example:
        >>> agent = ScriptedAgent(["x = 1", "x = 2"])
        >>> agent([], None)
        'x = 1'
    """

    def __init__(self, answers: Iterable[str], *, repeat_last: bool = False) -> None:
        if isinstance(answers, str):
            raise TypeError("answers must be a sequence of programs, got one str")
        self._answers = tuple(answers)
        self._repeat_last = repeat_last
        if not self._answers:
            raise ValueError("answers must hold at least one program")

    def __call__(self, history: Sequence[FeedbackEntry], task: object = None) -> str:  # noqa: ARG002
        """The answer for a history of this length; the task is not used."""
        turn, count = len(history), len(self._answers)
        if turn >= count and not self._repeat_last:
            raise AnswersExhausted(
                f"asked for answer {turn + 1}, but the script has {count};"
                " give more answers or repeat_last=True"
            )
        return self._answers[min(turn, count - 1)]
