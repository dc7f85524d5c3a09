"""A Python program as text and as a syntax tree at once.

Knows where each statement lies, which names it can see, and how to replace a span of the
text and keep everything around it. Knows nothing of edits, tests or rewards.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

Identity = tuple[int, ...]

_CONTAINER_METHODS = re.compile(
    "append|extend|insert|pop|popleft|appendleft|add|update|remove|discard|sort|items|keys|values"
    "|count|index|setdefault|get|clear|reverse"
)
_NUMERIC = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REUSABLE = (ast.Compare, ast.Call, ast.Subscript, ast.Attribute, ast.Constant)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True, eq=False)
class Scope:
    """The names of one function, and what the program seems to keep in them."""

    node: ast.AST
    name: str
    outer: Scope | None
    parameters: list[str] = field(default_factory=list)
    assigned: dict[str, int] = field(default_factory=dict)
    """Local name to the first line that binds it."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Name to ``"number"``, ``"container"``, ``"callable"`` or ``"object"``, where usage tells."""

    def kind(self, name: str) -> str | None:
        """What the name seems to hold; None when its usage does not tell."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.kinds:
                return scope.kinds[name]
            scope = scope.outer
        return None

    def visible(self, line: int, loop_end: int) -> list[str]:
        """The local names bound at a line, nearest scope first; module names are left out.

        A name counts when it is a parameter, bound on an earlier line, or bound before
        ``loop_end``, the end of the outermost loop around the line.
        """
        names: dict[str, None] = {}
        scope: Scope | None = self
        while scope is not None and scope.name:
            if isinstance(scope.node, ast.ClassDef) and scope is not self:
                scope = scope.outer
                continue
            for name in scope.parameters:
                names.setdefault(name)
            for name, first in scope.assigned.items():
                if first < line or first <= loop_end or scope is not self:
                    names.setdefault(name)
            scope = scope.outer
        return list(names)


@dataclass(slots=True, eq=False)
class Site:
    """One statement with its surroundings; of a compound statement, its header."""

    node: ast.stmt
    scope: Scope
    block: list[ast.stmt]
    index: int
    loops: tuple[ast.For | ast.While | ast.AsyncFor, ...]
    parents: tuple[ast.stmt, ...]
    key: str
    """Function name and text: the same statement in another version of the program."""

    @property
    def function(self) -> str:
        """Dotted name of the function or class around the statement; empty at module level."""
        return self.scope.name

    @property
    def loop_end(self) -> int:
        """Last line of the outermost loop around the statement; 0 outside loops."""
        return (self.loops[0].end_lineno or 0) if self.loops else 0


class Program:
    """A parsed program whose parts can be replaced in place."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.data = source.encode()
        self.tree = ast.parse(source)
        self._lines = [0]
        for line in self.data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._starts = [self._first_byte(node) for node in self.tree.body]
        self._digests = [_digest(node) for node in self.tree.body]
        self.module = Scope(self.tree, "", None)
        self.sites: list[Site] = []
        self.memory: dict[int, object] = {}
        """What others have found out about a scope, by its `id`."""
        self._expressions: dict[int, dict[str, ast.expr]] = {}
        _Collector(self).collect()

    @property
    def identity(self) -> Identity:
        """What the program means to the compiler: equal for equal syntax trees."""
        return tuple(self._digests)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte and the byte after the last of a node that has a position."""
        assert isinstance(node, ast.expr | ast.stmt)
        first = self._lines[node.lineno - 1] + node.col_offset
        last = self._lines[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        return first, last

    def text(self, node: ast.AST) -> str:
        """The source text of a node."""
        first, last = self.span(node)
        return self.data[first:last].decode()

    def line_of(self, offset: int) -> int:
        """The line number, from 1, of a byte."""
        return bisect_right(self._lines, offset)

    def whole_lines(self, node: ast.stmt) -> tuple[int, int] | None:
        """The bytes of the lines a statement fills; None when it shares a line with another."""
        first, last = self._first_byte(node), self.span(node)[1]
        start = self._lines[self.line_of(first) - 1]
        end = self._lines[min(node.end_lineno or 1, len(self._lines) - 1)]
        before, after = self.data[start:first], self.data[last:end].strip()
        if before.strip() or (after and not after.startswith(b"#")):
            return None
        return start, end

    def replace(self, first: int, last: int, text: str) -> tuple[str, Identity] | None:
        """The program with some bytes replaced; None when that is no program."""
        index = max(bisect_right(self._starts, first) - 1, 0)
        if index >= len(self._starts):
            return None
        start = self._starts[index]
        following = self._starts[index + 1 :]
        end = following[0] if following else len(self.data)
        new = text.encode()
        if last > end or first < start:
            return None
        segment = self.data[start:first] + new + self.data[last:end]
        try:
            nodes = ast.parse(segment).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        digests = [_digest(node) for node in nodes]
        identity = (*self._digests[:index], *digests, *self._digests[index + 1 :])
        return (self.data[:first] + new + self.data[last:]).decode(), identity

    def expressions(self, scope: Scope) -> dict[str, ast.expr]:
        """The expressions of a function that other places could use: text to first node."""
        if id(scope) not in self._expressions:
            found: dict[str, ast.expr] = {}
            for site in self.sites:
                if site.scope is scope:
                    for top in headers(site.node):
                        for node in walk(top):
                            if isinstance(node, _REUSABLE):
                                found.setdefault(self.text(node), node)
            self._expressions[id(scope)] = found
        return self._expressions[id(scope)]

    def _first_byte(self, node: ast.stmt) -> int:
        decorators = getattr(node, "decorator_list", ())
        line: int = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        return self._lines[line - 1] + node.col_offset


def _digest(node: ast.AST) -> int:
    """A number that tells trees apart within this process."""
    return hash(ast.dump(node))


def headers(node: ast.stmt) -> list[ast.expr]:
    """The expressions a statement owns itself, without those of the statements inside it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        case ast.ClassDef() | ast.Import() | ast.ImportFrom() | ast.Try() | ast.TryStar():
            return []
        case ast.AnnAssign():
            return [node.target, *([node.value] if node.value else [])]
        case ast.If() | ast.While():
            return [node.test]
        case ast.For() | ast.AsyncFor():
            return [node.target, node.iter]
        case ast.With() | ast.AsyncWith():
            return [item.context_expr for item in node.items]
        case ast.Match():
            return [node.subject]
        case _:
            return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in order of the text; the inside of f-strings is left out.

    Their parts have no reliable positions before Python 3.12.
    """
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from walk(child)


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a bare string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


class _Collector:
    """One walk over the tree that finds statements, scopes and the use of names."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def collect(self) -> None:
        self._block(self.program.tree.body, self.program.module, (), ())
        for site in self.program.sites:
            for top in headers(site.node):
                for node in walk(top):
                    _note_use(node, site.scope.kinds)
            _note_binding(site.node, site.scope.kinds)

    def _block(
        self,
        block: list[ast.stmt],
        scope: Scope,
        loops: tuple[ast.For | ast.While | ast.AsyncFor, ...],
        parents: tuple[ast.stmt, ...],
    ) -> None:
        for index, node in enumerate(block):
            if is_docstring(node) or _is_main_guard(node):
                continue
            self._bind(node, scope)
            key = f"{scope.name}:{' '.join(self._header_text(node).split())}"
            self.program.sites.append(Site(node, scope, block, index, loops, parents, key))
            inner, inner_loops = scope, loops
            if isinstance(node, _FUNCTIONS):
                inner, inner_loops = self._function(node, scope), ()
            elif isinstance(node, ast.ClassDef):
                inner = Scope(node, _dotted(scope, node.name), scope)
            elif isinstance(node, ast.For | ast.While | ast.AsyncFor):
                inner_loops = (*loops, node)
            for body in _blocks(node):
                self._block(body, inner, inner_loops, (*parents, node))

    def _header_text(self, node: ast.stmt) -> str:
        text = self.program.text(node)
        return text if not _blocks(node) else text.split("\n", 1)[0]

    def _function(self, node: FunctionNode, outer: Scope) -> Scope:
        scope = Scope(node, _dotted(outer, node.name), outer)
        arguments = node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            scope.parameters.append(argument.arg)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                scope.parameters.append(extra.arg)
        return scope

    def _bind(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            scope.assigned.setdefault(node.name, node.lineno)
            scope.kinds.setdefault(node.name, "callable")
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                scope.kinds.setdefault((alias.asname or alias.name).split(".")[0], "object")
            return
        if isinstance(node, ast.With | ast.AsyncWith):
            targets: list[ast.AST] = [
                item.optional_vars for item in node.items if item.optional_vars
            ]
        else:
            targets = list(headers(node))
        for target in targets:
            for child in _own_names(target):
                if isinstance(child.ctx, ast.Store):
                    scope.assigned.setdefault(child.id, node.lineno)


def _own_names(node: ast.AST) -> Iterator[ast.Name]:
    """The names below a node, without those a comprehension or a lambda keeps to itself."""
    if isinstance(node, ast.Name):
        yield node
    elif not isinstance(node, ast.comprehension | ast.Lambda | ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _own_names(child)


def _note_use(node: ast.AST, kinds: dict[str, str]) -> None:
    def note(expression: ast.AST, kind: str) -> None:
        if isinstance(expression, ast.Name):
            kinds.setdefault(expression.id, kind)

    match node:
        case ast.Call(func=ast.Name(id="range"), args=arguments):
            for argument in arguments:
                note(argument, "number")
        case ast.Call(
            func=ast.Name(id="len" | "sorted" | "sum" | "enumerate"), args=[argument, *_]
        ):
            note(argument, "container")
        case ast.Call(func=function):
            note(function, "callable")
        case ast.Subscript(value=value, slice=index):
            note(value, "container")
            if isinstance(index, ast.Slice):
                for bound in (index.lower, index.upper):
                    note(bound or node, "number")
        case ast.Attribute(value=value, attr=attribute):
            note(value, "container" if _CONTAINER_METHODS.fullmatch(attribute) else "object")
        case ast.comprehension(iter=iterable):
            note(iterable, "container")
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _NUMERIC):
            note(left, "number")
            note(right, "number")
        case ast.BinOp(left=left, right=right):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, ast.Constant) and isinstance(one.value, int | float):
                    note(other, "number")
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            if isinstance(operator, ast.In | ast.NotIn):
                note(right, "container")
            for one, other in ((left, right), (right, left)):
                is_number = isinstance(one, ast.Constant) and type(one.value) in (int, float)
                if is_number or isinstance(operator, _ORDERED):
                    note(other, "number")


def _note_binding(node: ast.stmt, kinds: dict[str, str]) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            kind = guess(value, kinds)
            for target in targets:
                if kind and isinstance(target, ast.Name):
                    kinds.setdefault(target.id, kind)
        case ast.AugAssign(target=ast.Name(id=name), value=ast.Constant(value=int() | float())):
            kinds.setdefault(name, "number")
        case ast.For(iter=ast.Name(id=name)):
            kinds.setdefault(name, "container")
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
            kinds.setdefault(name, "number")


def guess(node: ast.AST, kinds: dict[str, str]) -> str | None:
    """What an expression seems to give: ``"number"``, ``"container"``, ``"truth"``, ... or None."""
    match node:
        case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return "truth"
        case ast.Constant(value=int() | float() | complex()):
            return "number"
        case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
            return "container"
        case ast.Constant():
            return "object"
        case ast.List() | ast.Tuple() | ast.Dict() | ast.Set():
            return "container"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return "container"
        case ast.Call(func=ast.Name(id="len" | "int" | "float" | "abs" | "sum" | "ord" | "round")):
            return "number"
        case ast.Call(
            func=ast.Name(id="list" | "set" | "dict" | "tuple" | "sorted" | "range" | "str")
        ):
            return "container"
        case ast.Subscript(slice=ast.Slice()):
            return "container"
        case ast.BinOp(op=operator) if isinstance(operator, _NUMERIC):
            return "number"
        case ast.BinOp(left=left, right=right):
            return guess(left, kinds) or guess(right, kinds)
        case ast.Name(id=name):
            return kinds.get(name)
        case _:
            return None


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    blocks[1:1] = [handler.body for handler in getattr(node, "handlers", [])]
    blocks += [case.body for case in getattr(node, "cases", [])]
    return [block for block in blocks if block]


def _dotted(scope: Scope, name: str) -> str:
    return f"{scope.name}.{name}" if scope.name else name


_MAIN = re.compile(r"__name__")


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and bool(_MAIN.search(ast.dump(node.test)))
