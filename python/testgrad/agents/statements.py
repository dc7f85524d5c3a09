"""Edits of whole statements: dropped, swapped, moved, added, or turned into another form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from testgrad.agents.facts import facts_of
from testgrad.agents.operators import AUGMENTED
from testgrad.agents.source import Program, Site, headers, walk

Splice = tuple[int, int, str, float]
"""First byte, byte after the last, the new text, and the weight among edits of its kind."""

_COMPOUND = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
    ast.Pass,
)


def dropped(program: Program, site: Site) -> Iterator[Splice]:
    """The statement removed; of an ``if`` or a ``with``, also only its header."""
    node = site.node
    lines = program.whole_lines(node)
    if isinstance(node, _COMPOUND) or lines is None:
        return
    indent = " " * node.col_offset
    size = (node.end_lineno or node.lineno) - node.lineno + 1
    replacement = f"{indent}pass\n" if len(site.block) == 1 else ""
    weight = 1.0 if size == 1 else 0.6 if size < 4 else 0.2
    if isinstance(node, ast.Return | ast.Raise):
        weight *= 0.3
    if not replacement and _is_first_binding(site):
        weight *= 0.1
    yield (*lines, replacement, weight)
    if isinstance(node, ast.If) and not node.orelse:
        body = _reindented(program, node.body, node.col_offset)
        if body is not None:
            yield (*lines, body, 0.8)


def _is_first_binding(site: Site) -> bool:
    names = [n.id for top in headers(site.node) for n in walk(top) if _is_store(n)]  # type: ignore[attr-defined]
    return any(site.scope.assigned.get(name) == site.node.lineno for name in names)


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _reindented(program: Program, block: list[ast.stmt], column: int) -> str | None:
    first, last = program.whole_lines(block[0]), program.whole_lines(block[-1])
    if first is None or last is None:
        return None
    return _shifted(program.data[first[0] : last[1]].decode(), block[0].col_offset, column)


def _shifted(text: str, old: int, new: int) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(
        " " * new + line[old:] if line[:old].isspace() or not old else line for line in lines
    )


def reordered(program: Program, site: Site) -> Iterator[Splice]:
    """The statement swapped with the next one, or moved out of its block or into the last one."""
    node, block, index = site.node, site.block, site.index
    lines = program.whole_lines(node)
    if isinstance(node, _COMPOUND) or lines is None:
        return
    text = program.data[lines[0] : lines[1]].decode()
    if not text.endswith("\n"):
        text += "\n"
    if index + 1 < len(block):
        after = program.whole_lines(block[index + 1])
        if after is not None and not isinstance(block[index + 1], _COMPOUND):
            between = program.data[lines[1] : after[0]].decode()
            following = program.data[after[0] : after[1]].decode()
            ending = "" if following.endswith("\n") else "\n"
            yield lines[0], after[1], f"{following}{ending}{between}{text}", 1.0
    if isinstance(node, ast.Break | ast.Continue):
        return
    weight = 0.8 if isinstance(node, ast.Return | ast.Expr | ast.Assign | ast.AugAssign) else 0.3
    parent = site.parents[-1] if site.parents else None
    outer = program.whole_lines(parent) if parent is not None else None
    if (
        isinstance(parent, ast.For | ast.While | ast.If)
        and outer is not None
        and index == len(block) - 1
        and len(block) > 1
        and lines[1] == outer[1]
    ):
        yield (*lines, _shifted(text, node.col_offset, parent.col_offset), weight)
    if index > 0:
        previous = block[index - 1]
        if isinstance(previous, ast.For | ast.While | ast.If) and previous.body:
            tail = (previous.orelse or previous.body)[-1]
            if program.whole_lines(tail) is not None and len(block) > 1:
                yield (*lines, _shifted(text, node.col_offset, tail.col_offset), weight * 0.6)


def augmented(program: Program, site: Site) -> Iterator[Splice]:
    """Another operator of an augmented assignment; ``=`` for ``+=`` and the reverse."""
    node = site.node
    if isinstance(node, ast.AugAssign):
        first, last = program.span(node.target)[1], program.span(node.value)[0]
        gap = program.data[first:last].decode()
        match = re.search(r"[^\s()\\]+=", gap)
        if match is None:
            return
        place = first + len(gap[: match.start()].encode())
        old = match.group()
        for new, weight in (*AUGMENTED.get(old[:-1], ()), ("", 0.4)):
            yield place, place + len(old), f"{new}=", weight
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_rebound(site):
        end, start = program.span(node.targets[0])[1], program.span(node.value)[0]
        if program.data[end:start].strip() == b"=":
            for new, weight in ((" += ", 1.0), (" -= ", 0.3), (" *= ", 0.1)):
                yield end, start, new, weight * (1.0 if site.loops else 0.3)


def _is_rebound(site: Site) -> bool:
    match site.node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            first = site.scope.assigned.get(name, 0)
            return name in site.scope.parameters or first < site.node.lineno
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            return True
        case _:
            return False


def rephrased(program: Program, site: Site) -> Iterator[Splice]:
    """``yield`` and ``yield from``; a call that changes an object as an assignment to it."""
    match site.node:
        case ast.Expr(value=ast.Yield(value=ast.expr() as value)):
            yield (*program.span(site.node), f"yield from {program.text(value)}", 1.0)
        case ast.Expr(value=ast.YieldFrom(value=value)):
            yield (*program.span(site.node), f"yield {program.text(value)}", 1.0)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=target), args=[argument], keywords=[])
        ) if isinstance(target, ast.Name | ast.Subscript | ast.Attribute):
            new, old = program.text(target), program.text(argument)
            yield (*program.span(site.node), f"{new} = {old}", 0.5)
        case ast.Expr(value=ast.Call() as call):
            yield (*program.span(site.node), f"return {program.text(call)}", 0.5)


def added(program: Program, site: Site) -> Iterator[Splice]:
    """A statement put before this one, or after it at the end of a block.

    The statements are modelled on the function: its own calls of methods with another name as
    the argument, a collection that is never filled, a variable that a loop reads and never sets.
    """
    node = site.node
    lines = program.whole_lines(node)
    if lines is None or isinstance(node, _COMPOUND) or not site.function:
        return
    places = [lines[0]]
    if site.index == len(site.block) - 1 and not isinstance(
        node, ast.Return | ast.Raise | ast.Break | ast.Continue
    ):
        places.append(lines[1])
    indent = " " * node.col_offset
    for place in places:
        missing = "" if not place or program.data[place - 1 : place] == b"\n" else "\n"
        for text, weight in _statements(program, site):
            block = text.replace("\n", f"\n{indent}")
            yield place, place, f"{missing}{indent}{block}\n", weight


def _statements(program: Program, site: Site) -> Iterator[tuple[str, float]]:
    scope, line = site.scope, site.node.end_lineno or site.node.lineno
    names = [n for n in scope.visible(line, site.loop_end) if scope.kind(n) != "callable"]
    facts = facts_of(program, scope)
    current = _loop_names(site)
    for collection, method in facts.unfilled:
        if collection in names:
            for name in names:
                if name != collection:
                    weight = 3.0 if name in current or not current else 1.5
                    yield f"{collection}.{method}({name})", weight
    for call, argument in facts.calls:
        holder = call.split(".", 1)[0]
        for name in names:
            if name not in (holder, argument) and holder in names:
                yield f"{call}({name})", 0.25
    for stale in facts.stale:
        if site.loops and stale in names:
            for name in names:
                if name != stale:
                    same = scope.kind(name) == scope.kind(stale)
                    yield f"{stale} = {name}", 0.6 if same else 0.4
    if site.node is site.block[0] and site.block is getattr(scope.node, "body", None):
        for name in scope.parameters:
            if scope.kind(name) in ("container", None):
                for value in facts.results:
                    yield f"if not {name}:\n    return {value}", 0.15


def _loop_names(site: Site) -> set[str]:
    """What the innermost loop around the statement runs over."""
    if site.loops and isinstance(site.loops[-1], ast.For):
        nodes = ast.walk(site.loops[-1].target)
        return {node.id for node in nodes if isinstance(node, ast.Name)}
    return set()
