"""One expression in its place: what the edits of expressions look at.

A generator of edits takes a `Spot` and yields ``(text, weight)``: a new text for the expression
and how likely it is compared with the other edits of its kind at the same statement.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from testgrad.agents.source import Program, Site, guess, walk

Replacement = tuple[str, float]

_TIGHT = (
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.UnaryOp,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.Starred,
    ast.Await,
    ast.IfExp,
)
_SIMPLE = re.compile(r"[\w.]+\Z")
_LOOSE_NODES = (
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.UnaryOp,
    ast.IfExp,
    ast.Lambda,
    ast.NamedExpr,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
)


@dataclass(slots=True, eq=False)
class Spot:
    """An expression, the slot of its parent it fills, and the names it can see."""

    program: Program
    site: Site
    node: ast.expr
    parent: ast.AST
    slot: str
    """Class and field of the parent: ``"Call.args"``, ``"While.test"``, ``"Slice.lower"``."""
    names: list[str]

    @property
    def text(self) -> str:
        """The source text of the expression."""
        return self.program.text(self.node)

    @property
    def kinds(self) -> dict[str, str]:
        """What the names of the function seem to hold."""
        return self.site.scope.kinds

    def kind(self, node: ast.AST) -> str | None:
        """What an expression seems to give."""
        if isinstance(node, ast.Name):
            return self.site.scope.kind(node.id)
        return guess(node, self.kinds)

    def others(self) -> dict[str, ast.expr]:
        """The larger expressions of the same function by text, without those that are here."""
        inside = {
            self.program.text(child) for child in walk(self.node) if isinstance(child, ast.expr)
        }
        found = self.program.expressions(self.site.scope)
        return {
            text: node
            for text, node in found.items()
            if text not in inside and not isinstance(node, ast.Constant)
        }

    def is_loose(self, text: str) -> bool:
        """Whether a new text might need parentheses here."""
        return isinstance(self.parent, _TIGHT) and not _SIMPLE.match(text)

    def is_read(self) -> bool:
        """Whether the expression is evaluated, not assigned to or deleted."""
        return isinstance(getattr(self.node, "ctx", None), ast.Load | None)


def spots_of(program: Program, site: Site, tops: list[ast.expr]) -> Iterator[Spot]:
    """The spots of some expressions of a statement, in order of the text."""
    names = site.scope.visible(site.node.lineno, site.loop_end)
    for top in tops:
        slot = next((name for name, value in ast.iter_fields(site.node) if value is top), "value")
        yield from _spots(program, site, top, site.node, slot, names)


def _spots(
    program: Program, site: Site, node: ast.expr, parent: ast.AST, slot: str, names: list[str]
) -> Iterator[Spot]:
    yield Spot(program, site, node, parent, f"{type(parent).__name__}.{slot}", names)
    if not isinstance(node, ast.JoinedStr):
        own = _own_names(node)
        yield from _children(program, site, node, [*own, *names] if own else names)


def _children(program: Program, site: Site, node: ast.AST, names: list[str]) -> Iterator[Spot]:
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield from _spots(program, site, child, node, field, names)
            elif isinstance(child, ast.comprehension | ast.keyword | ast.Slice):
                yield from _children(program, site, child, names)


def _own_names(node: ast.expr) -> list[str]:
    """The names that a comprehension or a lambda binds for the expressions inside it."""
    if isinstance(node, ast.Lambda):
        return [argument.arg for argument in node.args.args]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        targets = [generator.target for generator in node.generators]
        return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
    return []


def enclosed(program: Program, node: ast.AST) -> str:
    """The text of an expression, in parentheses when it is an operation."""
    text = program.text(node)
    return f"({text})" if isinstance(node, _LOOSE_NODES) else text
