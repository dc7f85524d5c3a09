"""Rewards of many suites at once, and what a group of rollouts says together."""

from ._testgrad import (
    ABSENT,
    NO_VERDICT,
    GroupSignal,
    advantages,
    decoupled_advantages,
    difficulty_score,
    difficulty_weights,
    group_signal,
    leave_one_out_baseline,
    rewards,
    rewards_from_arrays,
)

__all__ = [
    "ABSENT",
    "NO_VERDICT",
    "GroupSignal",
    "advantages",
    "decoupled_advantages",
    "difficulty_score",
    "difficulty_weights",
    "group_signal",
    "leave_one_out_baseline",
    "rewards",
    "rewards_from_arrays",
]
