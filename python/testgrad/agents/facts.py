"""What the statements of one function do with its names: hints for statements that are missing."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from testgrad.agents.source import Program, Scope, Site, headers, walk

_FILLING = {"set": "add", "list": "append", "deque": "append"}
_FILLERS = ("append", "add", "extend", "update", "insert", "appendleft")
_RESULTS = ("[]", "None", "0", "False")


@dataclass(slots=True)
class Facts:
    """What a function does with its names, in order of the text."""

    unfilled: list[tuple[str, str]] = field(default_factory=list)
    """Collections created empty and never filled, with the method that would fill them."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Calls that fill a collection: ``("found.append", "item")``."""
    stale: list[str] = field(default_factory=list)
    """Variables set once, before a loop, that look as if the loop should set them."""
    results: list[str] = field(default_factory=list)
    """Short returned expressions."""


def facts_of(program: Program, scope: Scope) -> Facts:
    """The facts of a function, found once for each program."""
    known = program.memory.get(id(scope))
    if not isinstance(known, Facts):
        known = program.memory[id(scope)] = _Reader(program, scope).read()
    return known


class _Reader:
    """One walk over a function, the functions inside it and the one around it."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self.program, self.scope = program, scope
        self.created: dict[str, str] = {}
        self.filled: set[str] = set()
        self.bound: dict[str, int] = {}
        self.initial: set[str] = set()
        self.read_in_loop: dict[str, None] = {}
        self.calls: dict[tuple[str, str], None] = {}
        self.results: dict[str, None] = {}

    def read(self) -> Facts:
        for site in self.program.sites:
            if self.scope in (site.scope, site.scope.outer) or site.scope is self.scope.outer:
                self._statement(site)
                for top in headers(site.node):
                    for node in walk(top):
                        self._expression(node, is_looping=bool(site.loops))
        results = [text for text in dict.fromkeys((*self.results, *_RESULTS)) if len(text) < 30]
        unfilled = [
            (name, _FILLING[kind])
            for name, kind in self.created.items()
            if kind in _FILLING and name not in self.filled
        ]
        once = [name for name, times in self.bound.items() if times == 1]
        stale = [name for name in self.read_in_loop if name in once and name not in self.created]
        stale += [name for name in once if name in self.initial]
        return Facts(unfilled, list(self.calls), list(dict.fromkeys(stale)), results)

    def _statement(self, site: Site) -> None:
        match site.node:
            case ast.Return(value=ast.expr() as value):
                self.results.setdefault(self.program.text(value))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = _empty(value)
                if kind:
                    self.created[name] = kind
                if site.scope is self.scope and not site.loops and isinstance(value, ast.Constant):
                    self.initial.add(name)
            case ast.For(iter=iterable):
                for node in walk(iterable):
                    if isinstance(node, ast.Name):
                        self.read_in_loop.setdefault(node.id)

    def _expression(self, node: ast.AST, *, is_looping: bool) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                self.bound[name] = self.bound.get(name, 0) + (2 if is_looping else 1)
            case ast.Name(id=name) if is_looping:
                self.read_in_loop.setdefault(name)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=method), args=[argument]
            ) if method in _FILLERS:
                self.filled.add(name)
                self.calls.setdefault((f"{name}.{method}", self.program.text(argument)))
            case ast.Subscript(value=value, ctx=ast.Store()):
                self.filled.add(self.program.text(value))


def _empty(value: ast.expr) -> str | None:
    """The kind of collection that an expression makes empty; None when it makes none."""
    match value:
        case ast.List(elts=[]):
            return "list"
        case ast.Call(func=ast.Name(id="set" | "list" | "deque" as name), args=[]):
            return name
        case _:
            return None
