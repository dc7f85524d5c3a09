"""Edits of operators, constants and conditions: the classic mutations of program testing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from testgrad.agents.source import Program
from testgrad.agents.spot import Replacement, Spot, enclosed

_COMPARISONS: dict[str, tuple[tuple[str, float], ...]] = {
    "<": (("<=", 1.0), (">", 0.5), (">=", 0.35), ("!=", 0.1)),
    "<=": (("<", 1.0), (">=", 0.5), (">", 0.35), ("==", 0.1)),
    ">": ((">=", 1.0), ("<", 0.5), ("<=", 0.35), ("!=", 0.1)),
    ">=": ((">", 1.0), ("<=", 0.5), ("<", 0.35), ("==", 0.1)),
    "==": (("!=", 1.0), ("<=", 0.3), (">=", 0.3), ("in", 0.05)),
    "!=": (("==", 1.0), ("<", 0.2), (">", 0.2)),
    "is": (("is not", 1.0), ("==", 0.1)),
    "is not": (("is", 1.0), ("!=", 0.1)),
    "in": (("not in", 1.0),),
    "not in": (("in", 1.0),),
}
AUGMENTED: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1.0), ("*", 0.5)),
    "-": (("+", 1.0), ("*", 0.3), ("//", 0.05)),
    "*": (("/", 0.5), ("+", 0.5), ("**", 0.4), ("//", 0.3), ("-", 0.2)),
    "/": (("//", 1.0), ("*", 0.9), ("%", 0.2)),
    "//": (("/", 1.0), ("%", 0.6), ("*", 0.6)),
    "%": (("//", 1.0), ("/", 0.3), ("*", 0.3)),
    "**": (("*", 1.0),),
    "<<": ((">>", 1.0),),
    ">>": (("<<", 1.0),),
    "&": (("|", 1.0), ("^", 0.8)),
    "|": (("&", 1.0), ("^", 0.8)),
    "^": (("&", 1.0), ("|", 0.8)),
}
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.And: "and",
    ast.Or: "or",
}
_CONDITION_SLOTS = frozenset(
    {"If.test", "While.test", "IfExp.test", "Assert.test", "comprehension.ifs", "BoolOp.values"}
)


def _operator_span(program: Program, left: ast.AST, right: ast.AST, symbol: str) -> tuple[int, int]:
    first, last = program.span(left)[1], program.span(right)[0]
    gap = program.data[first:last].decode()
    pattern = r"\s+".join(re.escape(word) for word in symbol.split())
    match = re.search(pattern, gap)
    if match is None:  # a comment or a line break within `is not`
        return first, first
    before = len(gap[: match.start()].encode())
    return first + before, first + before + len(match.group())


def _with_operator(spot: Spot, left: ast.AST, right: ast.AST, symbol: str, new: str) -> str | None:
    first, last = _operator_span(spot.program, left, right, symbol)
    if first == last:
        return None
    start, end = spot.program.span(spot.node)
    data = spot.program.data
    return (data[start:first] + new.encode() + data[last:end]).decode()


def comparison(spot: Spot) -> Iterator[Replacement]:
    """Another comparison: ``<`` to ``<=``, ``==`` to ``!=``, ``in`` to ``not in``."""
    if not isinstance(spot.node, ast.Compare):
        return
    operands = [spot.node.left, *spot.node.comparators]
    for operator, left, right in zip(spot.node.ops, operands, operands[1:], strict=False):
        symbol = SYMBOLS[type(operator)]
        for new, weight in _COMPARISONS[symbol]:
            text = _with_operator(spot, left, right, symbol, new)
            if text is not None:
                yield text, weight


def boundary(spot: Spot) -> Iterator[Replacement]:
    """Comparison and bound at once: ``len(xs) == 0`` to ``len(xs) <= 1``."""
    match spot.node:
        case ast.Compare(left=left, ops=[operator], comparators=[ast.Constant(value=int(bound))]):
            symbol = SYMBOLS[type(operator)]
            if isinstance(bound, bool) or symbol not in ("<", "<=", ">", ">=", "==", "!="):
                return
            for new in ("<=", "<", ">=", ">"):
                for number in (bound + 1, bound - 1):
                    if new != symbol:
                        weight = 1.0 if new == "<=" or symbol != "==" else 0.5
                        yield f"{enclosed(spot.program, left)} {new} {number}", weight


def arithmetic(spot: Spot) -> Iterator[Replacement]:
    """Another arithmetic or bitwise operator."""
    if isinstance(spot.node, ast.BinOp):
        symbol = SYMBOLS.get(type(spot.node.op), "@")
        for new, weight in AUGMENTED.get(symbol, ()):
            text = _with_operator(spot, spot.node.left, spot.node.right, symbol, new)
            if text is not None:
                yield text, weight


def operands(spot: Spot) -> Iterator[Replacement]:
    """The operands swapped, or one of them alone."""
    if not isinstance(spot.node, ast.BinOp):
        return
    program, left, right = spot.program, spot.node.left, spot.node.right
    symbol = SYMBOLS.get(type(spot.node.op), "@")
    numeric = "number" in (spot.kind(left), spot.kind(right))
    if not (numeric and symbol in ("+", "*", "&", "|", "^")):
        yield f"{enclosed(program, right)} {symbol} {enclosed(program, left)}", 1.0
    for kept, dropped in ((left, right), (right, left)):
        yield program.text(kept), 0.8 if isinstance(dropped, ast.Constant) else 0.4


def logic(spot: Spot) -> Iterator[Replacement]:
    """``and`` for ``or`` and the reverse, a conjunct dropped, ``not`` dropped."""
    match spot.node:
        case ast.BoolOp(op=operator, values=values):
            symbol = SYMBOLS[type(operator)]
            parts = [enclosed(spot.program, value) for value in values]
            other = "or" if symbol == "and" else "and"
            if len(values) == 2:
                text = _with_operator(spot, values[0], values[1], symbol, other)
                if text is not None:
                    yield text, 1.0
            else:
                yield f" {other} ".join(parts), 0.7
            for index in range(len(parts)):
                rest = parts[:index] + parts[index + 1 :]
                yield f" {symbol} ".join(rest) if len(rest) > 1 else rest[0], 0.6
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield spot.program.text(operand), 1.0
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield spot.program.text(operand), 1.0
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition = spot.program.text(test)
            yes, no = enclosed(spot.program, body), enclosed(spot.program, orelse)
            yield f"{no} if {condition} else {yes}", 1.0


def condition(spot: Spot) -> Iterator[Replacement]:
    """A condition negated, made stricter or laxer by a guard, or replaced by a name."""
    if spot.slot not in _CONDITION_SLOTS:
        return
    node, text = spot.node, enclosed(spot.program, spot.node)
    if not isinstance(node, ast.Compare) and not (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield f"not {text}", 1.0
    if isinstance(node, ast.Constant):
        for name in spot.names:
            yield name, 1.5 if spot.site.scope.kind(name) == "container" else 0.4
        return
    if spot.slot == "BoolOp.values":
        return
    for holder in _holders(spot):
        yield f"{holder} is None or {text}", 0.8
        yield f"{holder} is not None and {text}", 0.6
    used = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    for name in spot.names:
        if name in used or spot.site.scope.kind(name) in ("callable", "object"):
            continue
        certain = 0.6 if spot.site.scope.kind(name) == "container" else 0.2
        yield f"{text} or not {name}", certain
        yield f"{name} and {text}", certain * 0.6


def _holders(spot: Spot) -> list[str]:
    """What the condition takes attributes or items of, outermost object first."""
    found: dict[str, None] = {}
    for child in ast.walk(spot.node):
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name | ast.Attribute):
            found.setdefault(spot.program.text(child.value))
    return sorted(found, key=len)


def constant(spot: Spot) -> Iterator[Replacement]:
    """Another constant: one more, one less, the sign, zero, one, or one of the same function."""
    if not isinstance(spot.node, ast.Constant) or isinstance(spot.parent, ast.JoinedStr):
        return
    value = spot.node.value
    if isinstance(value, bool):
        yield str(not value), 1.0
    elif isinstance(value, int):
        yield from _numbers(spot, value)
    elif isinstance(value, float):
        for new, weight in ((-value, 0.6), (value + 1, 0.6), (value - 1, 0.6), (value * 2, 0.3)):
            yield repr(new), weight
        for new, weight in ((value / 2, 0.3), (0.0, 0.3), (1.0, 0.3)):
            yield repr(new), weight
    elif isinstance(value, str):
        if value:
            yield '""', 0.5
        for other in _constants(spot, str):
            yield other, 0.4
    elif value is None:
        for text, weight in (("0", 0.3), ("False", 0.3), ("[]", 0.2), ("True", 0.2)):
            yield text, weight


def _numbers(spot: Spot, value: int) -> Iterator[Replacement]:
    for number, weight in ((value + 1, 1.0), (value - 1, 1.0), (0, 0.5), (1, 0.5), (-value, 0.4)):
        yield str(number), weight
    if abs(value) > 2:
        for number in (value * 2, value // 2, value * 10, value // 10):
            yield str(number), 0.15
    for other in _constants(spot, int):
        yield other, 0.3
    if value in (0, 1):
        yield str(bool(value)), 0.05


def _constants(spot: Spot, kind: type) -> list[str]:
    found = spot.program.expressions(spot.site.scope)
    texts = [
        text
        for text, node in found.items()
        if isinstance(node, ast.Constant) and type(node.value) is kind and len(text) < 40
    ]
    return texts[:8]
