"""Edits of values: names, attributes, calls, arguments, indices, slices, returned expressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from testgrad.agents.spot import Replacement, Spot, enclosed

_FAMILIES = (
    "any all",
    "min max",
    "sum len max min",
    "sorted list reversed set",
    "int float round abs",
    "floor ceil trunc",
    "str repr",
    "append extend add",
    "append appendleft",
    "pop popleft",
    "add remove discard",
    "union intersection difference symmetric_difference",
    "issubset issuperset isdisjoint",
    "keys values items",
    "startswith endswith",
    "strip lstrip rstrip",
    "find rfind index rindex",
    "split rsplit splitlines partition rpartition",
    "upper lower title capitalize casefold",
    "isalpha isdigit isalnum isspace isupper islower",
    "ljust rjust center",
    "group groups start end span",
    "match search fullmatch",
    "bisect_left bisect_right",
    "heappush heappop heapify heappushpop heapreplace",
    "sin cos tan",
    "log exp",
    "ValueError TypeError KeyError IndexError",
)
_SIBLINGS: dict[str, list[str]] = {}
for _family in _FAMILIES:
    for _name in _family.split():
        _others = [other for other in _family.split() if other != _name]
        _SIBLINGS[_name] = list(dict.fromkeys([*_SIBLINGS.get(_name, []), *_others]))
_OPPOSITES = (
    "left right,first last,min max,start end,start stop,low high,lo hi,lower upper,prev next,"
    "up down,"
    "in out,incoming outgoing,before after,source target,head tail,row col,width height,x y,"
    "key value,begin end,old new,parent child,top bottom,front back,add remove,push pop"
)
_SWAPS = {
    one: other
    for pair in _OPPOSITES.split(",")
    for one, other in (pair.split(), pair.split()[::-1])
}
_OFF_BY_ONE = {
    "Slice.lower": 0.9,
    "Slice.upper": 0.9,
    "Subscript.slice": 0.8,
    "Call.args": 0.5,
    "Compare.left": 0.3,
    "Compare.comparators": 0.5,
    "Return.value": 0.4,
    "Assign.value": 0.5,
    "AugAssign.value": 0.4,
    "BinOp.left": 0.25,
    "BinOp.right": 0.25,
    "Tuple.elts": 0.5,
    "keyword.value": 0.4,
    "IfExp.body": 0.3,
    "IfExp.orelse": 0.3,
}
_COMBINE = {
    "Call.args": 0.7,
    "Return.value": 0.8,
    "Yield.value": 0.4,
    "Assign.value": 0.6,
    "Compare.left": 0.3,
    "Compare.comparators": 0.3,
    "BinOp.left": 0.4,
    "BinOp.right": 0.4,
    "Subscript.slice": 0.4,
    "Slice.lower": 0.4,
    "Slice.upper": 0.4,
}
_RESULTS = frozenset({"Return.value", "Yield.value"})


def opposite(name: str) -> str | None:
    """The name with its first word that has an opposite replaced; None when none has."""
    words = re.split(r"(_|(?<=[a-z])(?=[A-Z]))", name)
    for index, word in enumerate(words):
        if word.lower() in _SWAPS:
            new = _SWAPS[word.lower()]
            words[index] = new.capitalize() if word[:1].isupper() else new
            return "".join(words)
    return None


def name(spot: Spot) -> Iterator[Replacement]:
    """Another name that is visible here, likelier when it seems to hold the same kind of value."""
    node = spot.node
    if not isinstance(node, ast.Name) or node.id in ("self", "cls"):
        return
    if spot.slot == "Call.func" or not spot.is_read():
        return
    mine, scope = spot.site.scope.kind(node.id), spot.site.scope
    reverse = opposite(node.id)
    for other in dict.fromkeys(spot.names):
        if other in (node.id, "self", "cls"):
            continue
        theirs = scope.kind(other)
        weight = 1.0 if theirs == mine else 0.6 if None in (mine, theirs) else 0.15
        yield other, weight * (2.0 if other == reverse else 1.0)


def target(spot: Spot) -> Iterator[Replacement]:
    """Another target of an assignment: a visible name or an item used in the function."""
    if spot.is_read() or isinstance(spot.node, ast.Tuple | ast.List | ast.Starred):
        return
    mine = spot.kind(spot.node)
    for other in dict.fromkeys(spot.names):
        if other not in ("self", "cls", spot.text):
            yield other, 0.5 if spot.site.scope.kind(other) == mine else 0.25
    for text, found in spot.others().items():
        if isinstance(found, ast.Subscript) and not isinstance(found.slice, ast.Slice):
            yield text, 1.0 if isinstance(spot.node, ast.Subscript) else 0.3


def callee(spot: Spot) -> Iterator[Replacement]:
    """Another function: of the same family (``any``, ``all``), or one of the program's own."""
    node = spot.node
    if isinstance(node, ast.Name) and spot.slot == "Call.func":
        for other in _SIBLINGS.get(node.id, ()):
            yield other, 0.5 if len(_SIBLINGS[node.id]) > 3 else 1.0
        for other, kind in {**spot.program.module.kinds, **spot.kinds}.items():
            if kind == "callable" and other != node.id and not other[:1].isupper():
                known = other in spot.program.module.assigned or other in spot.names
                yield other, (0.5 if known else 0.1)


def attribute(spot: Spot) -> Iterator[Replacement]:
    """Another attribute: of the same family, with an opposite name, or used in the program."""
    node = spot.node
    if not isinstance(node, ast.Attribute):
        return
    base = spot.program.text(node.value)
    reverse = opposite(node.attr)
    if reverse:
        yield f"{base}.{reverse}", 1.0
    for other in _SIBLINGS.get(node.attr, ()):
        yield f"{base}.{other}", 0.5
    is_method = spot.slot == "Call.func"
    for text, found in spot.program.expressions(spot.site.scope).items():
        if isinstance(found, ast.Attribute) and found.attr != node.attr:
            known = text.rsplit(".", 1)[0] == base
            weight = 0.5 if known else 0.2
            yield f"{base}.{found.attr}", weight * (0.5 if is_method else 1.0)
    if not is_method and isinstance(node.value, ast.Name | ast.Attribute):
        yield base, 0.3


def off_by_one(spot: Spot) -> Iterator[Replacement]:
    """One more or one less, where a number is an index, a bound, an argument or a result."""
    weight = _OFF_BY_ONE.get(spot.slot)
    if weight is None or isinstance(spot.node, ast.Constant) or not spot.is_read():
        return
    kind = spot.kind(spot.node)
    if kind not in ("number", None) or isinstance(spot.node, ast.Starred | ast.Lambda):
        return
    if isinstance(spot.parent, ast.Subscript) and isinstance(spot.node, ast.Tuple | ast.Slice):
        return
    if kind is None:
        weight *= 0.4
    if isinstance(spot.parent, ast.Call) and spot.program.text(spot.parent.func) == "range":
        weight = 1.0
    text = enclosed(spot.program, spot.node) if spot.is_loose("()") else spot.text
    yield f"{text} + 1", weight
    yield f"{text} - 1", weight


def arguments(spot: Spot) -> Iterator[Replacement]:
    """Two arguments, indices or elements swapped, or one dropped."""
    node = spot.node
    if isinstance(node, ast.Call):
        items: list[ast.expr] = node.args
    elif isinstance(node, ast.Tuple | ast.List):
        items = node.elts
    else:
        return
    for one, other in pairwise(items):
        yield _exchanged(spot, one, other), 1.0
    if len(items) > 2:
        yield _exchanged(spot, items[0], items[-1]), 0.5
    if len(items) > 1:
        for before, item in zip([None, *items], items, strict=False):
            yield _without(spot, before, item, items), 0.2
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        yield spot.program.text(node.args[0]), 1.0


def _exchanged(spot: Spot, one: ast.AST, other: ast.AST) -> str:
    program = spot.program
    start, end = program.span(spot.node)
    (a, b), (c, d) = program.span(one), program.span(other)
    data = program.data
    return (data[start:a] + data[c:d] + data[b:c] + data[a:b] + data[d:end]).decode()


def _without(spot: Spot, before: ast.AST | None, item: ast.AST, items: list[ast.expr]) -> str:
    program = spot.program
    start, end = program.span(spot.node)
    first, last = program.span(item)
    if before is not None:
        first = program.span(before)[1]
    else:
        last = program.span(items[1])[0]
    return (program.data[start:first] + program.data[last:end]).decode()


def container(spot: Spot) -> Iterator[Replacement]:
    """A list put around a value or taken away, an empty one filled."""
    node, program = spot.node, spot.program
    if isinstance(node, ast.List) and spot.is_read():
        if not node.elts:
            yield "[[]]", 1.0
            for other in spot.names:
                yield f"[{other}]", 0.8 if other in spot.site.scope.parameters else 0.3
        elif len(node.elts) == 1:
            yield program.text(node.elts[0]), 0.6
            yield "[]", 0.4
        else:
            yield "[]", 0.1
    elif spot.slot in _RESULTS and not isinstance(node, ast.Constant | ast.Compare):
        yield f"[{program.text(node)}]", 0.4
    if isinstance(node, ast.Subscript) and spot.is_read():
        yield program.text(node.value), 0.6


def sliced(spot: Spot) -> Iterator[Replacement]:
    """A part of a sequence instead of all of it, cut as elsewhere in the function; the reverse."""
    node = spot.node
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        base, cut = spot.program.text(node.value), node.slice
        for lower, upper in ((cut.lower, None), (None, cut.upper), (cut.upper, cut.lower)):
            if cut.step is None:
                yield f"{base}[{_bound(spot, lower)}:{_bound(spot, upper)}]", 1.0
        return
    useful = ("Call.args", "For.iter", "comprehension.iter", "Return.value", "Assign.value")
    if not isinstance(node, ast.Name) or spot.slot not in useful or not spot.is_read():
        return
    if spot.kind(node) not in ("container", None):
        return
    weight = 1.0 if spot.kind(node) else 0.4
    for text in _cuts(spot):
        yield f"{node.id}[{text}]", weight
    if spot.slot in ("For.iter", "comprehension.iter"):
        yield f"reversed({node.id})", 0.2
        yield f"list({node.id})", 0.2


def _bound(spot: Spot, bound: ast.expr | None) -> str:
    return spot.program.text(bound) if bound else ""


def _cuts(spot: Spot) -> list[str]:
    cuts: dict[str, None] = {}
    for found in spot.program.expressions(spot.site.scope).values():
        if isinstance(found, ast.Subscript) and isinstance(found.slice, ast.Slice):
            lower, upper = _bound(spot, found.slice.lower), _bound(spot, found.slice.upper)
            cuts.setdefault(f"{lower}:{upper}")
            cuts.setdefault(f"{upper}:{lower}")
    if cuts:
        cuts.setdefault("1:")
    cuts.pop(":", None)
    return list(cuts)


def combined(spot: Spot) -> Iterator[Replacement]:
    """The value and a visible name joined by an operator: ``k`` to ``k - offset``."""
    weight = _COMBINE.get(spot.slot)
    if weight is None or not spot.is_read() or isinstance(spot.node, ast.Constant | ast.Tuple):
        return
    kind = spot.kind(spot.node)
    if kind in ("truth", "object", "callable"):
        return
    text = enclosed(spot.program, spot.node)
    related = _compared_with(spot)
    for other in dict.fromkeys(spot.names):
        theirs = spot.site.scope.kind(other)
        if theirs in ("callable", "object") or (kind and theirs and kind != theirs):
            continue
        likely = weight * (3.0 if other in related else 1.0) * (1.0 if kind == theirs else 0.5)
        if "container" in (kind, theirs):
            yield f"{other} + {text}", likely
            yield f"{text} + {other}", likely
        else:
            yield f"{text} - {other}", likely
            yield f"{text} + {other}", likely * 0.6
            yield f"{text} * {other}", likely * (0.6 if other == text else 0.2)


def _compared_with(spot: Spot) -> set[str]:
    """Names that the function compares with the expression."""
    text = spot.text
    found: set[str] = set()
    for other in spot.program.expressions(spot.site.scope).values():
        if isinstance(other, ast.Compare):
            sides = [spot.program.text(side) for side in (other.left, *other.comparators)]
            if text in sides:
                found.update(side for side in sides if side != text and side.isidentifier())
    return found


def borrowed(spot: Spot) -> Iterator[Replacement]:
    """A name or an expression used elsewhere in the same function."""
    node, mine = spot.node, spot.kind(spot.node)
    if isinstance(node, ast.Constant | ast.Starred | ast.Slice | ast.Lambda):
        return
    if spot.slot in ("Call.func", "Expr.value", "Attribute.value", "For.target", *_RESULTS):
        return
    if not spot.is_read():
        return
    for text, other in spot.others().items():
        theirs = spot.kind(other)
        if isinstance(node, ast.Name):
            simple = isinstance(other, ast.Subscript | ast.Attribute)
            same = 1.0 if mine == theirs else 0.5 if None in (mine, theirs) else 0.1
            yield text, same * (0.4 if simple else 0.15)
        elif type(other) is type(node):
            yield text, 0.5
    if not isinstance(node, ast.Name):
        for other_name in dict.fromkeys(spot.names):
            theirs = spot.site.scope.kind(other_name)
            same = 1.0 if mine == theirs else 0.5 if None in (mine, theirs) else 0.1
            yield other_name, same * (0.7 if isinstance(node, ast.Call | ast.Subscript) else 0.3)


def result(spot: Spot) -> Iterator[Replacement]:
    """Another returned or yielded value: a name, a condition, an expression of the function."""
    if spot.slot not in _RESULTS:
        return
    node, is_truth = spot.node, spot.kind(spot.node) == "truth"
    for other in dict.fromkeys(spot.names):
        kind = spot.site.scope.kind(other)
        if kind == "callable":
            continue
        if not isinstance(node, ast.Name):
            yield other, 0.5
        if is_truth:
            if kind == "number":
                yield f"{other} == 0", 1.0
            yield f"not {other}", 0.8 if kind != "number" else 0.4
    for text, found in spot.others().items():
        if is_truth:
            yield text, 0.6 if isinstance(found, ast.Compare) else 0.1
        elif not isinstance(found, ast.Compare):
            yield text, 0.25 if isinstance(found, ast.Call) else 0.15
    if not is_truth:
        for text in ("[]", "None", "0", "True", "False"):
            yield text, 0.05


def clamped(spot: Spot) -> Iterator[Replacement]:
    """A running extreme: ``best = value`` to ``best = max(best, value)``, or cut off at zero."""
    match spot.site.node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if value is spot.node:
            pass
        case _:
            return
    if spot.kind(value) not in ("number", None) or isinstance(value, ast.Constant):
        return
    text, weight = spot.text, 1.0 if spot.site.loops else 0.2
    yield f"max({target}, {text})", weight
    yield f"min({target}, {text})", weight * 0.7
    yield f"max(0, {text})", weight * 0.6
