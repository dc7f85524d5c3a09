"""The edits of a program: a table of kinds, one generator each.

To add a kind, write a generator in `operators`, `values` or `statements` and give it a line here.
The priors say how often a defect of the kind is met in practice; they follow the order of the
single-statement bugs counted in ManySStuBs4J (Karampatsis and Sutton 2020): wrong identifier,
wrong operator, number or argument first, added and removed statements later.
"""

from __future__ import annotations

import ast
import difflib
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from testgrad.agents import operators, statements, values
from testgrad.agents.source import Identity, Program, Site, headers
from testgrad.agents.spot import Replacement, Spot, spots_of

EXPRESSION_KINDS: dict[str, tuple[float, Callable[[Spot], Iterator[Replacement]]]] = {
    "comparison": (1.0, operators.comparison),
    "boundary": (0.12, operators.boundary),
    "arithmetic": (0.8, operators.arithmetic),
    "operands": (0.5, operators.operands),
    "logic": (0.7, operators.logic),
    "condition": (0.6, operators.condition),
    "constant": (0.9, operators.constant),
    "name": (1.0, values.name),
    "target": (0.35, values.target),
    "callee": (0.7, values.callee),
    "attribute": (0.7, values.attribute),
    "off_by_one": (0.7, values.off_by_one),
    "arguments": (0.8, values.arguments),
    "container": (0.4, values.container),
    "sliced": (0.35, values.sliced),
    "combined": (0.35, values.combined),
    "borrowed": (0.35, values.borrowed),
    "result": (0.45, values.result),
    "clamped": (0.3, values.clamped),
}
STATEMENT_KINDS: dict[str, tuple[float, Callable[[Program, Site], Iterator[statements.Splice]]]] = {
    "dropped": (0.3, statements.dropped),
    "reordered": (0.3, statements.reordered),
    "augmented": (0.8, statements.augmented),
    "rephrased": (0.3, statements.rephrased),
    "added": (0.3, statements.added),
}
PRIORS = {name: prior for name, (prior, _) in [*EXPRESSION_KINDS.items(), *STATEMENT_KINDS.items()]}
_CROWDING = 0.4
"""0: every edit of a kind weighs the same; 1: a kind's weight is shared among its edits."""
_TIE_BREAK = 0.2


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of the program's bytes, its new text, and how likely it is to be a repair."""

    kind: str
    first: int
    last: int
    text: str
    score: float
    is_loose: bool
    """Whether the new text may need parentheses where it stands."""


def edits_of(
    program: Program, site: Site, seed: int, *, loop_risk: float = 0.5
) -> dict[str, list[Edit]]:
    """The edits of one statement by kind, the likeliest first, ties broken by the seed.

    Args:
        program: the program to edit.
        site: one of its statements.
        seed: breaks ties.
        loop_risk: factor for edits that can make a ``while`` loop endless.
    """
    found: dict[str, dict[tuple[int, int, str], tuple[float, bool]]] = {}
    for kind, first, last, text, weight, is_loose in _raw_edits(program, site, loop_risk):
        bucket = found.setdefault(kind, {})
        known = bucket.get((first, last, text))
        if known is None or known[0] < weight:
            bucket[first, last, text] = (weight, is_loose)
    generator = random.Random(f"{seed}:{site.key}")
    ranked = {}
    for kind, bucket in found.items():
        total = sum(weight for weight, _ in bucket.values()) or 1.0
        share = PRIORS[kind] / max(total, 1.0) ** _CROWDING
        edits = [
            Edit(kind, *place, weight * share * generator.uniform(1 - _TIE_BREAK, 1), is_loose)
            for place, (weight, is_loose) in bucket.items()
        ]
        ranked[kind] = sorted(edits, key=lambda edit: -edit.score)
    return ranked


def _raw_edits(
    program: Program, site: Site, loop_risk: float
) -> Iterator[tuple[str, int, int, str, float, bool]]:
    for spot in spots_of(program, site, headers(site.node)):
        first, last = program.span(spot.node)
        before = spot.text
        risk = loop_risk if _governs_loop(site) else 1.0
        for kind, (_, generator) in EXPRESSION_KINDS.items():
            for text, weight in generator(spot):
                if text != before:
                    yield kind, first, last, text, weight * risk, spot.is_loose(text)
    for kind, (_, statement_generator) in STATEMENT_KINDS.items():
        for first, last, text, weight in statement_generator(program, site):
            risk = loop_risk if kind != "added" and _feeds_loop(site) else 1.0
            yield kind, first, last, text, weight * risk, False


def _governs_loop(site: Site) -> bool:
    return isinstance(site.node, ast.While) or _feeds_loop(site)


def _feeds_loop(site: Site) -> bool:
    """Whether the statement sets a name that the condition of a loop around it reads."""
    tests = [loop.test for loop in site.loops if isinstance(loop, ast.While)]
    if not tests:
        return False
    read = {n.id for test in tests for n in ast.walk(test) if isinstance(n, ast.Name)}
    tops = headers(site.node) if not isinstance(site.node, ast.If) else []
    for top in tops:
        for child in ast.walk(top):
            if isinstance(child, ast.Name) and child.id in read:
                stored = isinstance(child.ctx, ast.Store)
                if stored or isinstance(site.node, ast.AugAssign | ast.Expr):
                    return True
    return False


def apply(program: Program, edit: Edit) -> tuple[str, Identity] | None:
    """The program after an edit and its identity; None when that is no program or no change.

    Parentheses are added only where the tree would be another without them.
    """
    plain = program.replace(edit.first, edit.last, edit.text)
    if edit.is_loose:
        safe = program.replace(edit.first, edit.last, f"({edit.text})")
        if plain is None or (safe is not None and safe[1] != plain[1]):
            plain = safe
    if plain is None or plain[1] == program.identity or not math.isfinite(edit.score):
        return None
    return plain


_TOKEN = re.compile(r"\w+|[-+*/%<>=!&|^:]+|\s+|.")


def describe_edit(before: str, after: str) -> str:
    r"""One line that says what changed between two versions: ``line 12: '<' -> '<='``.

    Of several changed places the first is shown and the rest are counted.

    Example:
        >>> describe_edit("if a < b:\\n    pass\n", "if a <= b:\\n    pass\n")
        "line 1: '<' -> '<='"
    """
    old, new = before.splitlines(), after.splitlines()
    blocks = [
        block
        for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if block[0] != "equal"
    ]
    if not blocks:
        return "no change"
    parts = []
    for tag, start, end, new_start, new_end in blocks[:1]:
        removed = " / ".join(line.strip() for line in old[start:end])
        inserted = " / ".join(line.strip() for line in new[new_start:new_end])
        if tag == "insert":
            parts.append(f"line {new_start + 1}: added {inserted!r}")
        elif tag == "delete":
            parts.append(f"line {start + 1}: removed {removed!r}")
        else:
            was, becomes = _core(removed, inserted)
            parts.append(f"line {start + 1}: {was!r} -> {becomes!r}")
    more = f" (and {len(blocks) - 1} more)" if len(blocks) > 1 else ""
    return "; ".join(parts) + more


def _core(old: str, new: str) -> tuple[str, str]:
    """The parts of two lines between their common beginning and their common end, in tokens."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    if start + end in (len(a), len(b)) and start:  # nothing on one side: show a neighbour too
        start -= 2 if a[start - 1].isspace() and start > 1 else 1
    while end and not (
        _is_balanced(a[start : len(a) - end]) and _is_balanced(b[start : len(b) - end])
    ):
        end -= 1
    return "".join(a[start : len(a) - end]).strip(), "".join(b[start : len(b) - end]).strip()


def _is_balanced(tokens: list[str]) -> bool:
    text = "".join(tokens)
    return all(text.count(one) == text.count(other) for one, other in ("()", "[]", "{}"))
