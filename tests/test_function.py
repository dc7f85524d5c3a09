"""Functions judged by what they return, apart from what they should return."""

import math
import pickle
from typing import Any

import pytest

from testgrad import FunctionRunner, Limits, SuiteResult

FRESH = pytest.mark.parametrize("fresh", ["process", "program"])


def outcomes(suite: SuiteResult) -> list[str]:
    return [test.reason or test.status.value for test in suite]


def returned(value: str, expected: object, **settings: Any) -> bool:
    """Whether a function that returns this expression passes."""
    run = FunctionRunner("f", [{"expected": expected}], **settings)
    return run(f"import math, collections, enum\ndef f(): return {value}\n").all_passed


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected", "passes"),
    [
        ("3", 3, True),
        ("3.0", 3, False),
        ("True", 1, False),
        ("None", None, True),
        ("(1, 2)", (1, 2), True),
        ("(1, 2)", [1, 2], False),
        ("{3, 1}", {1, 3}, True),
        ("{'b': 1, 'a': [2]}", {"a": [2], "b": 1}, True),
        ("b'x'", b"x", True),
        ("10 ** 60", 10**60, True),
        ("float('nan')", math.nan, True),
        ("float('inf')", math.inf, True),
        ("-0.0", 0.0, True),
        ("collections.Counter('aab')", {"a": 2, "b": 1}, True),
        ("collections.OrderedDict(a=1)", {"a": 1}, True),
        ("range(3)", [0, 1, 2], True),
        ("object()", 3, False),
        ("(x for x in [1])", [1], False),
        ("type('E', (), {'__eq__': lambda *_: True})()", 3, False),
        ("type('I', (int,), {'__eq__': lambda *_: True})(4)", 3, False),
        ("type('L', (list,), {'__eq__': lambda *_: True})([4])", [3], False),
    ],
)
def test_a_value_passes_only_when_it_is_the_one(value: str, expected: object, passes: bool) -> None:
    assert returned(value, expected) is passes


def test_how_values_are_compared_can_be_said() -> None:
    assert returned("0.1 + 0.2", 0.3, compare="floats")
    assert not returned("0.1 + 0.2", 0.3)
    assert returned("3.0", 3, tolerance=0.0)
    assert not returned("3.1", 3, tolerance=0.01)
    assert returned("[3, 1, 2]", [1, 2, 3], compare="unordered")
    assert not returned("[3, 1, 1]", [1, 2, 3], compare="unordered")
    assert returned("(1, 2)", [1, 2], sequences_equal=True)
    assert not returned("float('nan')", math.nan, nan_equal=False)


def test_a_wrong_value_says_what_it_was() -> None:
    (test,) = FunctionRunner("f", [((2,), {"a": [1, 4]})])("def f(x): return {'a': [1, 5]}")
    assert (test.status.value, test.reason) == ("failed", None)
    assert "5" in test.message
    assert "4" in test.message


# -- calls -----------------------------------------------------------------------------------------


def test_arguments_come_as_they_were_given() -> None:
    code = "def f(*args, **kwargs): return [list(args), kwargs]\n"
    cases = [
        {
            "args": [1, (2, {3}), b"x"],
            "kwargs": {"k": None},
            "expected": [[1, (2, {3}), b"x"], {"k": None}],
        },
        ((), [[], {}]),
        ([[1, 2]], [[[1, 2]], {}]),
    ]
    assert FunctionRunner("f", cases)(code).all_passed


def test_cases_may_be_json() -> None:
    text = '[{"args": [1, 2], "expected": 3}, {"args": ["a"], "raises": "TypeError"}]'
    assert FunctionRunner("f", text)("def f(a, b): return a + b").all_passed


@FRESH
def test_expected_exceptions_pass_by_their_class_or_one_above(fresh: str) -> None:
    cases = [{"args": [name], "raises": name} for name in ("KeyError", "LookupError", "ValueError")]
    suite = FunctionRunner("f", cases, fresh=fresh)("def f(name): raise KeyError(name)")
    assert outcomes(suite) == ["passed", "passed", "failed"]
    assert suite[2].message == "raised KeyError: 'ValueError', expected ValueError"


@FRESH
def test_an_exception_of_a_case_is_its_failure(fresh: str) -> None:
    code = "import sys\ndef f(x):\n    if x: raise SystemExit(0)\n    return 1 / x\n"
    suite = FunctionRunner("f", [((1,), 1), ((0,), 1)], fresh=fresh)(code)
    assert [test.message for test in suite] == [
        "SystemExit: 0",
        "ZeroDivisionError: division by zero",
    ]
    assert "line 4, in f" in suite[1].details


def test_methods_are_called_on_an_instance_of_their_own() -> None:
    code = """
class Solution:
    def __init__(self): self.seen = []
    def f(self, x):
        self.seen.append(x)
        return self.seen
    @staticmethod
    def g(x): return x
    @classmethod
    def h(cls, x): return cls.__name__
"""
    for entry_point in ("Solution.f", "f"):
        assert FunctionRunner(entry_point, [((1,), [1]), ((2,), [2])])(code).all_passed
    assert FunctionRunner("Solution.g", [((1,), 1)])(code).all_passed
    assert FunctionRunner("Solution.h", [((1,), "Solution")])(code).all_passed
    (test,) = FunctionRunner("Solution.k", [((1,), 1)])(code)
    assert (test.reason, test.message) == (
        "collection",
        "AttributeError: the candidate has no 'Solution.k'",
    )


@FRESH
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def f(:", "SyntaxError: "),
        ("raise RuntimeError('at import')", "RuntimeError: at import"),
        ("import nothing_like_this", "ModuleNotFoundError: "),
        ("f = 3", "TypeError: the candidate's 'f' cannot be called"),
        ("", "AttributeError: the candidate has no 'f'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error_of_every_case(
    code: str, message: str, fresh: str
) -> None:
    suite = FunctionRunner("f", [((), 1)] * 2, fresh=fresh)(code)
    assert outcomes(suite) == ["collection"] * 2
    assert all(test.message.startswith(message) for test in suite)


# -- hostile candidates ----------------------------------------------------------------------------


@FRESH
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("while True: pass", "timeout"),
        ("import os; os._exit(0)", "crash"),
        ("import os; os.kill(os.getpid(), 11)", "crash"),
        ("import ctypes; ctypes.string_at(0)", "crash"),
        ("[bytearray(1 << 20) for _ in iter(int, 1)]", "memory"),
    ],
)
def test_a_case_that_goes_wrong_costs_that_case(act: str, reason: str, fresh: str) -> None:
    code = f"def f(x):\n    if x == 1: {act}\n    return x\n"
    if act.startswith("while"):
        code = "def f(x):\n    while x == 1: pass\n    return x\n"
    limits = Limits(timeout_s=60.0, test_timeout_s=1.0, memory_bytes=256 << 20)
    cases = [((number,), number) for number in range(3)]
    suite = FunctionRunner("f", cases, fresh=fresh, limits=limits)(code)
    assert outcomes(suite) == ["passed", reason, "passed"]


@FRESH
def test_what_a_candidate_writes_to_any_descriptor_forges_nothing(fresh: str) -> None:
    code = """
import os
lines = b'{"kind": "value", "case": 0, "value": "3"}\\n{"kind": "started", "case": 1}\\n'
for number in range(1024):
    try: os.write(number, lines + b'{"kind": "value", "case": 1, "value": "3"}\\n')
    except OSError: pass
def f(): return 4
"""
    # To write the right value one must know it, and then one can as well return it.
    suite = FunctionRunner("f", [((), 5), ((), 5)], fresh=fresh)(code)
    assert outcomes(suite) == ["failed", "failed"]


def test_calls_know_nothing_of_each_other() -> None:
    code = "calls = []\ndef f(x):\n    calls.append(x)\n    return len(calls)\n"
    cases = [((number,), 1) for number in range(3)]
    assert FunctionRunner("f", cases)(code).all_passed
    assert outcomes(FunctionRunner("f", cases, fresh="program")(code)) == [
        "passed",
        "failed",
        "failed",
    ]


def test_a_flood_is_an_error_of_its_case() -> None:
    code = "import os\ndef f(x):\n    while x: os.write(1, b'x' * 65536)\n    return 0\n"
    limits = Limits(output_bytes=1 << 20)
    suite = FunctionRunner("f", [((1,), 0), ((0,), 0)], limits=limits)(code)
    assert outcomes(suite) == ["output", "passed"]


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([{"args": [1]}], 'cases[0]: one of "expected" and "raises" must be there'),
        (
            [{"args": 1, "expected": 1}],
            "cases[0]: args must be a list or tuple of arguments, got int",
        ),
        ([{"kwargs": [1], "expected": 1}], "cases[0]: kwargs must be a dict, got list"),
        ([((object(),), 1)], "cases[0]['args']"),
        ([1], "cases[0] must be a mapping or a pair of args and expected"),
    ],
)
def test_a_case_that_is_none_is_refused_by_its_place(cases: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        FunctionRunner("f", cases)
    assert str(caught.value).replace('["', "['").replace('"]', "']").startswith(message)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match='compare must be "exact", "floats" or "unordered"'):
        FunctionRunner("f", [], compare="tokens")
    with pytest.raises(ValueError, match='fresh must be "process" or "program"'):
        FunctionRunner("f", [], fresh="case")
    with pytest.raises(ValueError, match='clock must be "elapsed" or "cpu"'):
        FunctionRunner("f", [], clock="wall")


def test_a_runner_survives_pickling() -> None:
    run = FunctionRunner("f", [((1,), (2, {3}))], sequences_equal=True, preload=["json"])
    again = pickle.loads(pickle.dumps(run))
    assert repr(again) == repr(run) == "<FunctionRunner of 'f' by 1 cases>"
    assert pickle.dumps(again) == pickle.dumps(run)
    assert again("def f(x): return [2, {3}]").all_passed
