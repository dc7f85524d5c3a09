"""Audits: whether the tests pass what is right, fail what is wrong, and stand up to cheats.

Runs the reference, programs that do nothing, mutants of the reference and attacks, and says with
numbers what the tests made of them. It judges tests, never candidates. See docs/audit.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from .._testgrad import Limits, SuiteResult, Task
from ..enums import TestStatus
from ..errors import NoVerdict
from ..tasks import runner_options
from . import _attacks, _mutants
from ._mutants import Candidate, UnreadableError

__all__ = [
    "AttackAudit",
    "MutantAudit",
    "ProgramAudit",
    "TaskAudit",
    "TestAudit",
    "audit_task",
]

MUTATION_THRESHOLD = 0.8
_NO_EVIDENCE = ("collection", "not_run")
_SHORTEST_TEST_S, _SHORTEST_RUN_S = 2.0, 5.0
_TIMES_THE_REFERENCE = 10.0
_MOST_NAMED = 5


class Runner(Protocol):
    """What judges many candidates: any runner of testgrad, or an object with the same method."""

    def run_many(
        self, candidates: Any, /, *, workers: int | None = None, progress: bool = False
    ) -> Sequence[SuiteResult | NoVerdict]:
        """One suite a candidate, in their order; a `NoVerdict` where our side failed."""
        ...


@dataclass(frozen=True)
class TestAudit:
    """What one test did.

    Args:
        name: The test's name.
        runs: How often the reference met it, skips not counted.
        passes: How often the reference passed it.
        reached: How many wrong programs (empty, stubs, mutants) met it. One that fails at import
            meets no test.
        caught: How many of these it failed; a crash or a limit in it counts.
    """

    __test__ = False

    name: str
    runs: int
    passes: int
    reached: int
    caught: int

    @property
    def fail_rate(self) -> float | None:
        """Share of the reference's runs it failed, 0..1; None when the reference never met it."""
        return 1.0 - self.passes / self.runs if self.runs else None


@dataclass(frozen=True)
class ProgramAudit:
    """What the tests made of a program that does nothing: the empty one or a stub.

    Args:
        name: What the program is, such as "empty" or "returns 0".
        passed: How many tests it passed.
        pass_rate: The suite's pass rate, 0..1.
        all_passed: Whether the suite calls it right.
    """

    name: str
    passed: int
    pass_rate: float
    all_passed: bool


@dataclass(frozen=True)
class MutantAudit:
    """What the tests made of a mutant of the reference.

    Args:
        description: The edit, such as "line 4: < to <=".
        killed: Whether a test failed that the reference always passes, or none could run.
        pass_rate: The suite's pass rate, 0..1.
        failing: The names of the tests that failed, in order.
    """

    description: str
    killed: bool
    pass_rate: float
    failing: tuple[str, ...]


@dataclass(frozen=True)
class AttackAudit:
    """What the tests made of a program that cheats.

    Args:
        name: What it does.
        family: The trick behind it.
        pass_rate: The suite's pass rate, 0..1: what a learner would be paid.
        passed: The names of the tests it passed, in order.
        earns_more: Whether it passes more tests, or has a higher pass rate, than every program that
            does nothing.
    """

    name: str
    family: str
    pass_rate: float
    passed: tuple[str, ...]
    earns_more: bool


@dataclass(frozen=True)
class TaskAudit:
    """The findings about one task: a frozen value.

    Args:
        task_id: The task's name.
        trust: Who vouches for the suites: "isolated", "shared" or "reported"; None when unknown.
        reference_pass_rate: The lowest pass rate of the reference's runs, 0..1; None without one.
        reference_failing: The tests that failed in every run of the reference that met them.
        flaky: The tests that the reference passed in some runs and failed in others; their
            `fail_rate` is in `tests`.
        empty: The empty program; None when it could not be judged.
        stubs: Programs that define what the tests want and do nothing.
        mutants: Wrong versions of the reference.
        mutation_score: Share of the mutants that were killed, 0..1; None when there are none.
        mutation_threshold: The least score that is enough, 0..1.
        weak_tests: The tests that some wrong program met and none failed.
        sweeping_tests: The tests that failed whenever any other failed, mutants only.
        attacks: Programs that cheat.
        tests: Every test of the task, in order.
        problems: Where there was no verdict, and what went wrong outside any test. An audit with
            problems is not `ok`, and none of them counts as a failure of a test or a program.
        warnings: What was not looked at, and why.
    """

    task_id: str
    trust: str | None = None
    reference_pass_rate: float | None = None
    reference_failing: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    empty: ProgramAudit | None = None
    stubs: tuple[ProgramAudit, ...] = ()
    mutants: tuple[MutantAudit, ...] = ()
    mutation_score: float | None = None
    mutation_threshold: float = MUTATION_THRESHOLD
    weak_tests: tuple[str, ...] = ()
    sweeping_tests: tuple[str, ...] = ()
    attacks: tuple[AttackAudit, ...] = ()
    tests: tuple[TestAudit, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the tests can be relied on, as far as was looked.

        The reference passes all and nothing flakes, the empty program and the stubs fail, the
        mutation score reaches the threshold (or there are no mutants), no attack earns more than
        it should, and there are no problems. False without a reference: nothing shows then that the
        task can be passed.
        """
        return (
            self.reference_pass_rate == 1.0
            and not (self.reference_failing or self.flaky or self.problems or self.earning)
            and not any(program.all_passed for program in self._idle)
            and (self.mutation_score is None or self.mutation_score >= self.mutation_threshold)
        )

    @property
    def survivors(self) -> tuple[MutantAudit, ...]:
        """The mutants that no test noticed. Some may be right programs: an edit need not matter."""
        return tuple(mutant for mutant in self.mutants if not mutant.killed)

    @property
    def earning(self) -> tuple[AttackAudit, ...]:
        """The attacks that earn more than they should, the best paid first."""
        earning = [attack for attack in self.attacks if attack.earns_more]
        return tuple(sorted(earning, key=lambda attack: -attack.pass_rate))

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, a sentence each, the worst first; () where nothing is."""
        return tuple(_findings(self))

    @property
    def _idle(self) -> tuple[ProgramAudit, ...]:
        return (*([self.empty] if self.empty else []), *self.stubs)

    def to_dict(self) -> dict[str, Any]:
        """The fields, `ok` and `findings` as plain data; all numbers are finite."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return {"task_id": data.pop("task_id"), "ok": self.ok, "findings": [*self.findings], **data}

    def to_json(self) -> str:
        """`to_dict` as JSON on one line."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        head = f"{self.task_id}: {'ok' if self.ok else 'not ok'}"
        lines = [f"  {name:<10} {text}" for name, text in _summary(self)]
        marks = [f"  - {finding}" for finding in self.findings]
        notes = [f"  ({warning})" for warning in self.warnings]
        return "\n".join([head, *lines, *marks, *notes])

    def _repr_html_(self) -> str:
        from .._html import audit_html

        return audit_html(self.task_id, self.ok, _summary(self), self.findings)


def audit_task(
    task: Any,
    *,
    runner: Runner | None = None,
    mutants: int = 20,
    repeat: int = 3,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = False,
    attacks: bool = True,
    mutation_threshold: float = MUTATION_THRESHOLD,
) -> TaskAudit:
    """Find out what the tests of a task are worth.

    Two batches are run: the reference `repeat` times, then all wrong programs. Those of a task
    that brings its own runner get ten times the reference's time for a test, 2 s at least.

    Args:
        task: A `Task`, or an object with `runner()` and with `reference` and `stub`, or these
            two in `variants`.
        runner: What judges; None means `task.runner()`.
        mutants: How many mutants at most, >= 0.
        repeat: How often the reference runs, >= 1. A test that fails in one of three runs is
            found by three runs in 67 of 100 audits, by ten in 98.
        seed: Of the choice of mutants.
        workers: How many programs run at a time, >= 1; None means one a core.
        progress: Show a bar for each batch.
        attacks: Whether to run programs that cheat. They are written to break out of what runs
            them: give no `runner` that contains nothing.
        mutation_threshold: The least mutation score that is `ok`, 0..1.

    Raises:
        ValueError: A number out of range, or a task that needs a `runner` (kind "command", or
            outputs that need a checker).

    Example:
        >>> from testgrad.tasks import Task
        >>> task = Task("double", kind="function", entry_point="double", reference=
        ...             "def double(x): return 2 * x", cases=[{"args": [2], "expected": 4}])
        >>> audit = audit_task(task, attacks=False)
        >>> audit.ok, [mutant.description for mutant in audit.survivors]  # 2 + 2 is 2 * 2
        (False, ['line 1: * to +'])
    """
    if mutants < 0 or repeat < 1 or not 0.0 <= mutation_threshold <= 1.0:
        raise ValueError("mutants must be >= 0, repeat >= 1, and mutation_threshold in 0..1")
    examined = _Examined(task, runner, workers, progress)
    examined.run_reference(repeat)
    return examined.run_wrong(mutants, seed, attacks, mutation_threshold)


# -- running ---------------------------------------------------------------------------------------


class _Examined:
    """A task while it is audited."""

    def __init__(
        self, task: Any, runner: Runner | None, workers: int | None, progress: bool
    ) -> None:
        self.task = task
        self.uses_tasks_runner = runner is None
        self.runner: Runner = task.runner() if runner is None else runner
        self.workers, self.progress = workers, progress
        self.reference, self.stub = _variant(task, "reference"), _variant(task, "stub")
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.right: list[SuiteResult] = []

    def judge(self, candidates: Sequence[tuple[str, Candidate]]) -> list[SuiteResult | None]:
        """The suites of named candidates; None, and a problem, where there is no verdict."""
        if not candidates:
            return []
        codes = [code for _, code in candidates]
        suites: list[SuiteResult | None] = []
        judged = self.runner.run_many(codes, workers=self.workers, progress=self.progress)
        for (name, _), suite in zip(candidates, judged, strict=True):
            if isinstance(suite, NoVerdict):
                self.problems.append(f"no verdict on {name}: {suite}")
            suites.append(None if isinstance(suite, NoVerdict) else suite)
        return suites

    def run_reference(self, repeat: int) -> None:
        if self.reference is None:
            self.warnings.append("there is no reference: no mutants, and no test was seen to pass")
            return
        runs = self.judge([("the reference", self.reference)] * repeat)
        self.right = [suite for suite in runs if suite is not None]
        for problem in dict.fromkeys(text for suite in self.right for text in suite.problems):
            self.problems.append(f"the reference's run: {problem}")

    def run_wrong(
        self, most_mutants: int, seed: int, with_attacks: bool, threshold: float
    ) -> TaskAudit:
        names = _wanted(self.task, self.reference)
        idle = [("empty", self._empty()), *self._stubs(names)]
        changed = self._changed(most_mutants, seed)
        attacks = self._cheats(names) if with_attacks else []
        if self.right and self.uses_tasks_runner:
            self.runner = _bounded(self.task, self.right, self.runner)
        suites = self.judge(
            [
                *((f"the program {name!r}", code) for name, code in idle),
                *((f"the mutant {name!r}", code) for name, code in changed),
                *((f"the attack {attack.name!r}", attack.candidate) for attack in attacks),
            ]
        )
        of_idle = _judged([name for name, _ in idle], suites)
        of_mutants = _judged([name for name, _ in changed], suites[len(idle) :])
        of_attacks = _judged(attacks, suites[len(idle) + len(changed) :])
        return self._audit(of_idle, of_mutants, of_attacks, threshold)

    # -- candidates

    def _empty(self) -> Candidate:
        if not isinstance(self.reference, dict):
            return ""
        code = _mutants.python_files(self.reference) or self.reference
        return {path: "" if path in code else text for path, text in self.reference.items()}

    def _stubs(self, names: _attacks.Names) -> list[tuple[str, Candidate]]:
        found: list[tuple[str, Candidate | None]] = [("stub", self.stub)]
        if _kind(self.task) == "stdio":
            found.append(("raises", "raise NotImplementedError\n"))
            found += [(f"prints {value}", f"print({value})\n") for value in _mutants.STUB_VALUES]
            found.append(("prints its input", _attacks.ECHO_PROGRAM))
        elif _mutants.is_python(self.reference):
            found.append(("raises", _mutants.raising(self.reference)))
            for value in _mutants.STUB_VALUES:
                found.append((f"returns {value}", _mutants.returning(self.reference, value)))
            found.append(("returns its argument", _mutants.echoing(self.reference)))
        elif _kind(self.task) in ("pytest", "function"):
            found.append(("raises", _attacks.raising_module(names)))
            for value in _mutants.STUB_VALUES:
                found.append((f"returns {value}", _attacks.constant_module(names, value)))
            found.append(("returns its argument", _attacks.echo_module(names)))
        right = self.reference
        return [(name, code) for name, code in found if code is not None and code != right]

    def _changed(self, most: int, seed: int) -> list[tuple[str, Candidate]]:
        if self.reference is None or not most:
            return []
        if not _stable(self.right):
            self.warnings.append("the reference passes no test, so mutants would say nothing")
            return []
        try:
            found = _mutants.mutants(self.reference, most=most, seed=seed)
        except UnreadableError as error:
            self.warnings.append(f"no mutants: {error}")
            return []
        if not found:
            self.warnings.append("no mutants: the reference has nothing to edit")
        return found

    def _cheats(self, names: _attacks.Names) -> list[_attacks.Attack]:
        kind = _kind(self.task)
        if kind == "pytest":
            return _attacks.attacks_on_pytest(names, _module(self.task))
        if kind == "function":
            return _attacks.attacks_on_function(names)
        if kind == "stdio":
            return _attacks.attacks_on_stdio()
        self.warnings.append(f"no attacks: there are none on tasks of kind {kind!r}")
        return []

    # -- findings

    def _audit(
        self,
        idle: list[tuple[str, SuiteResult]],
        changed: list[tuple[str, SuiteResult]],
        attacks: list[tuple[_attacks.Attack, SuiteResult]],
        threshold: float,
    ) -> TaskAudit:
        programs = [
            ProgramAudit(name, suite.passed, suite.pass_rate, suite.all_passed)
            for name, suite in idle
        ]
        stable, known = _stable(self.right), {test.name for suite in self.right for test in suite}
        mutants = tuple(
            MutantAudit(
                words,
                _is_killed(suite, stable, known),
                suite.pass_rate,
                tuple(test.name for test in suite.failing),
            )
            for words, suite in changed
        )
        wrong = [suite for _, suite in idle if not suite.all_passed]
        wrong += [suite for _, suite in changed]
        everything = [*self.right, *wrong, *(suite for _, suite in idle if suite.all_passed)]
        tests = tuple(_tests(self.right, wrong, everything))
        if skipped := [test.name for test in tests if self.right and not test.runs]:
            self.warnings.append(f"the reference is not judged by {_listed(skipped)}")
        unmet = [test.name for test in tests if test.runs and not test.reached]
        if unmet:
            self.warnings.append(f"no wrong program got as far as {_listed(unmet)}")
        return TaskAudit(
            task_id=str(getattr(self.task, "id", "task")),
            trust=next((suite.trust for suite in everything if suite.trust), None),
            reference_pass_rate=min((suite.pass_rate for suite in self.right), default=None),
            reference_failing=tuple(t.name for t in tests if t.runs and not t.passes),
            flaky=tuple(t.name for t in tests if 0 < t.passes < t.runs),
            empty=next((program for program in programs if program.name == "empty"), None),
            stubs=tuple(program for program in programs if program.name != "empty"),
            mutants=mutants,
            mutation_score=sum(m.killed for m in mutants) / len(mutants) if mutants else None,
            mutation_threshold=threshold,
            weak_tests=tuple(t.name for t in tests if t.reached and not t.caught),
            sweeping_tests=_sweeping(tests, [suite for _, suite in changed]),
            attacks=tuple(_attack_audits(attacks, programs)),
            tests=tests,
            problems=tuple(self.problems),
            warnings=tuple(self.warnings),
        )


def _judged(things: Sequence[Any], suites: Iterable[SuiteResult | None]) -> list[Any]:
    pairs = zip(things, suites, strict=False)
    return [(thing, suite) for thing, suite in pairs if suite is not None]


def _variant(task: Any, name: str) -> Candidate | None:
    found = getattr(task, name, None)
    if found is None:
        found = (getattr(task, "variants", None) or {}).get(name)
    return found if found is None or isinstance(found, str) else dict(found)


def _kind(task: Any) -> str | None:
    kind = getattr(task, "kind", None)
    return None if kind is None else str(kind)


def _module(task: Any) -> str:
    return str(getattr(task, "module", None) or "solution")


def _wanted(task: Any, reference: Candidate | None) -> _attacks.Names:
    entry_point = getattr(task, "entry_point", None)
    extra = [entry_point] if entry_point else []
    tests = getattr(task, "tests", None) or {}
    return _attacks.wanted_names(tests, _module(task), extra, reference)


def _bounded(task: Any, right: Sequence[SuiteResult], runner: Runner) -> Runner:
    """The task's runner with less time, so that endless programs end soon."""
    if not isinstance(task, Task):
        return runner
    limits = runner_options(task).get("limits", {})
    slowest_s = max((test.duration_ms for suite in right for test in suite), default=0.0) / 1e3
    whole_s = max((suite.duration_ms or 0.0 for suite in right), default=0.0) / 1e3
    usual = Limits(**limits)
    test_s = max(_SHORTEST_TEST_S, _TIMES_THE_REFERENCE * slowest_s)
    run_s = max(_SHORTEST_RUN_S, _TIMES_THE_REFERENCE * whole_s)
    limits["test_timeout_s"] = min(test_s, usual.test_timeout_s or usual.timeout_s)
    limits["timeout_s"] = min(run_s, usual.timeout_s)
    bounded: Runner = task.runner(limits=Limits(**limits))
    return bounded


# -- what suites say -------------------------------------------------------------------------------


def _stable(right: Sequence[SuiteResult]) -> set[str]:
    """The tests that the reference passed in every run."""
    passed = [{test.name for test in suite if test.status is TestStatus.PASSED} for suite in right]
    return set.intersection(*passed) if passed else set()


def _is_killed(suite: SuiteResult, stable: set[str], known: set[str]) -> bool:
    """Whether a suite calls a mutant wrong, leaving aside tests that fail the reference too."""
    if suite.problems or not suite.total - suite.skipped:
        return True
    return any(test.name in stable or test.name not in known for test in suite.failing)


def _tests(
    right: Sequence[SuiteResult], wrong: Sequence[SuiteResult], everything: Sequence[SuiteResult]
) -> Iterable[TestAudit]:
    """A row for each test; a file or candidate that could not be run at all is none."""
    counts: dict[str, list[int]] = {}
    for suite in right or everything:
        for test in suite:
            if right or test.reason != "collection":
                counts.setdefault(test.name, [0, 0, 0, 0])
    for suite in right:
        for test in suite:
            if test.status is not TestStatus.SKIPPED:
                counts[test.name][0] += 1
                counts[test.name][1] += test.status is TestStatus.PASSED
    for suite in wrong:
        for test in suite:
            is_met = test.status is not TestStatus.SKIPPED and test.reason not in _NO_EVIDENCE
            if is_met and test.name in counts:
                counts[test.name][2] += 1
                counts[test.name][3] += test.is_failing
    return (TestAudit(name, *numbers) for name, numbers in counts.items())


def _sweeping(tests: Sequence[TestAudit], suites: Sequence[SuiteResult]) -> tuple[str, ...]:
    stable = {test.name for test in tests if test.passes == test.runs > 0}
    failures = [{test.name for test in suite.failing} & stable for suite in suites]
    failures = [names for names in failures if names]
    if len(stable) < 2 or not failures:
        return ()
    always = set.intersection(*failures)
    return tuple(test.name for test in tests if test.name in always)


def _attack_audits(
    attacks: Iterable[tuple[_attacks.Attack, SuiteResult]], idle: Sequence[ProgramAudit]
) -> Iterable[AttackAudit]:
    most = max((program.passed for program in idle), default=0)
    best = max((program.pass_rate for program in idle), default=0.0)
    for attack, suite in attacks:
        passed = tuple(test.name for test in suite if test.status is TestStatus.PASSED)
        earns_more = len(passed) > most or suite.pass_rate > best
        yield AttackAudit(attack.name, attack.family, suite.pass_rate, passed, earns_more)


# -- words -----------------------------------------------------------------------------------------


def _findings(audit: TaskAudit) -> Iterable[str]:
    if audit.reference_failing:
        yield f"The reference fails {_listed(audit.reference_failing)}."
    elif audit.reference_pass_rate == 0.0:
        yield "The reference passes no test."
    for program in audit._idle:
        if program.all_passed:
            yield f"A program that does nothing ({program.name}) passes everything."
    paid: dict[str, list[AttackAudit]] = {}
    for attack in audit.earning:
        paid.setdefault(attack.family, []).append(attack)
    for family, members in paid.items():
        best = members[0]
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        yield (
            f"An attack by {family} earns {best.pass_rate:.2f} "
            f"with {_count(len(best.passed), 'test')} passed: {best.name}{more}."
        )
    rates = {test.name: test.fail_rate for test in audit.tests}
    for name in audit.flaky:
        yield f"{name} is flaky: it failed the reference in {rates[name]:.0%} of its runs."
    if audit.mutation_score is not None and audit.mutation_score < audit.mutation_threshold:
        yield (
            f"The tests notice {audit.mutation_score:.0%} of the mutants, "
            f"less than {audit.mutation_threshold:.0%}."
        )
    if audit.weak_tests:
        yield f"No wrong program fails {_listed(audit.weak_tests)}."
    if audit.survivors:
        yield f"Mutants survive: {_listed([mutant.description for mutant in audit.survivors])}."
    for problem in audit.problems:
        yield f"Problem: {problem}."
    if audit.reference_pass_rate is None:
        yield "Nothing shows that the task can be passed."


def _summary(audit: TaskAudit) -> list[tuple[str, str]]:
    """What was measured: names and texts."""
    rows = []
    if audit.reference_pass_rate is not None:
        runs = max((test.runs for test in audit.tests), default=0)
        text = f"passes {audit.reference_pass_rate:.0%} of {_count(len(audit.tests), 'test')}"
        rows.append(("reference", f"{text} in {_count(runs, 'run')}, {len(audit.flaky)} flaky"))
    if audit.empty is not None:
        rows.append(("empty", f"passes {audit.empty.pass_rate:.0%}"))
    if audit.stubs:
        best = max(audit.stubs, key=lambda stub: stub.pass_rate)
        stubs = _count(len(audit.stubs), "stub")
        rows.append(("stubs", f"the best of {stubs} passes {best.pass_rate:.0%} ({best.name})"))
    if audit.mutation_score is not None:
        killed = len(audit.mutants) - len(audit.survivors)
        rows.append(("mutants", f"{killed} of {len(audit.mutants)} killed"))
    if audit.attacks:
        text = f"{len(audit.earning)} of {len(audit.attacks)} earn more than they should"
        rows.append(("attacks", text + (f" (trust: {audit.trust})" if audit.trust else "")))
    return rows


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
