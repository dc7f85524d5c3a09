"""Wrong programs made from right ones: mutants and stubs. For `testgrad.audit`.

A mutant is a program with one small edit of its syntax tree. Whether an edit changes what the
program does is not known here: some mutants are as right as the original.
"""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from ..agents.operators import SYMBOLS

Candidate = str | dict[str, str]

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Module)
_LONGEST_SNIPPET = 40

STUB_VALUES = ("None", "0", "''", "[]", "True")
"""What stubs return, as Python writes it: constants that are right answers now and then."""


class UnreadableError(ValueError):
    """A candidate that is no Python; says which file and why."""


@dataclass(frozen=True)
class Edit:
    """One change of a syntax tree: `owner.field`, or its item `index`, becomes `new`."""

    family: str
    description: str
    owner: ast.AST
    field: str
    index: int | None
    new: Any

    def applied(self, tree: ast.Module) -> str:
        """The program with this change; the tree is as before afterwards."""
        if self.index is None:
            old = getattr(self.owner, self.field)
            setattr(self.owner, self.field, self.new)
        else:
            items = getattr(self.owner, self.field)
            old, items[self.index] = items[self.index], self.new
        try:
            return ast.unparse(tree)
        finally:
            if self.index is None:
                setattr(self.owner, self.field, old)
            else:
                items[self.index] = old


def mutants(reference: Candidate, *, most: int, seed: int) -> list[tuple[str, Candidate]]:
    """Different wrong versions of a candidate, each with a description such as "line 4: < to <=".

    The families of edits take turns, and within a family the choice is random: a table of
    constants does not crowd out the rest. All compile, and no two are the same program.

    Args:
        reference: Code, or paths to texts, of which the Python files are edited.
        most: How many at most; there are fewer where the program has fewer places to edit.
        seed: Of the choice.

    Raises:
        UnreadableError: A file is no Python.
    """
    files = python_files(reference)
    trees = {path: parsed(text, path) for path, text in files.items()}
    generator = random.Random(seed)
    families: dict[str, list[tuple[str, Edit]]] = {}
    for path, tree in trees.items():
        for edit in edits(tree):
            families.setdefault(edit.family, []).append((path, edit))
    for family in families.values():
        generator.shuffle(family)
    queues = list(families.values())
    generator.shuffle(queues)
    seen = {(path, ast.unparse(tree)) for path, tree in trees.items()}
    found: list[tuple[str, Candidate]] = []
    while queues and len(found) < most:
        queue = queues.pop(0)
        path, edit = queue.pop()
        if queue:
            queues.append(queue)
        text = edit.applied(trees[path])
        if (path, text) not in seen and _compiles(text):
            seen.add((path, text))
            place = path if isinstance(reference, dict) else ""
            found.append((f"{place} {edit.description}".lstrip(), replaced(reference, path, text)))
    return found


def edits(tree: ast.Module) -> Iterator[Edit]:
    """All edits of a program, in the order of the text.

    Left alone is what tests rarely mean: docstrings, annotations, decorators, imports, the texts
    of raised exceptions, and the test for being the main program.
    """
    for scope, parent, node in _walk(tree, tree, tree):
        yield from _edits_of(node, parent, scope)


# -- the tree --------------------------------------------------------------------------------------


def _walk(node: ast.AST, parent: ast.AST, scope: ast.AST) -> Iterator[tuple[ast.AST, ...]]:
    yield scope, parent, node
    inner = node if isinstance(node, _SCOPES) else scope
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "format_spec"):
            continue
        if name == "test" and _is_main_guard(node):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child, node):
                yield from _walk(child, node, inner)


def _is_left_alone(child: ast.AST, parent: ast.AST) -> bool:
    if isinstance(child, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.pattern)):
        return True
    return _is_text_statement(child) or (
        isinstance(parent, ast.Raise) and child is parent.exc and _says_text_only(child)
    )


def _is_text_statement(node: ast.AST) -> bool:
    """A docstring, or an ellipsis."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _says_text_only(exception: ast.AST) -> bool:
    return isinstance(exception, ast.Call) and all(
        isinstance(argument, ast.JoinedStr)
        or (isinstance(argument, ast.Constant) and isinstance(argument.value, str))
        for argument in exception.args
    )


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


# -- the edits -------------------------------------------------------------------------------------


def _edits_of(node: ast.AST, parent: ast.AST, scope: ast.AST) -> Iterator[Edit]:
    line = f"line {getattr(node, 'lineno', 0)}"
    if isinstance(node, ast.Compare):
        for index, old in enumerate(node.ops):
            for new in _COMPARISONS[type(old)]:
                words = f"{line}: {SYMBOLS[type(old)]} to {SYMBOLS[new]}"
                yield Edit("comparison", words, node, "ops", index, new())
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        other = _ARITHMETIC.get(type(node.op))
        if other is not None and not _is_of_text(node):
            words = f"{line}: {SYMBOLS[type(node.op)]} to {SYMBOLS[other]}"
            yield Edit("arithmetic", words, node, "op", None, other())
    elif isinstance(node, ast.BoolOp):
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        words = f"{line}: {SYMBOLS[type(node.op)]} to {SYMBOLS[type(swapped)]}"
        yield Edit("and/or", words, node, "op", None, swapped)
    elif isinstance(node, ast.Constant):
        yield from _constant_edits(node, line)
    elif isinstance(node, ast.Slice):
        yield from _slice_edits(node, line)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        words = f"{line}: return {_snippet(node.value)} to return None"
        yield Edit("return", words, node, "value", None, ast.Constant(None))
    yield from _condition_edits(node)
    yield from _statement_edits(node, parent, scope)


def _is_of_text(node: ast.BinOp | ast.AugAssign) -> bool:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, (str, bytes)))
        for side in sides
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _constant_edits(node: ast.Constant, line: str) -> Iterator[Edit]:
    old = node.value
    new: tuple[object, ...] = ()
    if isinstance(old, bool):
        new = (not old,)
    elif isinstance(old, (int, float)):
        new = (old + 1, old - 1)
    elif isinstance(old, (str, bytes)) and old:
        new = (type(old)(),)
    for value in new:
        words = f"{line}: {_cut(repr(old))} to {value!r}"
        yield Edit("constant", words, node, "value", None, value)


def _slice_edits(node: ast.Slice, line: str) -> Iterator[Edit]:
    for field in ("lower", "upper"):
        bound = getattr(node, field)
        if bound is None:
            continue
        for operator in (ast.Add(), ast.Sub()):
            new = ast.BinOp(bound, operator, ast.Constant(1))
            words = f"{line}: {field} bound {_snippet(bound)} to {_snippet(new)}"
            yield Edit("slice", words, node, field, None, new)


def _condition_edits(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, (ast.If, ast.IfExp)) and not _is_main_guard(node):
        words = f"line {node.test.lineno}: if {_snippet(node.test)} negated"
        yield Edit("condition", words, node, "test", None, _negated(node.test))
    elif isinstance(node, ast.comprehension):
        for index, test in enumerate(node.ifs):
            words = f"line {test.lineno}: if {_snippet(test)} negated"
            yield Edit("condition", words, node, "ifs", index, _negated(test))


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)


def _statement_edits(node: ast.AST, parent: ast.AST, scope: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.stmt):
        return
    swap = {ast.Break: ("break", ast.Continue), ast.Continue: ("continue", ast.Break)}
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(parent, field, None)
        if not isinstance(statements, list) or node not in statements:
            continue
        index = statements.index(node)
        if type(node) in swap:
            word, other = swap[type(node)]
            words = f"line {node.lineno}: {word} to {_snippet(other())}"
            yield Edit("break/continue", words, parent, field, index, other())
        elif _can_go(node, scope):
            words = f"line {node.lineno}: {_snippet(node)} deleted"
            yield Edit("deletion", words, parent, field, index, ast.Pass())


def _can_go(node: ast.stmt, scope: ast.AST) -> bool:
    """Whether a program may well run without a statement.

    The only statement that binds a name has to stay: without it nothing but a NameError is tested.
    """
    if isinstance(node, (ast.Expr, ast.AugAssign, ast.Delete, ast.Raise, ast.Assert)):
        return True
    if not isinstance(node, ast.Assign):
        return False
    names = {
        part.id
        for target in node.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return all(_times_bound(name, scope) > 1 for name in names)


def _times_bound(name: str, scope: ast.AST) -> int:
    return sum(
        (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.arg) and part.arg == name)
        for part in ast.walk(scope)
    )


def _snippet(node: ast.AST) -> str:
    return _cut(" ".join(ast.unparse(ast.fix_missing_locations(node)).split()))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SNIPPET else text[: _LONGEST_SNIPPET - 1] + "…"


# -- stubs -----------------------------------------------------------------------------------------


def raising(reference: Candidate) -> Candidate | None:
    """The candidate with every function's body replaced by `raise NotImplementedError`.

    None where it has no functions.

    Raises:
        UnreadableError: A file is no Python.
    """
    return _with_bodies(reference, lambda _: "raise NotImplementedError")


def returning(reference: Candidate, value: str) -> Candidate | None:
    """The candidate with functions that only return this value, but `__init__` returns None.

    Methods with two underscores on both sides raise, since most may not return just anything. None
    where there are no functions.

    Raises:
        UnreadableError: A file is no Python.
    """
    return _with_bodies(reference, lambda _: f"return {value}")


def echoing(reference: Candidate) -> Candidate | None:
    """The same with functions that only return their first argument that is not self or cls.

    Raises:
        UnreadableError: A file is no Python.
    """
    return _with_bodies(reference, lambda function: f"return {_first_argument(function)}")


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _with_bodies(reference: Candidate, body: Callable[[_Function], str]) -> Candidate | None:
    changed: Candidate = reference
    for path, text in python_files(reference).items():
        tree = parsed(text, path)
        functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        for node in functions:
            node.body = _quietly(ast.parse, f"def f():\n    {_body(node, body)}").body[0].body
        if functions:
            changed = replaced(changed, path, ast.unparse(tree))
    return None if changed == reference else changed


def _body(function: _Function, body: Callable[[_Function], str]) -> str:
    wanted = body(function)
    is_special = function.name.startswith("__") and function.name.endswith("__")
    if is_special and wanted.startswith("return"):
        return "return None" if function.name == "__init__" else "raise NotImplementedError"
    return wanted


def _first_argument(function: _Function) -> str:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]
    return names[0] if names else "None"


# -- candidates ------------------------------------------------------------------------------------


def python_files(candidate: Candidate) -> dict[str, str]:
    """The Python files of a candidate by path; code alone has the path ""."""
    if isinstance(candidate, str):
        return {"": candidate}
    return {path: text for path, text in candidate.items() if path.endswith(".py")}


def replaced(candidate: Candidate, path: str, text: str) -> Candidate:
    """The candidate with another text in one of its files."""
    return text if isinstance(candidate, str) else {**candidate, path: text}


def parsed(text: str, path: str = "") -> ast.Module:
    """The syntax tree of a file.

    Raises:
        UnreadableError: It is no Python.
    """
    try:
        tree: ast.Module = _quietly(ast.parse, text)
        ast.unparse(tree)  # what is nested too deeply for this can be read but not edited
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"{path or 'the code'} is no Python: {error}") from error
    return tree


def _compiles(text: str) -> bool:
    try:
        _quietly(lambda code: compile(code, "mutant", "exec", dont_inherit=True), text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _quietly(read: Callable[[str], Any], text: str) -> Any:
    """Python warns of doubtful code; about other people's programs nobody asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(text)


def is_python(candidate: Candidate | None) -> TypeGuard[Candidate]:
    """Whether a candidate is Python that can be edited."""
    if candidate is None:
        return False
    files = python_files(candidate)
    try:
        for path, text in files.items():
            parsed(text, path)
    except UnreadableError:
        return False
    return bool(files)
