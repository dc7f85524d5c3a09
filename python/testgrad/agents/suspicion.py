"""How strongly the failing tests point at each statement of a program.

Reads what tests say in words: file and line in tracebacks, names of functions in test names,
messages and details. Nothing is executed.
"""

from __future__ import annotations

import ast
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from testgrad import TestStatus
from testgrad.agents.source import Program, Site, headers

if TYPE_CHECKING:
    from testgrad import FeedbackEntry, TestResult

_FRAME = re.compile(r'(?:File "([^"\n]+\.py)", line (\d+))|(?:^|\s)([^\s:"]+\.py):(\d+)', re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ELSEWHERE = 0.05
_MODULE_LEVEL = 0.3
_CALLED = 0.6
_SET_UP = ("__init__", "__new__", "__post_init__")
_TRACED = 3.0
_FEEDS_TRACED = 1.2


def visible_tests(entry: FeedbackEntry) -> list[TestResult]:
    """The tests of an entry that an agent may see: all but the hidden ones."""
    hidden = set(entry.suite_result.hidden)
    return [test for test in entry.suite_result.tests if test.name not in hidden]


def weigh_sites(program: Program, entry: FeedbackEntry, file: str | None = None) -> list[float]:
    """The suspicion of each site of a program, at least 0.05 and about 1 where nothing is known.

    Args:
        program: the program that the tests judged.
        entry: what they said.
        file: name of the program's file; None takes every file that is no test.
    """
    shown = {test.name for test in visible_tests(entry)}
    failing = [test for test in entry.suite_result.failing if test.name in shown]
    lines: dict[int, float] = {}
    for test in failing:
        found = [number for name, number in _frames(test) if _is_program(name, file, test)]
        found = [number for number in found if number <= program.source.count("\n") + 1]
        for number in set(found):
            share = 1.0 if number == found[-1] else 0.4
            lines[number] = lines.get(number, 0.0) + share / len(failing)
    functions = _weigh_functions(program, entry, failing, lines)
    return _weigh_statements(program, functions, lines, is_endless=never_ends(entry))


def never_ends(entry: FeedbackEntry) -> bool:
    """Whether some test ran out of time or recursed without end."""
    tests = visible_tests(entry)
    return any(test.reason == "timeout" or "RecursionError" in test.message for test in tests)


def _frames(test: TestResult) -> list[tuple[str, int]]:
    frames = []
    for match in _FRAME.finditer(test.details):
        quoted, line, bare, other_line = match.groups()
        frames.append((quoted or bare, int(line or other_line)))
    return frames


def _is_program(name: str, file: str | None, test: TestResult) -> bool:
    base = PurePath(name).name
    if file is not None:
        return base == file
    is_test = base.startswith("test_") or base.endswith("_test.py") or base == "conftest.py"
    is_installed = "site-packages" in name or "/lib/python" in name
    same_as_test = test.file is not None and PurePath(test.file).name == base
    return not (is_test or is_installed or same_as_test)


def _weigh_functions(
    program: Program, entry: FeedbackEntry, failing: list[TestResult], lines: dict[int, float]
) -> dict[str, float]:
    """The suspicion of each function by dotted name; empty when there is no hint at all."""
    names = {site.scope.name for site in program.sites if site.scope.name}
    weights: dict[str, float] = {}
    for site in program.sites:
        hits = sum(lines.get(line, 0.0) for line in _lines_of(site))
        if hits and site.function:
            weights[site.function] = max(weights.get(site.function, 0.0), min(1.0, 0.5 + hits))
    failed_words, passed_words = (
        _words(failing),
        _words([test for test in visible_tests(entry) if test.status is TestStatus.PASSED]),
    )
    for name in sorted(names):
        last = name.rsplit(".", 1)[-1]
        share = failed_words.get(last, 0) / max(len(failing), 1)
        if share:
            cleared = passed_words.get(last, 0) / max(len(entry.suite_result.tests), 1)
            weights[name] = max(weights.get(name, 0.0), 0.4 + 0.6 * share - 0.3 * cleared)
    _spread(program, weights)
    return weights


def _words(tests: list[TestResult]) -> dict[str, int]:
    """In how many tests each identifier is named; parts of a test's own name count as well."""
    counts: dict[str, int] = {}
    for test in tests:
        words = set(_WORD.findall(f"{test.message}\n{test.details}"))
        parts = [part for part in re.split(r"\W+", test.name) if part]
        for part in parts:
            pieces = part.split("_")
            for start in range(len(pieces)):
                for end in range(start + 1, len(pieces) + 1):
                    words.add("_".join(pieces[start:end]))
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    return counts


def _spread(program: Program, weights: dict[str, float]) -> None:
    """Give what suspicious functions use a share of their suspicion.

    That is the functions they call or hold, and the set-up of their class and of classes they make.
    """
    by_last: dict[str, list[str]] = {}
    uses: dict[str, set[str]] = {}
    held: dict[str, set[str]] = {}
    for site in program.sites:
        name = site.function
        if name:
            last = name.rsplit(".", 1)[-1]
            maker = name.split(".")[-2] if last in _SET_UP and "." in name else last
            known = by_last.setdefault(maker, [])
            if name not in known:
                known.append(name)
        if not name:
            held.update(dict.fromkeys(_stores(site), _reads(site)))
        for child in (node for top in headers(site.node) for node in ast.walk(top)):
            if isinstance(child, ast.Name):
                uses.setdefault(name, set()).add(child.id)
            elif isinstance(child, ast.Attribute):
                uses.setdefault(name, set()).add(child.attr)
    for names in uses.values():  # what a function reaches through a table of the module
        for name in sorted(names & program.module.assigned.keys()):
            names |= held.get(name, set())
    waiting = sorted(weights)
    while waiting:
        user = waiting.pop()
        given = weights[user] * _CALLED
        owner = user.split(".")[-2] if "." in user else ""
        used = [
            name for last in sorted({*uses.get(user, ()), owner}) for name in by_last.get(last, ())
        ]
        inner = [name for name in weights if name.startswith(f"{user}.")]
        for name in (*used, *inner):
            if given > _ELSEWHERE and weights.get(name, 0.0) < given:
                weights[name] = given
                waiting.append(name)


def _lines_of(site: Site) -> range:
    node = site.node
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return range(node.lineno, max(last, node.lineno) + 1)


def _weigh_statements(
    program: Program, functions: dict[str, float], lines: dict[int, float], *, is_endless: bool
) -> list[float]:
    traced_reads: dict[str, set[str]] = {}
    for site in program.sites:
        if any(line in lines for line in _lines_of(site)):
            reads = traced_reads.setdefault(site.function, set())
            reads.update(_reads(site))
    weights = []
    for site in program.sites:
        weight = _function_weight(site, functions) if functions else 1.0
        hits = max((lines.get(line, 0.0) for line in _lines_of(site)), default=0.0)
        weight *= 1.0 + _TRACED * hits
        if not hits and _stores(site) & traced_reads.get(site.function, set()):
            weight *= _FEEDS_TRACED
        if is_endless and (site.loops or isinstance(site.node, ast.While)):
            weight *= 1.5
        weights.append(max(weight, _ELSEWHERE))
    return weights


def _function_weight(site: Site, functions: dict[str, float]) -> float:
    name = site.function
    while name:
        if name in functions:
            return functions[name]
        name = name.rpartition(".")[0]
    return _ELSEWHERE if site.function else _MODULE_LEVEL


def _names(site: Site) -> list[ast.Name]:
    nodes = (node for top in headers(site.node) for node in ast.walk(top))
    return [node for node in nodes if isinstance(node, ast.Name)]


def _reads(site: Site) -> set[str]:
    return {name.id for name in _names(site) if isinstance(name.ctx, ast.Load)}


def _stores(site: Site) -> set[str]:
    return {name.id for name in _names(site) if isinstance(name.ctx, ast.Store)}
