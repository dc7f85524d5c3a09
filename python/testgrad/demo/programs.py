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
    """A module to break, with the functions that its suite judges and the defects to choose from.

    `area` is what a repair may touch. Its functions are named as in `__qualname__`; those that
    another Python version lacks do no harm.
    """

    name: str
    area: tuple[str, ...]
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
        ("bisect_left", "bisect_right", "insort_left", "insort_right"),
        (
            Defect("bisect_left", "<", "<=", 2),
            Defect("bisect_right", "<", "<=", 4),
            Defect("insort_right", "is", "is not"),
        ),
    ),
    Program(
        "heapq",
        ("heappush", "heappop", "heapreplace", "heappushpop", "heapify", "_siftdown", "_siftup"),
        (
            Defect("heappushpop", "<", ">"),
            Defect("_siftup", "1", "2", 2),
            Defect("_siftdown", "<", ">"),
        ),
    ),
    Program(
        "textwrap",
        (
            "TextWrapper._fix_sentence_endings",
            "TextWrapper._handle_long_word",
            "TextWrapper._wrap_chunks",
            "shorten",
        ),
        (
            Defect("TextWrapper._fix_sentence_endings", "==", "!="),
            Defect("TextWrapper._wrap_chunks", "<", "<="),
            Defect("TextWrapper._handle_long_word", ">", "<"),
        ),
    ),
    Program(
        "statistics",
        ("median", "median_low", "median_high", "multimode", "quantiles", "covariance"),
        (
            Defect("median", "-", "+"),
            Defect("quantiles", "+", "-", 2),
            Defect("covariance", "-", "+", 2),
        ),
    ),
    Program(
        "fractions",
        (
            "Fraction._add",
            "Fraction._sub",
            "Fraction._mul",
            "Fraction.__round__",
            "Fraction.__floor__",
        ),
        (
            Defect("Fraction.__round__", "<", "<="),
            Defect("Fraction._add", "+", "-"),
            Defect("Fraction._sub", "-", "+"),
        ),
    ),
    Program(
        "shlex",
        ("split", "join", "quote", "shlex.read_token", "shlex.push_token", "shlex.pop_source"),
        (
            Defect("split", "not", ""),
            Defect("shlex.read_token", "==", "!="),
            Defect("quote", "is", "is not"),
        ),
    ),
    Program(
        "difflib",
        (
            "_calculate_ratio",
            "get_close_matches",
            "_format_range_unified",
            "SequenceMatcher.get_opcodes",
            "SequenceMatcher.get_matching_blocks",
        ),
        (
            Defect("_format_range_unified", "+", "-"),
            Defect("_calculate_ratio", "2.0", "1.0"),
            Defect("get_close_matches", ">=", "<", 2),
        ),
    ),
    Program(
        "calendar",
        (
            "isleap",
            "leapdays",
            "monthrange",
            "_prevmonth",
            "_nextmonth",
            "Calendar.itermonthdays",
            "Calendar.iterweekdays",
            "timegm",
        ),
        (
            Defect("isleap", "or", "and"),
            Defect("leapdays", "+", "-"),
            Defect("_nextmonth", "12", "11"),
        ),
    ),
    Program(
        "colorsys",
        ("rgb_to_hls", "hls_to_rgb", "rgb_to_hsv", "hsv_to_rgb", "_v"),
        (
            Defect("rgb_to_hls", "2.0", "3.0", 2),
            Defect("hsv_to_rgb", "-", "+", 2),
            Defect("_v", "<", ">"),
        ),
    ),
    Program(
        "fnmatch",
        ("fnmatchcase", "filter", "translate", "_translate"),
        (
            Defect("fnmatchcase", "not", ""),
            Defect("translate", ">=", ">"),
            Defect("_translate", ">=", ">"),
            Defect("translate", ">", "<"),
            Defect("_translate", ">", "<"),
        ),
    ),
    Program(
        "string",
        (
            "capwords",
            "Template._invalid",
            "Template.substitute",
            "Template.get_identifiers",
            "Formatter._vformat",
            "Formatter.convert_field",
        ),
        (
            Defect("Template._invalid", "-", "+"),
            Defect("capwords", "or", "and"),
            Defect("Formatter._vformat", "+=", "-="),
        ),
    ),
    Program(
        "graphlib",
        (
            "TopologicalSorter.add",
            "TopologicalSorter.prepare",
            "TopologicalSorter.get_ready",
            "TopologicalSorter.done",
        ),
        (
            Defect("TopologicalSorter.done", ">=", ">"),
            Defect("TopologicalSorter.add", "+=", "-="),
            Defect("TopologicalSorter.done", "-=", "+="),
        ),
    ),
    Program(
        "reprlib",
        ("Repr._repr_iterable", "Repr.repr_dict", "Repr.repr_str", "Repr.repr_int"),
        (
            Defect("Repr._repr_iterable", ">", ">="),
            Defect("Repr.repr_str", ">", ">="),
            Defect("Repr.repr_dict", "-", "+"),
        ),
    ),
    Program(
        "getopt",
        ("getopt", "gnu_getopt", "do_longs", "long_has_args", "do_shorts", "short_has_arg"),
        (
            Defect("long_has_args", ">", ">="),
            Defect("short_has_arg", "+", "-"),
            Defect("gnu_getopt", "!=", "=="),
        ),
    ),
    Program(
        "base64",
        ("_85encode", "a85decode", "b85decode", "_b32encode", "_b32decode"),
        (
            Defect("a85decode", "-", "+", 3),
            Defect("_85encode", "4", "5"),
            Defect("_b32encode", "-", "+"),
        ),
    ),
    Program(
        "posixpath",
        ("join", "split", "basename", "dirname", "normpath", "relpath", "commonpath"),
        (
            Defect("basename", "+", "-"),
            Defect("commonpath", "!=", "=="),
            Defect("relpath", "-", "+"),
        ),
    ),
)
