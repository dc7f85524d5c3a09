"""Candidates behind a mirror: the tests in one process, the candidate in another."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from testgrad import Limits, PytestRunner, SuiteResult

NAMESPACES = ("user", "pid", "mount", "network", "ipc", "uts")
LEVELS = pytest.mark.parametrize("avoid", [(), NAMESPACES], ids=["full", "no namespaces"])


def judged(tests: str, code: str | dict[str, str], **settings: Any) -> SuiteResult:
    """The suite of one test file against a candidate, apart from it."""
    return PytestRunner({"test_a.py": textwrap.dedent(tests)}, **settings)(
        textwrap.dedent(code) if isinstance(code, str) else code
    )


def said(suite: SuiteResult) -> list[tuple[str, str, str | None]]:
    """Short name, status and reason of each test."""
    return [(test.name.split("::")[-1], test.status.value, test.reason) for test in suite]


def statuses(suite: SuiteResult) -> list[str]:
    return [test.status.value for test in suite]


# -- what honest tests do --------------------------------------------------------------------------

CODE = """
import collections, contextlib, dataclasses, datetime, enum, functools, math, os, random, sys
from decimal import Decimal
from fractions import Fraction

LIMIT = 10
TABLE = {"a": (1, [2.5, None]), (1, 2): {3}}

class Color(enum.Enum):
    RED = 1
    BLUE = 2

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5

@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    def shifted(self, dx): return Point(self.x + dx, self.y)

@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int

Pair = collections.namedtuple("Pair", "left right")

class Base:
    kind = "base"
    def __init__(self, name): self.name = name
    @property
    def title(self): return self.name.title()
    @staticmethod
    def double(x): return 2 * x
    @classmethod
    def named(cls): return cls("made")
    def __repr__(self): return f"Base({self.name!r})"
    def __len__(self): return len(self.name)
    def __contains__(self, part): return part in self.name
    def __getitem__(self, index): return self.name[index]
    def __call__(self, times): return self.name * times

class Derived(Base):
    def title_twice(self): return self.title * 2

class Vector:
    def __init__(self, *parts): self.parts = parts
    def __add__(self, other): return Vector(*map(sum, zip(self.parts, other.parts)))
    def __mul__(self, factor): return Vector(*(factor * part for part in self.parts))
    __rmul__ = __mul__
    def __neg__(self): return self * -1
    def __abs__(self): return math.hypot(*self.parts)
    def __eq__(self, other): return isinstance(other, Vector) and self.parts == other.parts
    def __hash__(self): return hash(self.parts)
    def __lt__(self, other): return abs(self) < abs(other)
    def __bool__(self): return any(self.parts)
    def __iter__(self): return iter(self.parts)

class Stack(list):
    def push(self, item): self.append(item)
    def peek(self): return self[-1]

class Account:
    def __init__(self): self.log = []
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else "out")
        return kind is KeyError

class Problem(Exception):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code

class Worse(Problem, ValueError): pass

def fail(): raise Problem("no luck", 7)
def fail_worse(): raise Worse("worse", 8)
def fail_builtin(what): raise {"key": KeyError("k"), "os": FileNotFoundError(2, "gone", "f")}[what]
def caused():
    try: 1 / 0
    except ZeroDivisionError as error: raise ValueError("bad") from error
def countdown(n):
    while n: yield n; n -= 1
def echo():
    got = None
    while True: got = yield got
@contextlib.contextmanager
def managed(log):
    log.append("before")
    yield "value"
    log.append("after")
def same(x): return x
def sort_in_place(values): values.sort()
def fill(grid):
    for row in grid: row.append(0)
    return None
def pop(values): return values.pop()
def times_two(function): return lambda *args: function(*args) * 2
def apply(function, *args, **named): return function(*args, **named)
def key_of(record): return record.key.upper()
def safely(function):
    try: return function()
    except ValueError as error: return f"caught {error}"
def read_all(stream): return stream.read().split()
def helper(): return 1
def uses_helper(): return helper() + 1
def greet(): print("hello", LIMIT); print("oops", file=sys.stderr)
def ask(): return input("? ") + sys.stdin.readline().strip()
def roll(): return random.randint(1, 10**9)
def home(): return os.environ.get("PLACE"), os.getcwd()
def save(path, text):
    with open(path, "w") as file: file.write(text)
def load(path):
    with open(path) as file: return file.read()
def when(day): return day + datetime.timedelta(days=1)
def numbers(): return Decimal("1.10"), Fraction(1, 3), 10**40, 1 + 2j
def others(): return b"x", frozenset({1}), range(3)
def ordered():
    return collections.OrderedDict(a=1), collections.Counter("aab"), collections.deque([1], 5)
def level(n): return Level.HIGH if n > 3 else Level.LOW
def pair(): return Pair(1, [2])
"""

HONEST = """
import copy, dataclasses, datetime, io, sys
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import pytest

import solution
from solution import *
from solution import Base, Color, Point, Problem, Vector

def test_constants():
    assert solution.LIMIT == 10
    assert solution.TABLE == {"a": (1, [2.5, None]), (1, 2): {3}}

@pytest.mark.parametrize("color", [Color.RED, Color.BLUE])
def test_enums(color):
    assert color in list(Color) and Color(color.value) is color
    assert Color["RED"] is Color.RED and Color.RED != Color.BLUE
    assert len(Color) == 2 and color.name in ("RED", "BLUE")
    assert solution.level(4) == solution.Level.HIGH == 5 and solution.level(1) < 2

def test_dataclasses():
    p = Point(1, 2)
    assert p == Point(1, 2) and p != Point(1, 3) and p.shifted(2).x == 3
    assert dataclasses.asdict(p) == {"x": 1, "y": 2}
    assert repr(p) == "Point(x=1, y=2)"
    p.y = 9
    assert p.y == 9
    assert sorted([Version(2, 0), Version(1, 5)])[0].minor == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        Version(1, 1).major = 3

def test_named_tuples():
    left, right = solution.pair()
    assert (left, right) == (1, [2]) == solution.pair() and solution.pair().right == [2]

def test_classes():
    d = Derived("ann")
    assert isinstance(d, Base) and issubclass(Derived, Base) and type(d) is Derived
    assert d.title == "Ann" and d.title_twice() == "AnnAnn" and Base.double(4) == 8
    assert Derived.named().name == "made" and type(Derived.named()).__name__ == "Derived"
    assert (len(d), "nn" in d, d[0], d(2), d.kind) == (3, True, "a", "annann", "base")
    assert repr(d) == "Base('ann')" and hasattr(d, "name") and not hasattr(d, "age")
    d.age = 5
    assert vars(d) == {"name": "ann", "age": 5}
    del d.age
    with pytest.raises(AttributeError): d.age

def test_operators():
    v = Vector(3, 4)
    assert v + Vector(1, 1) == Vector(4, 5) and 2 * v == v * 2 and -v == Vector(-3, -4)
    assert abs(v) == pytest.approx(5) and Vector(1, 0) < v and not Vector(0, 0)
    assert {v: 1}[Vector(3, 4)] == 1 and list(v) == [3, 4] and [*v] == [3, 4]
    assert v != (3, 4) and copy.deepcopy(v) == v

def test_containers():
    s = Stack([1])
    s.push(2)
    assert s == [1, 2] and s.peek() == 2 and isinstance(s, list)
    assert len(s) == 2 and s[::-1] == [2, 1]

def test_with():
    with Account() as account:
        raise KeyError("swallowed")
    assert account.log == ["in", "KeyError"]
    log = []
    with managed(log) as value:
        assert value == "value"
    with pytest.raises(RuntimeError):
        with Account(): raise RuntimeError("mine")

def test_exceptions():
    with pytest.raises(Problem, match="no luck") as caught: fail()
    assert caught.value.code == 7 and caught.value.args == ("no luck",)
    assert str(caught.value) == "no luck"
    with pytest.raises(ValueError): fail_worse()
    with pytest.raises(KeyError) as caught: fail_builtin("key")
    assert type(caught.value) is KeyError and caught.value.args == ("k",)
    with pytest.raises(FileNotFoundError) as caught: fail_builtin("os")
    assert caught.value.errno == 2
    with pytest.raises(ValueError) as caught: caused()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert issubclass(Worse, Problem) and issubclass(Worse, ValueError)

def test_generators():
    assert list(countdown(3)) == [3, 2, 1] and next(countdown(2)) == 2
    e = echo(); next(e)
    assert e.send("x") == "x"
    e.close()
    with pytest.raises(StopIteration): next(countdown(0))

def test_arguments_change_in_place():
    values = [3, 1, 2]
    same_list = values
    sort_in_place(values)
    assert same_list == [1, 2, 3]
    row = [1]
    grid = [row, []]
    fill(grid)
    assert row == [1, 0] and grid[0] is row

def test_callbacks():
    assert times_two(lambda a, b: a + b)(1, 2) == 6
    assert apply(sorted, [2, 1], reverse=True) == [2, 1]
    calls = mock.Mock(return_value=5)
    assert apply(calls, 1, x=2) == 5
    calls.assert_called_once_with(1, x=2)
    def bad(): raise ValueError("mine")
    assert safely(bad) == "caught mine"
    with pytest.raises(ZeroDivisionError): apply(lambda: 1 / 0)
    class Record: key = "k"
    assert key_of(Record()) == "K"
    assert read_all(io.StringIO("a b")) == ["a", "b"]
    marker = object()
    assert same(marker) is marker and same([marker])[0] is marker

def test_patches(monkeypatch):
    monkeypatch.setattr(solution, "helper", lambda: 41)
    assert solution.uses_helper() == 42
    monkeypatch.undo()
    assert solution.uses_helper() == 2
    with mock.patch("solution.helper", return_value=9) as fake:
        assert solution.uses_helper() == 10
    fake.assert_called_once_with()
    assert solution.uses_helper() == 2
    with mock.patch.object(Base, "double", staticmethod(lambda x: "patched")):
        assert Base.double(1) == "patched"

def test_streams(capsys, monkeypatch):
    greet()
    assert capsys.readouterr() == ("hello 10\\n", "oops\\n")
    monkeypatch.setattr("builtins.input", lambda prompt: "in" + prompt)
    monkeypatch.setattr("sys.stdin", io.StringIO("line\\nmore\\n"))
    assert ask() == "in? line"

def test_surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("PLACE", "here")
    monkeypatch.chdir(tmp_path)
    assert home() == ("here", str(tmp_path))
    (tmp_path / "given").write_text("from the test")
    assert load(tmp_path / "given") == "from the test" == load("given")
    save(tmp_path / "made", "from the candidate")
    assert (tmp_path / "made").read_text() == "from the candidate"
    import random
    random.seed(5); first = roll()
    random.seed(5); assert roll() == first

def test_values():
    assert when(datetime.date(2024, 2, 28)) == datetime.date(2024, 2, 29)
    assert numbers() == (Decimal("1.1"), Fraction(1, 3), 10**40, 1 + 2j)
    assert others() == (b"x", frozenset({1}), range(3))
    assert ordered() == (OrderedDict(a=1), Counter("aab"), deque([1]))
    assert same(float("nan")) != 0 and same("\\ud800") == "\\ud800"
    assert same({None: ...}) == {None: ...}
"""


def test_what_honest_tests_do_works_apart() -> None:
    suite = judged(HONEST, CODE)
    assert [test.name + ": " + test.message for test in suite if test.is_failing] == []
    assert (suite.all_passed, suite.trust, suite.warnings) == (True, "isolated", ())


def test_without_namespaces_all_but_temporary_files_works_apart() -> None:
    suite = judged(HONEST, CODE, avoid=NAMESPACES)
    assert (suite.all_passed, suite.trust) == (True, "shared")
    assert suite.warnings == (
        "tests and candidate share a process: temporary files need a mount namespace otherwise",
    )
    before, _, rest = HONEST.partition("def test_surroundings")
    suite = judged(
        before + "def test_values" + rest.partition("def test_values")[2], CODE, avoid=NAMESPACES
    )
    assert [test.name + ": " + test.message for test in suite if test.is_failing] == []
    assert (suite.trust, suite.warnings) == ("isolated", ())


def test_the_same_in_one_process() -> None:
    suite = judged(HONEST, CODE, isolation="none")
    assert [test.name + ": " + test.message for test in suite if test.is_failing] == []
    assert suite.trust == "shared"


def test_arrays_cross_by_their_buffers() -> None:
    tests = """
    import numpy as np
    from solution import twice, mean
    def test_twice():
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        result = twice(values)
        assert result.dtype == np.float32 and (result == values * 2).all()
        assert isinstance(mean(values), np.float32) and mean(values) == 2.5
    """
    assert judged(tests, "def twice(x): return x * 2\ndef mean(x): return x.mean()\n").all_passed


def test_warnings_and_records_of_loggers_are_the_test_s() -> None:
    tests = """
    import logging, warnings
    import pytest
    import solution
    def test_warns():
        with pytest.warns(DeprecationWarning, match="old"): assert solution.warn() == 1
        with pytest.warns(UserWarning) as caught: solution.warn_own()
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DeprecationWarning): solution.warn()
    def test_logs(caplog):
        solution.log()
        assert [(r.name, r.levelname, r.message) for r in caplog.records] == [
            ("app", "WARNING", "careful 5")]
        caplog.clear()
        with caplog.at_level(logging.INFO): solution.log()
        assert [r.levelname for r in caplog.records] == ["INFO", "WARNING"]
    def test_logs_of_one(caplog):
        caplog.set_level(logging.DEBUG, logger="app")
        solution.log()
        assert "details" in caplog.text
    """
    code = """
    import logging, warnings
    class Own(UserWarning): pass
    def warn():
        warnings.warn("old way", DeprecationWarning)
        return 1
    def warn_own(): warnings.warn("mine", Own)
    def log():
        logger = logging.getLogger("app")
        logger.debug("details")
        logger.info("fine")
        logger.warning("careful %d", 5)
    """
    suite = judged(tests, code)
    assert [test.message for test in suite] == ["", "", ""]
    assert suite.trust == "isolated"


def test_objects_without_a_truth_are_only_asked_for_it_by_tests() -> None:
    tests = """
    from solution import Shelf
    def test():
        with Shelf() as shelf:
            shelf.put(1)
        assert shelf.closed is True and not shelf
    """
    code = """
    class Shelf:
        def __init__(self): self.items, self.closed, self.asked = [], False, 0
        def __enter__(self): return self
        def __exit__(self, *_): self.closed = True; self.items = []
        def put(self, item): self.items.append(item)
        def __len__(self):
            self.asked += 1
            if self.asked > 1: raise RuntimeError("asked for the second time")
            return len(self.items)
    """
    assert judged(tests, code).all_passed


@pytest.mark.parametrize("name", ["heapq", "statistics", "fractions", "textwrap"])
def test_a_module_of_the_standard_library_is_mirrored(name: str) -> None:
    import importlib
    from pathlib import Path

    source = Path(str(importlib.import_module(name).__file__)).read_text()
    tests = {
        "heapq": """
    def test():
        heap = [5, 1, 4]
        solution.heapify(heap)
        solution.heappush(heap, 0)
        assert heap[0] == 0 and solution.nsmallest(2, heap) == [0, 1]
        assert list(solution.merge([1, 4], [2])) == [1, 2, 4]
        with pytest.raises(IndexError): solution.heappop([])
    """,
        "statistics": """
    def test():
        assert solution.mean([1, 2, 4]) == pytest.approx(7 / 3)
        assert solution.NormalDist(0, 1) + solution.NormalDist(1, 0) == solution.NormalDist(1, 1)
        with pytest.raises(solution.StatisticsError): solution.mean([])
    """,
        "fractions": """
    def test():
        half = solution.Fraction(1, 2)
        assert half + half == 1 and half < 0.6 and str(half * 3) == "3/2" and {half: 1}[half] == 1
        assert half == solution.Fraction("0.5") and float(half) == 0.5 and round(half * 5) == 2
    """,
        "textwrap": """
    def test():
        wrapper = solution.TextWrapper(width=10)
        wrapper.initial_indent = "> "
        assert wrapper.wrap("some words here") == ["> some", "words here"]
        assert solution.dedent("  a\\n  b") == "a\\nb"
    """,
    }
    suite = judged("import pytest, solution\n" + textwrap.dedent(tests[name]), source)
    assert [test.message for test in suite] == [""]
    assert suite.trust == "isolated"


def test_packages_and_several_files_are_mirrored() -> None:
    tests = """
    import solution
    from solution.inner import value
    from helper import help
    def test(): assert (value(), help(), solution.inner.value()) == (1, 2, 1)
    """
    code = {
        "solution/__init__.py": "",
        "solution/inner.py": "def value(): return 1",
        "helper.py": "def help(): return 2",
    }
    suite = judged(tests, code)
    assert (suite.all_passed, suite.trust) == (True, "isolated")
    # What the tests have themselves is not the candidate's.
    own = {
        "test_a.py": "from helper import help\ndef test(): assert help() == 3",
        "helper.py": "help = lambda: 3",
    }
    assert PytestRunner(own)(code).all_passed


def test_a_fresh_process_for_each_test() -> None:
    tests = """
    import solution
    def test_1(): assert solution.count() == 1
    def test_2(): assert solution.count() == 1
    def test_3(): solution.end()
    def test_4(): assert solution.count() == 1
    """
    code = """
    import os
    n = 0
    def count():
        global n
        n += 1
        return n
    def end(): os._exit(0)
    """
    suite = judged(tests, code)
    assert said(suite) == [
        ("test_1", "passed", None),
        ("test_2", "passed", None),
        ("test_3", "error", "crash"),
        ("test_4", "passed", None),
    ]
    assert suite[2].message == "the process ended with exit code 0"


def test_tests_that_share_objects_share_a_process() -> None:
    tests = """
    import pytest, solution
    @pytest.fixture(scope="module")
    def counter(): return solution.Counter()
    def test_1(counter): assert counter.next() == 1
    def test_2(counter): assert counter.next() == 2
    """
    code = "class Counter:\n    n = 0\n    def next(self): self.n += 1; return self.n\n"
    suite = judged(tests, code)
    assert (suite.all_passed, suite.trust) == (True, "isolated")


def test_a_hang_costs_the_limit_of_its_test() -> None:
    tests = (
        "import solution\ndef test_1(): solution.spin()\ndef test_2(): assert solution.f() == 1\n"
    )
    code = "def spin():\n    while True: pass\ndef f(): return 1\n"
    suite = judged(tests, code, limits=Limits(test_timeout_s=1.0))
    assert said(suite) == [("test_1", "error", "timeout"), ("test_2", "passed", None)]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "collection"),
        ("def f():\n    x = []\n    while True: x.append(bytearray(1 << 22))", "memory"),
        ("def f():\n    while True: print('x' * 100_000)", "output"),
        ("import os\ndef f(): os.kill(os.getpid(), 11)", "crash"),
    ],
)
def test_what_ends_the_process_of_a_candidate_is_told(code: str, reason: str) -> None:
    limits = Limits(timeout_s=20.0, memory_bytes=128 << 20, output_bytes=1 << 20)
    suite = judged(
        "from solution import f\ndef test_1(): f()\ndef test_2(): pass\n", code, limits=limits
    )
    if reason == "collection":
        assert said(suite) == [("test_a.py", "error", "collection")]
    else:
        # Python itself may say that it has no memory before the kernel does.
        assert said(suite)[0] in [("test_1", "error", reason), ("test_1", "failed", None)]
        assert said(suite)[1] == ("test_2", "passed", None)
        assert reason == "memory" or suite[0].reason == reason


# -- what dishonest candidates do ------------------------------------------------------------------

VALUE = """
import math, unittest
import pytest
import solution
def test_int(): assert solution.f(1) == 41
def test_list(): assert solution.f(2) == [1, 2]
def test_float(): assert math.isclose(solution.f(3), 2.5)
def test_approx(): assert solution.f(4) == pytest.approx(2.5)
def test_text(): assert "yes" in solution.f(5)
def test_raises():
    with pytest.raises(ValueError): solution.g()
class TestUnit(unittest.TestCase):
    def test_equal(self): self.assertEqual(solution.f(6), (1, 2))
    def test_almost(self): self.assertAlmostEqual(solution.f(7), 3.25)
    def test_in(self): self.assertIn(3, solution.f(8))
"""

KIND = """
class Kind{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 41
    def __contains__(self, other): return {contains}
    def __sub__(self, other): return 0
    __rsub__ = __sub__
    def __abs__(self): return 0
    def __round__(self, n=None): return 0
"""

RETURNS = "def f(x): return Kind()\ndef g(): pass\n"
DISHONEST = {
    "equal to all": KIND.format(base="", contains="False")
    + "def f(x): return Kind()\ndef g(): pass\n",
    "equal int": KIND.format(base="(int)", contains="False")
    + "def f(x): return Kind(0)\ndef g(): pass\n",
    "equal list": KIND.format(base="(list)", contains="False")
    + "def f(x): return Kind()\ndef g(): pass\n",
    "equal text": KIND.format(base="(str)", contains="True")
    + "def f(x): return Kind()\ndef g(): pass\n",
    "equal float": KIND.format(base="(float)", contains="False")
    + "def f(x): return Kind()\ndef g(): pass\n",
    "mock": "from unittest.mock import ANY\ndef f(x): return ANY\ndef g(): pass\n",
    "skips": "import unittest\ndef f(x): raise unittest.SkipTest\ng = lambda: f(1)\n",
    "pytest skips": "import pytest\ndef f(x): pytest.skip('no')\ng = lambda: f(1)\n",
    "xfails": "import pytest\ndef f(x): pytest.xfail('no')\ng = lambda: f(1)\n",
    "exits": "import sys\ndef f(x): sys.exit(0)\ng = lambda: f(1)\n",
    "pytest exits": "import pytest\ndef f(x): pytest.exit('no', returncode=0)\ng = lambda: f(1)\n",
    "interrupts": "def f(x): raise KeyboardInterrupt\ng = lambda: f(1)\n",
    "dies": "import os\ndef f(x): os._exit(0)\ng = lambda: f(1)\n",
    "patches": """
import builtins, math, unittest, pytest
math.isclose = pytest.approx = lambda *a, **k: True
unittest.TestCase.assertEqual = unittest.TestCase.assertAlmostEqual = lambda *a, **k: None
builtins.AssertionError = Warning
def f(x): return None
def g(): pass
""",
    "peeks": """
import gc, sys
def f(x):
    frame = sys._getframe().f_back
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_code.co_consts]:
            if value in (41, 2.5, "yes"): return value
        frame = frame.f_back
    for path in ("test_a.py", "/box/work/test_a.py"):
        try: return 41 if "41" in open(path).read() else 0
        except OSError: pass
    found = [o for o in gc.get_objects() if isinstance(o, list) and o == [1, 2]]
    return found[0] if found else None
def g(): pass
""",
}


@LEVELS
@pytest.mark.parametrize("name", DISHONEST)
def test_a_dishonest_candidate_passes_nothing(name: str, avoid: tuple[str, ...]) -> None:
    suite = judged(VALUE, DISHONEST[name], avoid=avoid, limits=Limits(timeout_s=30.0))
    assert suite.trust == "isolated"
    wanted = ["failed" if status == "failed" else "error" for status in statuses(suite)]
    assert (statuses(suite), len(suite)) == (wanted, 9), suite.failing


def test_an_honest_candidate_passes_what_they_do_not() -> None:
    right = """
    def f(x): return [41, [1, 2], 2.5, 2.5, "yes", (1, 2), 3.25, [3]][x - 1]
    def g(): raise ValueError
    """
    assert judged(VALUE, right).all_passed


def test_a_class_that_tests_name_may_say_what_it_is_equal_to_but_not_all() -> None:
    tests = """
    from solution import Money
    def test_same(): assert Money(5) == Money(5)
    def test_plain(): assert Money(5) == 5
    def test_other(): assert not Money(5) == Money(6)
    """
    honest = """
    class Money:
        def __init__(self, n): self.n = n
        def __eq__(self, other): return self.n == getattr(other, "n", other)
    """
    assert statuses(judged(tests, honest)) == ["passed", "passed", "passed"]
    kind = (
        "class Money:\n    def __init__(self, n): pass\n    def __eq__(self, other): return True\n"
    )
    assert statuses(judged(tests, kind)) == ["failed", "failed", "passed"]


ONCE = """def __eq__(self, other):
        self.asked = getattr(self, "asked", 0) + 1
        return self.asked == 1
"""
ZERO = """def __sub__(self, other): return 0
    __rsub__ = __sub__
    def __abs__(self): return 0
"""


@pytest.mark.parametrize(
    ("body", "by_luck"),
    [
        (ONCE, 4),  # which may be asked about the right one of several first
        ("def __eq__(self, other): return isinstance(other, (int, str, list))", 0),
        ("def __eq__(self, other): return type(other).__name__ != 'Stub'", 0),
        (ZERO, 0),
    ],
)
def test_a_named_class_is_not_whatever_it_is_compared_with(body: str, by_luck: int) -> None:
    tests = """
    import unittest
    from solution import Liar, f
    class Test(unittest.TestCase):
        def test_almost(self): self.assertAlmostEqual(f(4), 2.75)
        def test_int(self): self.assertEqual(f(1), 20)
        def test_list(self): self.assertEqual(f(3), [4, 5, 6, 7])
        def test_text(self): self.assertEqual(f(2), "answer")
        def test_more(self): self.assertEqual([f(n) for n in range(6)], [9, 8, 7, 6, 5, 4])
    """
    suite = judged(tests, f"class Liar:\n    {body}\ndef f(x): return Liar()\n")
    assert (suite.trust, len(suite)) == ("isolated", 5)
    assert statuses(suite).count("passed") <= by_luck
    assert (
        dict(zip([n for n, *_ in said(suite)], statuses(suite), strict=True))["test_more"]
        == "failed"
    )


def test_import_star_takes_nothing_that_tests_have() -> None:
    tests = """
    import math
    from math import isclose
    import pytest
    from solution import *
    def test_close(): assert isclose(f(1), 2.5)
    def test_raises():
        with pytest.raises(ValueError): f(2)
    def test_abs(): assert abs(f(3) - 7) < 0.1
    def test_honest(): assert g() == "g" and g.__doc__ == "Docs."
    """
    code = """
    import math
    def isclose(*args): return True
    class pytest:
        @staticmethod
        def raises(*args): return open("/dev/null")
    def abs(x): return 0
    def f(x): return 0
    def g(): "Docs."; return "g"
    """
    assert statuses(judged(tests, code)) == ["failed", "failed", "failed", "passed"]


def test_what_tests_judge_with_is_not_the_candidate_s_to_change() -> None:
    tests = """
    import unittest
    from unittest import mock
    import solution
    class Spy:
        def __init__(self): self.seen = []
        def note(self, x): self.seen.append(x)
    def test_mock():
        m = mock.Mock()
        solution.tamper_mock(m)
        m.assert_called_once_with(5)
    def test_mock_count():
        m = mock.Mock()
        solution.count(m)
        assert m.call_count == 1
    def test_spy():
        spy = Spy()
        solution.tamper_spy(spy)
        spy.note(1)
        assert spy.seen == [1]
    def test_request(request): solution.use(request)
    class Test(unittest.TestCase):
        def test_self(self): solution.use(self)
    """
    code = """
    def attempt(do):
        try: do()
        except Exception: pass
    def tamper_mock(m):
        def do(): m.assert_called_once_with = lambda *a: None
        attempt(do)
    def count(m):
        def do(): m.call_count = 1
        attempt(do)
    def tamper_spy(spy):
        def do(): spy.note = print
        attempt(do)
    def use(x): pass
    """
    suite = judged(tests, code)
    assert statuses(suite) == ["failed", "failed", "passed", "failed", "failed"]
    assert "objects judge, and cannot be given away" in suite[3].message


def test_arguments_are_only_changed_by_what_returns_nothing() -> None:
    tests = """
    import solution
    def test():
        values = [1, 2]
        assert solution.total(values) == sum(values)
    """
    code = "def total(values):\n    values.clear()\n    return 0\n"
    assert statuses(judged(tests, code)) == ["failed"]
    assert statuses(judged(tests, code, isolation="none")) == ["passed"]


@pytest.mark.parametrize(
    "say",
    [
        "b'garbage' * 100",
        "struct.pack('<I', 2**32 - 1)",
        "struct.pack('<I', 5) + b'(\\xff\\xff\\xff\\x7f'",
        "b''.join([struct.pack('<I', 1 << 20), b'(\\x01\\0\\0\\0' * (1 << 18)])",
        "message((0, True, (1, ()), (), ()))[:-1]",
        "message((0, True, (1, ()), ()))",
        "message((0, True, 5, (), ()))",
        "message((0, 'x', (1, ()), (), ()))",
        "message((1, True, 5, (), ()))",
        "message((99, True, (), (), ()))",
        "message((30, True, (1, (), {}), (), ()))",
        "message((0, False, (StopIteration, 'own', 77), (), ()))",
        "message((0, False, ((StopIteration, 'class', 9), ()), (), ()))",
        "message((0, True, (1, ()), ((5, 'x'),), ()))",
        "message((0, True, (1, ()), (), (('/etc/passwd', b'x', False, 1),)))",
        "message((0, False, ((StopIteration, 'numpy', 'O', (1,), b'12345678'), ()), (), ()))",
        "message((0, False, ((StopIteration, 'builtin', 'eval'), ()), (), ()))",
        "message((0, True, (1, ()), (), ())) * 2",
    ],
)
def test_no_message_of_a_candidate_hurts_the_judge(say: str) -> None:
    code = f"""
import marshal, os, struct
def message(value):
    body = marshal.dumps(value, 2)
    return struct.pack('<I', len(body)) + body
def f():
    pipe = max(int(name) for name in os.listdir("/proc/self/fd") if int(name) < 1024
               and os.readlink(f"/proc/self/fd/{{name}}").startswith("pipe"))
    for number in (pipe, pipe - 1):
        try: os.write(number, {say})
        except OSError: pass
    while True: pass
def g(): return 2
"""
    tests = """
    import solution
    def test_1(): assert solution.f() == 2
    def test_2(): assert solution.g() == 2
    """
    suite = judged(tests, code, limits=Limits(timeout_s=20.0, test_timeout_s=2.0))
    assert statuses(suite)[0] in ("error", "failed")
    assert statuses(suite)[1] == "passed"


def test_nothing_that_runs_comes_out_of_a_directory_of_a_test() -> None:
    tests = """
    import solution
    def test(tmp_path):
        solution.write(str(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    """
    code = """
    import os
    def write(place):
        for name in ("a.txt", "conftest.py", "x.pth"):
            with open(os.path.join(place, name), "w") as file: file.write("a")
        os.symlink("/etc/passwd", os.path.join(place, "link"))
    """
    assert judged(tests, code).all_passed


# -- how far tests are apart -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("import subprocess\ndef test(): pass\n", "runs programs (subprocess)"),
        ("def test(): assert eval('1') == 1\n", "runs text as code (eval)"),
        ("import pickle\ndef test(): pass\n", "unpickles (pickle)"),
        (
            "import solution\nclass Mine(solution.C): pass\ndef test(): Mine()\n",
            "bases the class Mine",
        ),
        ("async def helper(): pass\ndef test(): pass\n", "runs coroutines"),
        (
            "import time\ndef test(monkeypatch): monkeypatch.setattr(time, 'sleep', print)\n",
            "patches time.sleep, of which the candidate has its own",
        ),
        ("def test(): open('solution.py').close()\n", "uses the file 'solution.py'"),
    ],
)
def test_tests_that_cannot_be_apart_say_so(tests: str, why: str) -> None:
    suite = judged(tests, "class C: pass\n")
    assert (suite.all_passed, suite.trust) == (True, "shared")
    (warning,) = suite.warnings
    assert warning.startswith("tests and candidate share a process: test_a.py: line ")
    assert why in warning
    # It is the tests that decide: nothing that a candidate does changes it.
    assert judged(tests, "raise SystemExit").trust == "shared"


def test_a_reference_shows_what_cannot_be_apart() -> None:
    tests = """
    import solution
    def test_1():
        items = solution.items()
        items.append(5)
        assert solution.items() == [5]
    def test_2(): pass
    """
    code = "ITEMS = []\ndef items(): return ITEMS\n"
    assert statuses(judged(tests, code)) == ["failed", "passed"]
    suite = judged(tests, code, reference=code)
    assert (suite.all_passed, suite.trust) == (True, "shared")
    (warning,) = suite.warnings
    assert warning.endswith("test_a.py::test_1 has another outcome with the reference otherwise")
    # A candidate that needs it and a reference that does not: no candidate gets a weaker judge.
    other = "def items(): return ITEMS\nclass L(list):\n    pass\nITEMS = []\n"
    assert judged("def test(): pass\n", other, reference="").trust == "isolated"


def test_the_tests_of_a_run_are_those_of_the_reference() -> None:
    tests = """
    import pytest
    import solution
    @pytest.mark.parametrize("n", getattr(solution, "CASES", [1, 2]))
    def test_n(n): assert solution.f(n) == n
    @pytest.mark.skipif(getattr(solution, "SKIPS", False), reason="so it says")
    def test_skip(): pass
    @pytest.mark.skip
    def test_always(): pass
    """
    right = "def f(n): return n\n"
    runner = PytestRunner({"test_a.py": textwrap.dedent(tests)}, reference=right)
    assert said(runner(right))[-2:] == [
        ("test_skip", "passed", None),
        ("test_always", "skipped", "skip"),
    ]
    suite = runner("CASES = [1]\nSKIPS = True\n" + right)
    assert said(suite) == [
        ("test_n[1]", "passed", None),
        ("test_n[2]", "error", "not_run"),
        ("test_skip", "failed", "skip"),
        ("test_always", "skipped", "skip"),
    ]
    suite = runner("CASES = range(9)\n" + right)
    assert len(suite) == 4
    assert suite.warnings == ("7 tests that the reference does not have are left out",)
    suite = runner("syntax error")
    assert statuses(suite) == ["error"] * 4
    assert {test.reason for test in suite} == {"collection"}
    # The same by names alone.
    names = [test.name for test in suite]
    suite = PytestRunner({"test_a.py": textwrap.dedent(tests)}, expected=names)("raise ValueError")
    assert [test.name for test in suite] == names


def test_hidden_tests_are_judged_and_not_shown() -> None:
    shown = "from solution import f\ndef test_shown(): assert f(2) == 4\n"
    hidden = {"test_more.py": "from solution import f\ndef test_secret(): assert f(3) == 9\n"}
    runner = PytestRunner({"test_a.py": shown}, hidden=hidden)
    honest = runner("def f(n): return n * n\n")
    assert (honest.all_passed, honest.hidden_gap) == (True, 0.0)
    table = runner("def f(n): return {2: 4}[n]\n")
    assert table.hidden == ("hidden/test_more.py::test_secret",)
    assert (table.passed, table.failed, table.hidden_gap) == (1, 1, 1.0)
    assert PytestRunner({"test_a.py": shown})("def f(n): return 4\n").hidden_gap is None


def test_settings_survive_pickling() -> None:
    import pickle

    tests = {"test_a.py": "from solution import f\ndef test(): assert f() == 1\n"}
    runner = PytestRunner(
        tests, reference="def f(): return 1\n", hidden=tests, expected=["test_a.py::test"]
    )
    again = pickle.loads(pickle.dumps(runner))
    assert repr(again) == repr(runner)
    assert statuses(again("def f(): return 1\n")) == ["passed", "passed"]
    assert statuses(again("def f(): return 2\n")) == ["failed", "failed"]
