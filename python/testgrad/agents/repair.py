"""An agent without a model: it repairs a Python program by search over small edits.

The order of the search is what matters. An edit's score is the suspicion of its statement times
the prior of its kind times what the run has taught so far. See `docs/agents.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from testgrad import TestStatus
from testgrad.agents.edits import Edit, apply, describe_edit, edits_of
from testgrad.agents.source import Identity, Program, Site
from testgrad.agents.suspicion import never_ends, visible_tests, weigh_sites

if TYPE_CHECKING:
    from testgrad import FeedbackEntry

_BEAM = 4
_OPENED_PER_TURN = 600
_HIGHEST_SCORE = 1.0
_CHILD = 0.5
_SAME_OUTCOME = 0.3
_NEAR_LAST_EDIT = 0.3
# What an edit teaches about its place, 0..1: how likely the defect is there.
_IMPROVED, _UNMOVED, _STALLED, _UNKNOWN = 1.0, 0.1, 0.3, 0.5
_TRUST_IN_UNKNOWN = 2.0
_TIRING = 0.985
_ALL_ERRORS = 0.93
_LOOP_RISK = 0.5
_FAILING = (TestStatus.FAILED, TestStatus.ERROR)
_LEAST_KIND = 0.15
_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|/tmp/\S+|\d+\.\d+ ?m?s\b")

Outcomes = dict[str, tuple[TestStatus, str]]
"""Test name to status and message, without what changes from run to run."""


class SearchExhausted(RuntimeError):
    """Every program within reach of the allowed edits was tried and none passed all tests."""


@dataclass(slots=True, eq=False)
class _Bucket:
    """The edits of one kind at one statement, the next one to try at `position`."""

    site: int
    kind: str
    edits: list[Edit]
    position: int = 0


@dataclass(slots=True, eq=False)
class _Base:
    """A judged program that edits start from."""

    program: Program
    total: float
    outcomes: Outcomes
    suspicion: list[float]
    weight: float
    order: int
    """Edits since the last one that raised the reward."""
    buckets: list[_Bucket] = field(default_factory=list)
    unopened: list[int] = field(default_factory=list)
    never_ends: bool = False


@dataclass(slots=True, eq=False)
class _Proposal:
    code: str
    base: _Base | None = None
    bucket: _Bucket | None = None


@dataclass(slots=True, eq=False)
class _Tried:
    """A program that did not raise the reward: a base for pairs of edits, later."""

    code: str
    entry: FeedbackEntry
    order: int


@dataclass(slots=True)
class _Lesson:
    """What the edits at one place told about it."""

    total: float = _UNKNOWN * _TRUST_IN_UNKNOWN
    count: int = 0

    def add(self, told: float) -> None:
        self.total += told
        self.count += 1

    @property
    def mean(self) -> float:
        """0..1; one half when nothing is known."""
        return self.total / (_TRUST_IN_UNKNOWN + self.count)

    @property
    def factor(self) -> float:
        """1 when nothing is known; sinks slowly with every edit that was no repair."""
        return 2 * self.mean * _TIRING**self.count


class _Search:
    """The state of a search: a fold over the entries of a history."""

    def __init__(
        self, source: str, *, seed: int, focus: tuple[str, ...], max_order: int, file: str | None
    ) -> None:
        self.root = Program(source)
        self.seed, self.focus, self.max_order, self.file = seed, focus, max_order, file
        self.bases: list[_Base] = []
        self.tried: list[_Tried] = []
        self.seen: set[Identity] = {self.root.identity}
        self.site_lessons: dict[str, _Lesson] = {}
        self.function_lessons: dict[str, _Lesson] = {}
        self.kind_lessons: dict[str, float] = {}
        self.pending = _Proposal(source)
        self.proposed = 1

    def observe(self, entry: FeedbackEntry) -> None:
        """Learn from one judged program; afterwards `pending` is stale until `propose`."""
        code, proposal = entry.submission.code, self.pending
        if not self.bases:
            self._add_base(self.root, entry, weight=1.0, order=0)
            return
        outcomes, total = _outcomes(entry), entry.reward.total
        if code != proposal.code or proposal.base is None or proposal.bucket is None:
            self._observe_foreign(code, entry)
            return
        base, bucket = proposal.base, proposal.bucket
        site = base.program.sites[bucket.site]
        improved = outcomes != base.outcomes and total > base.total + 1e-9
        self._learn(base, site, bucket.kind, entry, outcomes, improved=improved)
        if not improved:
            if base.order + 1 < self.max_order:
                self.tried.append(_Tried(code, entry, base.order + 1))
            return
        gain = min(1.0, (total - base.total) / max(1.0 - base.total, 1e-9))
        weight = base.weight * _CHILD * (0.3 + 0.7 * gain)
        if any(outcomes == other.outcomes for other in self.bases):
            weight *= _SAME_OUTCOME
        child = self._add_base(Program(code), entry, weight=weight, order=0)
        line = site.node.lineno
        for index, other in enumerate(child.program.sites):
            if other.node.lineno == line:
                child.suspicion[index] *= _NEAR_LAST_EDIT
        self._trim_beam()

    def propose(self) -> _Proposal:
        """The likeliest program that was not tried yet.

        Raises:
            SearchExhausted: when there is none.
        """
        while True:
            chosen = self._best_bucket()
            if chosen is None:
                if not self._promote():
                    raise SearchExhausted(
                        f"no repair among {self.proposed} programs within"
                        f" {self.max_order} edits; widen focus= or max_order="
                    )
                continue
            base, bucket = chosen
            edit = bucket.edits[bucket.position]
            bucket.position += 1
            if bucket.position >= len(bucket.edits):
                base.buckets.remove(bucket)
            result = apply(base.program, edit)
            if result is not None and result[1] not in self.seen:
                self.seen.add(result[1])
                self.proposed += 1
                self.pending = _Proposal(result[0], base, bucket)
                return self.pending

    def _best_bucket(self) -> tuple[_Base, _Bucket] | None:
        best: tuple[_Base, _Bucket] | None = None
        best_score = 0.0
        for base in self.bases:
            self._open_sites(base, best_score)
            levels = self._levels(base)
            kinds = self.kind_lessons
            for bucket in base.buckets:
                score = (
                    levels[bucket.site]
                    * kinds.get(bucket.kind, 1.0)
                    * bucket.edits[bucket.position].score
                )
                if score > best_score:
                    best, best_score = (base, bucket), score
        return best

    def _levels(self, base: _Base) -> list[float]:
        of_site, of_function = self.site_lessons, self.function_lessons
        functions = {name: 0.5 + lesson.mean for name, lesson in of_function.items()}
        sites = {key: lesson.factor for key, lesson in of_site.items()}
        return [
            base.weight * suspicion * sites.get(site.key, 1.0) * functions.get(site.function, 1.0)
            for suspicion, site in zip(base.suspicion, base.program.sites, strict=True)
        ]

    def _open_sites(self, base: _Base, best_score: float) -> None:
        """List the edits of the most suspicious statements, some hundred in each turn."""
        if not base.unopened:
            return
        levels = self._levels(base)
        base.unopened.sort(key=lambda index: (-levels[index], index))
        risk = 1.0 if base.never_ends else _LOOP_RISK
        opened = listed = 0
        for index in base.unopened:
            if listed >= _OPENED_PER_TURN or levels[index] * _HIGHEST_SCORE < best_score:
                break
            site = base.program.sites[index]
            for kind, edits in edits_of(base.program, site, self.seed, loop_risk=risk).items():
                base.buckets.append(_Bucket(index, kind, edits))
                listed += len(edits)
            opened += 1
        del base.unopened[:opened]

    def _learn(
        self,
        base: _Base,
        site: Site,
        kind: str,
        entry: FeedbackEntry,
        outcomes: Outcomes,
        *,
        improved: bool,
    ) -> None:
        tests = visible_tests(entry)
        if improved:
            told = _IMPROVED
        elif never_ends(entry) and not base.never_ends:
            told = _STALLED
        elif outcomes == base.outcomes:
            told = _UNMOVED
        else:
            told = max(_shared_failure(base.outcomes, outcomes), _UNMOVED)
        self.site_lessons.setdefault(site.key, _Lesson()).add(told)
        self.function_lessons.setdefault(site.function, _Lesson()).add(told)
        if tests and all(test.status is TestStatus.ERROR for test in tests):
            least = self.kind_lessons.get(kind, 1.0) * _ALL_ERRORS
            self.kind_lessons[kind] = max(least, _LEAST_KIND)

    def _observe_foreign(self, code: str, entry: FeedbackEntry) -> None:
        """Take a program that somebody else proposed as a base when it is the best so far."""
        try:
            program = Program(code)
        except (SyntaxError, ValueError, RecursionError):
            return
        self.seen.add(program.identity)
        if entry.reward.total > max(base.total for base in self.bases):
            self._add_base(program, entry, weight=_CHILD, order=0)
            self._trim_beam()

    def _add_base(
        self, program: Program, entry: FeedbackEntry, *, weight: float, order: int
    ) -> _Base:
        suspicion = weigh_sites(program, entry, self.file)
        sites = range(len(program.sites))
        unopened = [index for index in sites if _is_in(program.sites[index], self.focus)]
        base = _Base(
            program,
            entry.reward.total,
            _outcomes(entry),
            suspicion,
            weight,
            order,
            unopened=unopened,
            never_ends=never_ends(entry),
        )
        self.bases.append(base)
        return base

    def _trim_beam(self) -> None:
        children = [base for base in self.bases[1:] if base.order == 0]
        if len(children) > _BEAM:
            worst = min(children, key=lambda base: base.total)
            self.bases.remove(worst)

    def _promote(self) -> bool:
        """Make the best tried program a base: its edits are pairs of edits of the one before."""
        if not self.tried:
            return False
        best = max(self.tried, key=lambda tried: tried.entry.reward.total)
        self.tried.remove(best)
        self._add_base(Program(best.code), best.entry, weight=1.0, order=best.order)
        return True


class RepairAgent:
    r"""Repairs a Python program by search over small edits of its syntax tree.

    The first answer is the program itself. Afterwards each answer is one edit away from the best
    programs so far, never twice the same syntax tree. The answer is a pure function of program,
    seed and history: a new agent given the history of a stopped run goes on where it stopped.
    `docs/agents.md` tells how the edits are ranked.

    Args:
        program: source code, or the path of a file that holds it.
        seed: breaks ties between equally likely edits.
        focus: names of functions or classes that may be edited, dotted or not; empty means all.
        max_order: edits that are tried together although the first alone did not raise the
            reward; 1 or more. Edits that raised it are kept and combined without limit.

    Raises:
        ValueError: when `focus` names nothing in the program.
        SyntaxError: when the program cannot be parsed.
        SearchExhausted: from a call, when there is nothing left to try.

    Example:
        >>> agent = RepairAgent("def top(xs):\n    return min(xs)\n")
        >>> print(agent([], None), end="")
        def top(xs):
            return min(xs)
    """

    def __init__(
        self,
        program: str | Path,
        *,
        seed: int = 0,
        focus: Iterable[str] = (),
        max_order: int = 2,
    ) -> None:
        if max_order < 1:
            raise ValueError(f"max_order must be 1 or more, got {max_order}")
        is_path = isinstance(program, Path)
        self._source = program.read_text(encoding="utf-8") if isinstance(program, Path) else program
        self._file = program.name if is_path and isinstance(program, Path) else None
        self._seed, self._max_order = seed, max_order
        self._focus = (focus,) if isinstance(focus, str) else tuple(focus)
        self._search = self._start()
        for name in self._focus:
            if not any(_is_in(site, (name,)) for site in self._search.root.sites):
                raise ValueError(f"focus: the program has no function or class {name!r}")
        self._observed: list[tuple[str, float]] = []

    def __call__(self, history: Sequence[FeedbackEntry], task: object = None) -> str:  # noqa: ARG002
        """The next program to judge, given what was judged so far; the task is not used."""
        seen = [(entry.submission.code, entry.reward.total) for entry in history]
        if self._observed != seen[: len(self._observed)]:
            self._search, self._observed = self._start(), []
        for entry, key in zip(
            history[len(self._observed) :], seen[len(self._observed) :], strict=True
        ):
            self._search.observe(entry)
            self._observed.append(key)
            try:
                self._search.propose()
            except SearchExhausted:  # the same history must give the same answer again
                self._search, self._observed = self._start(), []
                raise
        return self._search.pending.code

    @property
    def last_edit(self) -> str:
        """One line on how the last answer differs from the program it was made from."""
        proposal = self._search.pending
        before = proposal.base.program.source if proposal.base else self._source
        return describe_edit(before, proposal.code)

    def _start(self) -> _Search:
        return _Search(
            self._source,
            seed=self._seed,
            focus=self._focus,
            max_order=self._max_order,
            file=self._file,
        )


def _is_in(site: Site, focus: tuple[str, ...]) -> bool:
    if not focus:
        return True
    name = site.function
    if (
        site.node is not site.scope.node
        and hasattr(site.node, "name")
        and hasattr(site.node, "body")
    ):
        name = f"{name}.{site.node.name}" if name else str(site.node.name)
    dotted = f".{name}."
    return any(f".{wanted}." in dotted for wanted in focus)


def _shared_failure(before: Outcomes, after: Outcomes) -> float:
    """How much an edit touches what fails and nothing else: 0 not at all, 1 only that.

    ``moved / sqrt(failing * (moved + broken))`` over the tests that failed before and say something
    else now, and those that passed before and do not now.

    Source: Papadakis and Le Traon 2015, Metallaxis-FL.
    """
    failing = [name for name, (status, _) in before.items() if status in _FAILING]
    moved = sum(after.get(name) != before[name] for name in failing)
    broken = sum(
        status is TestStatus.PASSED and name in after and after[name][0] in _FAILING
        for name, (status, _) in before.items()
    )
    return moved / math.sqrt(len(failing) * (moved + broken)) if moved else 0.0


def _outcomes(entry: FeedbackEntry) -> Outcomes:
    return {
        test.name: (test.status, _VOLATILE.sub("", test.message)) for test in visible_tests(entry)
    }
