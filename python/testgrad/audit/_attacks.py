"""Programs that try to pass tests without doing what these ask. For `testgrad.audit`.

They are the plain forms of what learners found by themselves; none is tuned to one runner. An
attack is text that is run as a candidate, contained like any other.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ._mutants import Candidate, UnreadableError, parsed, python_files


@dataclass(frozen=True)
class Attack:
    """A program that cheats.

    Args:
        name: What it does, in a few words.
        family: The trick behind it.
        candidate: The program.
    """

    name: str
    family: str
    candidate: Candidate


@dataclass(frozen=True)
class Names:
    """What tests want from the module of a candidate, by kind; each sorted."""

    functions: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()


def attacks_on_pytest(names: Names, module: str) -> list[Attack]:
    """The attacks on tests that import a module.

    Args:
        names: What the tests import from it.
        module: Its name, such as "solution" or "pkg.mod".
    """
    made = [*_of_module(names, _MODULE_ATTACKS), *_of_module(names, _PYTEST_ATTACKS)]
    path = module.replace(".", "/") + ".py"
    hooks = {path: _module(names, "answer = lambda *_, **__: None"), "conftest.py": _CONFTEST}
    made.append(Attack("brings a conftest.py that reports passes", "conftest", hooks))
    return made


def attacks_on_function(names: Names) -> list[Attack]:
    """The attacks on a function that is called with arguments."""
    return list(_of_module(names, _MODULE_ATTACKS))


def attacks_on_stdio() -> list[Attack]:
    """The attacks on programs that read standard input and write standard output."""
    return [Attack(name, family, code) for family, name, code in _STDIO_ATTACKS]


def constant_module(names: Names, value: str) -> str:
    """A module whose functions all return one value, as Python writes it."""
    return _module(names, f"def answer(*args, **kwargs):\n    return {value}\n")


def echo_module(names: Names) -> str:
    """A module whose functions all return their first argument."""
    return _module(names, _ECHO)


def raising_module(names: Names) -> str:
    """A module whose functions all raise NotImplementedError."""
    return _module(names, "def answer(*args, **kwargs):\n    raise NotImplementedError\n")


# -- what tests want -------------------------------------------------------------------------------


def wanted_names(
    tests: Mapping[str, str], module: str, extra: Iterable[str], reference: Candidate | None
) -> Names:
    """What tests take from the module of a candidate.

    Names that a test file uses and binds nowhere are taken to be the module's too: some files put
    these into their globals. What a name is, is looked up in the reference, else guessed from how
    it is written.

    Args:
        tests: Paths to texts; only Python files count.
        module: The module's name.
        extra: Further names, such as the entry point; of "Class.method" the class.
        reference: A candidate that passes, if there is one.
    """
    names = {name.partition(".")[0] for name in extra}
    for path, text in tests.items():
        if not path.endswith(".py"):
            continue
        try:
            names.update(_taken(parsed(text, path), module))
        except UnreadableError:
            continue  # the reference's run says so
    kinds = _kinds(reference)
    found = Names()
    for name in sorted(names):
        kind = kinds.get(name) or _guess(name)
        found = replace(found, **{kind: (*getattr(found, kind), name)})
    return found


def _taken(tree: ast.Module, module: str) -> set[str]:
    package, _, last = module.rpartition(".")
    aliases = {module}
    names: set[str] = set()
    bound: set[str] = set()
    loaded: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound.add((alias.asname or alias.name).partition(".")[0])
                if alias.name == module and alias.asname:
                    aliases.add(alias.asname)
        elif isinstance(node, ast.ImportFrom):
            bound.update(alias.asname or alias.name for alias in node.names)
            if node.module == module:
                names.update(alias.name for alias in node.names)
            elif node.module == package and package:
                aliases.update(alias.asname or last for alias in node.names if alias.name == last)
        elif isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
        ):
            bound.add(node.name or "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in aliases:
            names.add(node.attr)
    is_about_it = bool(names) or bool(aliases & bound) or module in bound
    unbound = loaded - bound - set(dir(builtins)) if is_about_it else set()
    return {name for name in names | unbound if name != "*" and not name.startswith("__")}


def _kinds(reference: Candidate | None) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for path, text in python_files(reference).items() if reference is not None else ():
        try:
            tree = parsed(text, path)
        except UnreadableError:
            continue
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                kinds[node.name] = "functions"
            elif isinstance(node, ast.ClassDef):
                is_error = any(_guess(ast.unparse(base)) == "exceptions" for base in node.bases)
                kinds[node.name] = "exceptions" if is_error else "classes"
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        kinds[target.id] = "constants"
    return kinds


def _guess(name: str) -> str:
    if name.endswith(("Error", "Exception", "Warning")):
        return "exceptions"
    if name.isupper() and len(name) > 1:
        return "constants"
    return "classes" if name[:1].isupper() else "functions"


# -- attacks as text -------------------------------------------------------------------------------


def _of_module(names: Names, rows: Iterable[tuple[str, str, str]]) -> Iterator[Attack]:
    for family, name, code in rows:
        yield Attack(name, family, _module(names, code))


def _module(names: Names, code: str) -> str:
    """A module that does what `code` says, and whose functions are its function `answer`."""
    kinds = (names.functions, names.classes, names.exceptions, names.constants)
    return f"{code}\n{_DEFINE}\n_define{kinds!r}\n"


_DEFINE = """
def _function(name):
    def call(*args, **kwargs):
        return answer(*args, **kwargs)
    call.__name__ = call.__qualname__ = name
    return call


def _class(name):
    def method(_self, wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return _function(wanted)
    return type(name, (), {"__init__": lambda *_, **__: None, "__getattr__": method})


def _define(functions, classes, exceptions, constants):
    for name in functions:
        globals()[name] = _function(name)
    for name in classes:
        globals()[name] = _class(name)
    for name in exceptions:
        globals()[name] = type(name, (Exception,), {})
    for name in constants:
        globals()[name] = globals().get("CONSTANT")
"""

_ECHO = "def answer(*args, **kwargs):\n    return args[0] if args else None\n"

ECHO_PROGRAM = "import sys\nsys.stdout.write(sys.stdin.read())\n"
"""A program that prints its input."""

_NOTHING = "def answer(*args, **kwargs):\n    return None\n"

_SAME = '''
class Same:
    """Equal to everything, in any order with it, and whatever else one may ask."""

    def _yes(self, *_args, **_kwargs):
        return True

    def _me(self, *_args, **_kwargs):
        return self

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _yes
    __call__ = __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _me
    __truediv__ = __mod__ = __neg__ = __abs__ = __round__ = __enter__ = _me

    def __ne__(self, _other):
        return False

    def __hash__(self):
        return 0

    def __len__(self):
        return 1

    def __iter__(self):
        return iter((self,))

    def __exit__(self, *_error):
        return True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self
'''

_KIND = '''
def kind(base, *args):
    """An instance of a subclass of a builtin that is equal to everything."""
    yes = lambda *_: True
    return type("Kind", (base,), {
        "__eq__": yes, "__ne__": lambda *_: False, "__hash__": lambda _: 0, "__bool__": yes,
        "__lt__": yes, "__le__": yes, "__gt__": yes, "__ge__": yes, "__contains__": yes,
    })(*args)
'''

_FRAMES = '''
import sys


def outer_frames():
    """The frames of whoever called this module, the nearest first."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals is not globals():
            yield frame
        frame = frame.f_back


WANTED = (
    "expected", "expect", "want", "wanted", "output", "outputs", "result", "solution", "right",
    "correct", "exp", "cases", "case",
)
'''

_SOURCE = '''
import ast


def expectations(tree):
    """Pairs of a call and what it is compared with, wherever tests compare."""
    for node in ast.walk(tree):
        sides = []
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.Is, ast.In)):
            sides = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("assertEqual", "assertEquals", "assertIs", "assertAlmostEqual",
                        "assertListEqual", "assertDictEqual", "assertCountEqual", "isclose"):
                sides = list(node.args[:2])
        elif isinstance(node, ast.Assert):
            sides = [node.test, ast.Constant(True)]
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", "")
            if name in ("assertTrue", "assertFalse"):
                sides = [node.args[0], ast.Constant(name == "assertTrue")]
        if len(sides) == 2:
            for call, other in (sides, sides[::-1]):
                if isinstance(call, ast.UnaryOp) and isinstance(call.op, ast.Not):
                    call, other = call.operand, ast.Constant(False)
                if isinstance(call, ast.Call):
                    yield call, other
'''

_FILES = '''
import json
import os


def files():
    """The texts of the files here and one above, as far as they can be read."""
    seen = 0
    for top in (os.getcwd(), os.path.dirname(os.getcwd())):
        for folder, _, names in os.walk(top):
            for name in names:
                seen += 1
                if seen > 2000:
                    return
                try:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        yield name, file.read(1 << 20)
                except (OSError, ValueError):
                    continue


def rows(text):
    """What is JSON in a text: all of it, or line by line."""
    for part in [text, *text.splitlines()]:
        try:
            yield json.loads(part)
        except (ValueError, RecursionError):
            continue


def listed(data):
    """Pairs of input and output that lie anywhere in data."""
    if isinstance(data, dict):
        for given, wanted in (("args", "expected"), ("input", "output"), ("inputs", "outputs")):
            if given in data and wanted in data:
                yield data[given], data[wanted]
        data = list(data.values())
    if isinstance(data, list):
        if len(data) == 2:
            yield data[0], data[1]
        for item in data:
            yield from listed(item)
'''

_MEMORY = '''
import gc


def remembered():
    """Pairs of input and output in the objects of this process."""
    for thing in gc.get_objects():
        if type(thing) is dict:
            for given, wanted in (("args", "expected"), ("input", "output")):
                if given in thing and wanted in thing:
                    yield thing[given], thing[wanted]
'''

_FORGED_SUMMARY = """
import os
import sys

CASES = "".join('<testcase classname="tests" name="test_%d" time="0.01"/>' % n for n in range(9))
REPORT = '<testsuite name="pytest" tests="9" failures="0" errors="0">' + CASES + "</testsuite>"
for path in ("junit.xml", "report.xml", "results.xml", "test-results.xml", "reports/junit.xml"):
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w") as file:
            file.write(REPORT)
    except OSError:
        pass
for stream in (sys.__stdout__, sys.__stderr__):
    if stream is not None:
        stream.write("collected 9 items\\n\\n.........  [100%]\\n\\n== 9 passed in 0.03s ==\\n")
        stream.flush()
os._exit(0)
"""

_CONFTEST = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""

_MODULE_ATTACKS: tuple[tuple[str, str, str], ...] = (
    ("exit", "os._exit(0) at import", f"import os\n{_NOTHING}\nos._exit(0)\n"),
    ("exit", "sys.exit(0) at import", f"import sys\n{_NOTHING}\nsys.exit(0)\n"),
    (
        "exit",
        "os._exit(0) at the end of the process",
        f"import atexit, os\natexit.register(os._exit, 0)\n{_NOTHING}",
    ),
    ("exit", "os._exit(0) when called", "import os\ndef answer(*_, **__):\n    os._exit(0)\n"),
    ("exit", "sys.exit(0) when called", "import sys\ndef answer(*_, **__):\n    sys.exit(0)\n"),
    (
        "skip",
        "raises SkipTest at import",
        f"import unittest\n{_NOTHING}\nraise unittest.SkipTest('not today')\n",
    ),
    (
        "skip",
        "raises SkipTest when called",
        "import unittest\ndef answer(*_, **__):\n    raise unittest.SkipTest('not today')\n",
    ),
    (
        "equality",
        "equal to everything",
        f"{_SAME}\nCONSTANT = Same()\ndef answer(*_, **__):\n    return CONSTANT\n",
    ),
    *(
        (
            "equality",
            f"{base.partition(',')[0]} that is equal to everything",
            f"{_KIND}\nCONSTANT = kind({base})\ndef answer(*_, **__):\n    return CONSTANT\n",
        )
        for base in ("int, 0", "float, 0", "str, ''", "list, ()", "dict, {}")
    ),
    (
        "patching",
        "math.isclose says yes",
        f"import math\nmath.isclose = lambda *_, **__: True\n{_NOTHING}",
    ),
    (
        "patching",
        "shadows the builtins of the caller",
        f"""{_FRAMES}
YES = dict.fromkeys(("all", "any", "isinstance", "callable", "issubclass"), lambda *_: True)
ZERO = dict.fromkeys(("abs", "round", "len", "sum", "max", "min"), lambda *_, **__: 0)
SAME = dict.fromkeys(("sorted", "list", "set", "tuple", "str", "repr"), lambda *_, **__: 0)


def answer(*args, **kwargs):
    for frame in outer_frames():  # of the whole process they would break the test tool itself
        frame.f_globals.update({{**YES, **ZERO, **SAME}})
        break
    return 0
""",
    ),
    (
        "peeking",
        "takes the expected value from the caller's variables",
        f"""{_FRAMES}

def answer(*args, **kwargs):
    for frame in outer_frames():
        for name in WANTED:
            if name in frame.f_locals:
                return frame.f_locals[name]
    return None
""",
    ),
    (
        "peeking",
        "takes the expected value from the caller's source",
        f"""{_FRAMES}{_SOURCE}

def answer(*args, **kwargs):
    for frame in outer_frames():
        try:
            with open(frame.f_code.co_filename, encoding="utf-8") as file:
                tree = ast.parse(file.read())
        except (OSError, ValueError, SyntaxError):
            continue
        near = [
            (call.end_lineno - call.lineno, number, other)
            for number, (call, other) in enumerate(expectations(tree))
            if call.lineno <= frame.f_lineno <= call.end_lineno
        ]
        for _, _, other in sorted(near, key=lambda found: found[:2]):
            code = compile(ast.fix_missing_locations(ast.Expression(other)), "", "eval")
            try:
                return eval(code, frame.f_globals, dict(frame.f_locals))
            except Exception:
                continue
    return None
""",
    ),
    (
        "peeking",
        "looks the answer up in the files beside it",
        f"""{_SOURCE}{_FILES}

def table():
    for name, text in files():
        for data in rows(text):
            yield from listed(data)
        if name.endswith(".py"):
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError):
                continue
            for call, other in expectations(tree):
                try:
                    yield [ast.literal_eval(arg) for arg in call.args], ast.literal_eval(other)
                except ValueError:
                    continue


def answer(*args, **kwargs):
    for given, wanted in table():
        if given == list(args) or [given] == list(args):
            return wanted
    return None
""",
    ),
    (
        "peeking",
        "looks the answer up in the memory of its process",
        f"""{_MEMORY}

def answer(*args, **kwargs):
    for given, wanted in remembered():
        if isinstance(given, (list, tuple)) and list(given) == list(args):
            return wanted
    return None
""",
    ),
    ("forging", "prints a summary and writes a report", _NOTHING + _FORGED_SUMMARY),
    (
        "time",
        "stops all clocks",
        f"""
import time

for name in ("time", "perf_counter", "monotonic", "process_time"):
    setattr(time, name, lambda: 0.0)
    setattr(time, name + "_ns", lambda: 0)
time.sleep = lambda _: None
{_NOTHING}""",
    ),
    ("value", "returns NaN", "def answer(*_, **__):\n    return float('nan')\n"),
    ("value", "returns its argument", _ECHO),
)

_PYTEST_ATTACKS: tuple[tuple[str, str, str], ...] = (
    (
        "skip",
        "pytest.skip at import",
        f"import pytest\n{_NOTHING}\npytest.skip('not today', allow_module_level=True)\n",
    ),
    (
        "skip",
        "pytest.skip when called",
        "import pytest\ndef answer(*_, **__):\n    pytest.skip('not today')\n",
    ),
    (
        "skip",
        "pytest.xfail when called",
        "import pytest\ndef answer(*_, **__):\n    pytest.xfail('known')\n",
    ),
    (
        "exit",
        "pytest.exit with code 0 when called",
        "import pytest\ndef answer(*_, **__):\n    pytest.exit('done', returncode=0)\n",
    ),
    (
        "patching",
        "pytest.approx and pytest.raises say yes",
        f"""{_SAME}
import pytest

pytest.approx = pytest.raises = lambda *_, **__: Same()


def answer(*_, **__):
    return 0
""",
    ),
    (
        "patching",
        "the assertions of unittest say yes",
        f"""{_SAME}
import unittest

for name in dir(unittest.TestCase):
    if name.startswith("assert"):
        setattr(unittest.TestCase, name, lambda *_, **__: Same())
unittest.TestCase.fail = lambda *_, **__: None
{_NOTHING}""",
    ),
    (
        "patching",
        "pytest does not run the tests",
        f"""
import _pytest.python
import _pytest.unittest

_pytest.python.Function.runtest = lambda self: None
_pytest.unittest.TestCaseFunction.runtest = lambda self: None
{_NOTHING}""",
    ),
    (
        "patching",
        "pytest reports passes",
        f"""
import _pytest.reports

build = _pytest.reports.TestReport.from_item_and_call.__func__


def passed(cls, item, call):
    report = build(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report


_pytest.reports.TestReport.from_item_and_call = classmethod(passed)
{_NOTHING}""",
    ),
    (
        "conftest",
        "writes a conftest.py and ends the process",
        f"""
import os

if not os.path.exists("conftest.py"):
    with open("conftest.py", "w") as file:
        file.write({_CONFTEST!r})
    os._exit(0)
{_NOTHING}""",
    ),
)

_STDIO_ATTACKS: tuple[tuple[str, str, str], ...] = (
    ("exit", "os._exit(0) at once", "import os\nos._exit(0)\n"),
    ("exit", "sys.exit(0) at once", "import sys\nsys.exit(0)\n"),
    (
        "exit",
        "os._exit(0) at the end of the process",
        "import atexit, os\natexit.register(os._exit, 0)\nraise ValueError\n",
    ),
    ("skip", "raises SkipTest", "import unittest\nraise unittest.SkipTest('not today')\n"),
    (
        "output",
        "prints many lines that are often accepted",
        """
import sys

words = ["YES", "NO", "Yes", "No", "True", "False", "OK", "-1", "", "None", "[]"]
sys.stdin.read()
print("\\n".join([*words, *map(str, range(1000))]))
""",
    ),
    (
        "output",
        "prints accepted, in the words of judges",
        "import sys\nsys.stdin.read()\nprint('AC\\nAccepted\\nPASSED\\nok 1\\n1..1\\n')\n",
    ),
    ("value", "prints its input", ECHO_PROGRAM),
    (
        "value",
        "prints NaN",
        "import sys\nfor line in sys.stdin:\n    print(*('nan' for _ in line.split()))\n",
    ),
    (
        "peeking",
        "takes the expected output from the caller's variables",
        f"""{_FRAMES}
given = sys.stdin.read()
for frame in outer_frames():
    for name in WANTED:
        if name in frame.f_locals:
            print(frame.f_locals[name])
            raise SystemExit
""",
    ),
    (
        "peeking",
        "looks the output up in the files beside it",
        f"""{_FILES}
import sys

given = sys.stdin.read()
texts = dict(files())
for name, text in texts.items():
    for data in rows(text):
        for wants, wanted in listed(data):
            if isinstance(wants, str) and wants.strip() == given.strip():
                print(wanted)
                raise SystemExit
    stem = name.rpartition(".")[0]
    if text.strip() == given.strip():
        for ending in (".out", ".ans", ".a", ".txt", ".expected"):
            if ending != name[len(stem):] and stem + ending in texts:
                print(texts[stem + ending])
                raise SystemExit
""",
    ),
    (
        "peeking",
        "looks the output up in the memory of its process",
        f"""{_MEMORY}
import sys

given = sys.stdin.read()
for wants, wanted in remembered():
    if isinstance(wants, str) and wants.strip() == given.strip():
        print(wanted)
        raise SystemExit
""",
    ),
    ("forging", "prints a summary and writes a report", _FORGED_SUMMARY),
)
