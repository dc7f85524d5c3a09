"""The programs that the demo breaks: modules of the standard library of the Python that runs it.

They are read where they are installed; nothing of them is kept here. A defect is a place in the
syntax tree and the token that goes there. Running and repairing them is not done here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path


@dataclass(frozen=True)
class Defect:
    """One token of one function, replaced: the `nth` token `old` becomes `new`.

    The function is named as in `__qualname__`, so the defect finds its place in every Python
    version in which the function still has that token. An empty `new` drops the token.
    """

    function: str
    old: str
    new: str
    nth: int = 0

    def __str__(self) -> str:
        change = f"{self.old} became {self.new}" if self.new else f"{self.old} was dropped"
        return f"{self.function}: {change}"

    def break_source(self, source: str) -> str | None:
        """Return the source with the defect, its layout kept, or None where it has no place."""
        lines = source.splitlines(keepends=True)
        for function in _functions(ast.parse(source), self.function):
            places = _places(source, function, self.old)
            if len(places) > self.nth:
                row, column = places[self.nth]
                line = lines[row - 1]
                rest = line[column + len(self.old) :]
                lines[row - 1] = line[:column] + (self.new + rest if self.new else rest.lstrip())
                return "".join(lines)
        return None


@dataclass(frozen=True)
class Program:
    """A module to break, and the defects to choose from; those with no place are passed over."""

    name: str
    defects: tuple[Defect, ...]

    def read_source(self) -> str:
        """Return the module's text, its accelerators bypassed so that the Python code runs.

        Raises:
            LookupError: this Python has the module only in binary form, or not at all.
        """
        path = inspect.getsourcefile(importlib.import_module(self.name))
        if path is None or not Path(path).is_file():
            raise LookupError(f"{self.name}: this Python has no source text of it")
        with tokenize.open(path) as file:
            return bypass_accelerators(file.read())

    def read_suite(self) -> str:
        """Return the text of the tests that judge the program."""
        suite = resources.files(__package__) / "suites" / f"{self.name}_suite.py"
        return suite.read_text(encoding="utf-8")

    def breakage(self, source: str, *, seed: int = 0) -> tuple[Defect, str]:
        """Choose a defect that has a place in the source: the seed says which is asked first.

        Returns: the defect, and the source with it.

        Raises:
            LookupError: none of the defects has a place.
        """
        first = seed % len(self.defects)
        for defect in self.defects[first:] + self.defects[:first]:
            broken = defect.break_source(source)
            if broken is not None:
                return defect, broken
        raise LookupError(f"{self.name}: no defect has a place in this Python's version of it")


def bypass_accelerators(source: str) -> str:
    """Let every `try` around an import of C code fail, so that what stands beside it is used.

    C code is a module, or a name in one, that begins with an underscore. Line numbers stay.
    """
    lines = source.splitlines(keepends=True)
    for statement in _guarded_imports(ast.parse(source)):
        last = statement.end_lineno or statement.lineno
        lines[statement.lineno - 1] = f"{' ' * statement.col_offset}raise ImportError\n"
        lines[statement.lineno : last] = ["\n"] * (last - statement.lineno)
    return "".join(lines)


def _guarded_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    for guard in tree.body:
        if isinstance(guard, ast.Try):
            for statement in guard.body:
                if isinstance(statement, ast.ImportFrom) and _is_accelerated(statement):
                    yield statement


def _is_accelerated(statement: ast.ImportFrom) -> bool:
    names = [statement.module or "", *(alias.name for alias in statement.names)]
    return any(name.startswith("_") for name in names)


def _functions(scope: ast.AST, qualname: str) -> Iterator[ast.FunctionDef]:
    """Find functions by qualified name, also where a module defines one within an `if` or `try`."""
    head, _, rest = qualname.partition(".")
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            if node.name != head:
                continue
            if rest:
                yield from _functions(node, rest)
            elif isinstance(node, ast.FunctionDef):
                yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _functions(node, qualname)


def _places(source: str, function: ast.FunctionDef, token: str) -> list[tuple[int, int]]:
    last = function.end_lineno or function.lineno
    return [
        found.start
        for found in tokenize.generate_tokens(io.StringIO(source).readline)
        if found.string == token and function.lineno <= found.start[0] <= last
    ]


PROGRAMS = (
    Program(
        "bisect",
        (
            Defect("insort_left", "bisect_left", "bisect_right"),
            Defect("bisect_left", "<", "<=", 2),
            Defect("insort_right", "is", "is not"),
        ),
    ),
    Program(
        "heapq",
        (
            Defect("heapify", "2", "3"),
            Defect("heappush", "-", "+"),
            Defect("heappushpop", "and", "or"),
        ),
    ),
    Program(
        "textwrap",
        (
            Defect("shorten", "1", "2"),
            Defect("indent", "True", "False"),
            Defect("TextWrapper._fix_sentence_endings", "==", "!="),
        ),
    ),
    Program(
        "statistics",
        (
            Defect("quantiles", "+", "-", 2),
            Defect("median", "-", "+"),
            Defect("covariance", "-", "+", 2),
        ),
    ),
    Program(
        "fractions",
        (
            Defect("Fraction.limit_denominator", "//", "/"),
            Defect("Fraction.__floor__", "//", "%"),
            Defect("Fraction.__ceil__", "//", "%"),
        ),
    ),
    Program(
        "shlex",
        (
            Defect("quote", "not", ""),
            Defect("join", "quote", "split"),
            Defect("split", "not", ""),
        ),
    ),
    Program(
        "difflib",
        (
            Defect("SequenceMatcher.ratio", "+", "-"),
            Defect("restore", "2", "3", 2),
            Defect("unified_diff", "1", "2"),
        ),
    ),
    Program(
        "calendar",
        (
            Defect("isleap", "or", "and"),
            Defect("timegm", "24", "25"),
            Defect("Calendar.itermonthdays", "+", "-"),
        ),
    ),
    Program(
        "colorsys",
        (
            Defect("hsv_to_rgb", "==", "!="),
            Defect("rgb_to_hsv", "==", "!="),
            Defect("hsv_to_rgb", "-", "+", 2),
        ),
    ),
    Program(
        "fnmatch",
        (
            Defect("fnmatchcase", "not", ""),
            Defect("translate", ">=", ">"),
            Defect("_translate", ">=", ">"),
        ),
    ),
    Program(
        "string",
        (
            Defect("capwords", "or", "and"),
            Defect("Template._invalid", "-", "+"),
            Defect("Formatter.convert_field", "==", "!=", 1),
        ),
    ),
    Program(
        "graphlib",
        (
            Defect("TopologicalSorter.add", "not", ""),
            Defect("TopologicalSorter.done", ">=", ">"),
            Defect("TopologicalSorter.is_active", "or", "and"),
        ),
    ),
    Program(
        "reprlib",
        (
            Defect("Repr.repr_str", ">", ">="),
            Defect("Repr.repr_dict", "-", "+"),
            Defect("Repr._repr_iterable", ">", ">="),
        ),
    ),
    Program(
        "getopt",
        (
            Defect("gnu_getopt", "!=", "=="),
            Defect("short_has_arg", "+", "-"),
            Defect("long_has_args", ">", ">="),
        ),
    ),
    Program(
        "base64",
        (
            Defect("a85decode", "-", "+", 3),
            Defect("_85encode", "4", "5"),
            Defect("b85decode", "5", "6"),
        ),
    ),
    Program(
        "posixpath",
        (
            Defect("basename", "+", "-"),
            Defect("commonpath", "!=", "=="),
            Defect("relpath", "-", "+"),
        ),
    ),
)
