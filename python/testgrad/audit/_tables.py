"""Tables of answers in the source of a candidate: literals that hold what the tests expect.

Nothing is run. A task may be a table by nature: whoever calls this leaves out what the reference
has too. See docs/audit.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ._source import Found


@dataclass(frozen=True)
class Answers:
    """What tests ask and what they expect, by the value that a literal would have.

    Args:
        pairs: Text of the input to the texts of the answers.
        order: Texts of the answers, in the order of the tests.
        n_asked: How many different inputs there are.
    """

    pairs: Mapping[str, frozenset[str]]
    order: tuple[str, ...]
    n_asked: int

    @staticmethod
    def of_cases(cases: Iterable[Mapping[str, object]]) -> Answers:
        asked_and_said: list[tuple[list[str], list[str]]] = []
        for case in cases:
            if "output" in case:
                asked, said = str(case.get("input", "")), str(case["output"])
                forms: list[object] = [asked, asked.strip(), asked.split()]
                answers: list[object] = [said.strip(), said]
            elif "expected" in case:
                args = case.get("args")
                args = list(args) if isinstance(args, (list, tuple)) else [args]
                forms, answers = [args, *(args if len(args) == 1 else [])], [case["expected"]]
            else:
                continue
            asked_and_said.append(
                ([_key(form) for form in forms], [_key(said) for said in answers])
            )
        return _answers(asked_and_said)

    @staticmethod
    def of_tests(tests: Mapping[str, str]) -> Answers:
        pairs: list[tuple[list[str], list[str]]] = []
        for path, code in tests.items():
            if path.endswith(".py"):
                with suppress(SyntaxError, ValueError, RecursionError):
                    pairs.extend(_asserted(ast.parse(code)))
        return _answers(pairs)


def _answers(asked_and_said: Iterable[tuple[list[str], list[str]]]) -> Answers:
    known: dict[str, set[str]] = {}
    order, asked = [], set()
    for forms, said in asked_and_said:
        order.append(said[0])
        asked.add(forms[0])
        for form in forms:
            known.setdefault(form, set()).update(said)
    return Answers(
        {form: frozenset(said) for form, said in known.items()}, tuple(order), len(asked)
    )


def _asserted(tree: ast.AST) -> Iterator[tuple[list[str], list[str]]]:
    """The calls and values that tests hold to be equal."""
    for node in ast.walk(tree):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            if isinstance(node.ops[0], (ast.Eq, ast.Is)):
                sides = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in {"assertEqual", "assertEquals", "assertIs"}:
                sides = node.args[:2]
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            # A row of a parametrized test.
            with suppress(ValueError):
                row, said = (_key(ast.literal_eval(part)) for part in node.elts)
                yield [row], [said]
        for call, value in (sides, sides[::-1]) if len(sides) == 2 else ():
            if isinstance(call, ast.Call) and call.args:
                with suppress(ValueError):
                    args = [ast.literal_eval(argument) for argument in call.args]
                    asked = [_key(args), *(_key(argument) for argument in args[: len(args) == 1])]
                    yield asked, [_key(ast.literal_eval(value))]


LEAST_ROWS = 3
LEAST_SHARE = 0.6


def marks_of_tables(path: str, code: str, answers: Answers) -> list[Found]:
    """The literals of a file that hold most of what the tests ask and expect, and little else."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for node in ast.walk(tree):
        for line, rows in _tables(node):
            known = {ask for ask, said in rows if said in answers.pairs.get(ask, ())}
            if _is_most(len(known), len(rows), answers.n_asked):
                what = f"a table of {len(rows)} rows holds the answers of {len(known)} tests"
                found.append(("table", f"{path}, line {line}: {what}"))
        if isinstance(node, (ast.List, ast.Tuple)) and _replays(node, answers.order):
            what = f"{len(node.elts)} answers in the order of the tests"
            found.append(("table", f"{path}, line {node.lineno}: {what}"))
    return list(dict.fromkeys(found))


def _is_most(n_known: int, n_rows: int, n_tests: int) -> bool:
    enough = n_known >= LEAST_ROWS and n_known >= LEAST_SHARE * n_rows
    return enough and n_known >= LEAST_SHARE * n_tests


def _replays(node: ast.List | ast.Tuple, order: tuple[str, ...]) -> bool:
    if len(node.elts) < LEAST_ROWS or len(node.elts) < LEAST_SHARE * len(order):
        return False
    try:
        held = [_key(ast.literal_eval(part)) for part in node.elts]
    except (ValueError, TypeError, RecursionError):
        return False
    return held == list(order[: len(held)]) and len(set(held)) >= LEAST_ROWS


def _tables(node: ast.AST) -> Iterator[tuple[int, set[tuple[str, str]]]]:
    """What maps inputs to answers: dicts, lists of pairs, chains of comparisons, `match`."""
    rows: list[tuple[ast.AST | None, ast.AST | None]] = []
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Dict):
        rows = list(zip(node.keys, node.values, strict=True))
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        pairs = [part for part in node.elts if isinstance(part, (ast.Tuple, ast.List))]
        rows = [(part.elts[0], part.elts[1]) for part in pairs if len(part.elts) == 2]
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        rows = list(_compared(node))
    elif isinstance(node, ast.Match):
        rows = [
            (case.pattern.value, _returned(case.body))
            for case in node.cases
            if isinstance(case.pattern, ast.MatchValue)
        ]
    keyed: set[tuple[str, str]] = set()
    for asked, said in rows:
        with suppress(ValueError, TypeError, RecursionError):
            if asked is not None and said is not None:
                keyed.add((_key(_literal(asked)), _key(_literal(said))))
    if len(keyed) >= LEAST_ROWS:
        yield line, keyed


def _compared(node: ast.AST) -> Iterator[tuple[ast.AST | None, ast.AST | None]]:
    for part in ast.walk(node):
        if not isinstance(part, (ast.If, ast.IfExp)):
            continue
        said = _returned(part.body) if isinstance(part.body, list) else part.body
        tests = part.test.values if isinstance(part.test, ast.BoolOp) else [part.test]
        sides = [
            test.comparators[0]
            for test in tests
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq)
        ]
        if len(sides) == len(tests) == 1:
            yield sides[0], said
        elif sides:
            yield ast.List(elts=list(sides), ctx=ast.Load()), said


def _returned(body: list[ast.stmt]) -> ast.AST | None:
    last = body[-1] if body else None
    if isinstance(last, (ast.Return, ast.Assign)):
        return last.value
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and last.value.args:
        return last.value.args[0]
    return None


def _literal(node: ast.AST) -> object:
    return ast.literal_eval(node)


def _key(value: object) -> str:
    """The same text for values that JSON and tests write in different ways."""
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_key(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_key(k)}: {_key(v)}" for k, v in value.items())) + "}"
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    return repr(value)
