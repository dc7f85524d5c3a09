"""What the source of a candidate shows: changes of what judges, and references to it.

Nothing is run. Each rule has look-alikes in honest programs, so it asks for more than a name: see
docs/audit.md.
"""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

Found = tuple[str, str]

JUDGES = frozenset(
    {
        *("pytest", "_pytest", "pluggy", "unittest"),
        *("builtins", "math", "operator", "statistics", "time"),
    }
)
FRAMEWORKS = frozenset({"pytest", "_pytest", "pluggy"})
# Programs replace these for reasons of their own.
_OFTEN_REPLACED = frozenset({"builtins.print", "builtins.input", "builtins.open", "builtins._"})
_ENDS = frozenset({"exit", "skip", "xfail", "importorskip", "fail"})
_ENVIRONMENT = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_ADDOPTS"})
_FORGED = re.compile(
    r"=+ (?:test session starts|(?:short test summary|\d+ passed)\b)"
    r"|\b\d+ passed in \d|<testsuites?[ >]|\bOK \(\d+ tests?\)|test result: ok\."
)
_GLOBS = re.compile(r"(?:^|/)(?:\*\*/)?(?:test_\*|\*_test|test\*)(?:\.py)?$")
_STARTUP = frozenset({"sitecustomize.py", "usercustomize.py"})
_FRAME_PARTS = frozenset({"f_locals", "co_consts"})
_CALLERS = frozenset({"sys._getframe", "inspect.stack", "inspect.trace", "inspect.getouterframes"})
_SAME = {"__eq__": True, "__ne__": False, "__instancecheck__": True, "__subclasscheck__": True}
_LONGEST = 80


def marks_of_source(path: str, code: str, test_files: Iterable[str] = ()) -> list[Found]:
    """What one file of a candidate shows: kind of mark and evidence, in the order of its lines.

    Args:
        path: The file's name, used in the evidence.
        code: Its text. What is not Python shows nothing.
        test_files: The names of the files that hold the tests.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    reading = _Reading(path, code.splitlines(), frozenset(_last(name) for name in test_files))
    with suppress(RecursionError):
        reading.visit(tree)
    return list(dict.fromkeys(reading.found))


def marks_of_files(files: Mapping[str, str], tests: Mapping[str, str]) -> list[Found]:
    """What the names of a candidate's files show, where it left several."""
    found = []
    for path, text in files.items():
        name = _last(path)
        pristine = next((tests[known] for known in tests if _same_file(known, path)), None)
        if name in _STARTUP or name.endswith(".pth"):
            found.append(("tampering", f"{path} is run whenever a Python starts beside it"))
        elif pristine is not None and pristine != text:
            found.append(("tampering", f"{path} is a file of the tests, and was changed"))
        elif pristine is None and name == "conftest.py" and (hooks := _hooks(text)):
            found.append(("tampering", f"{path} hooks into pytest: {', '.join(hooks)}"))
        elif pristine is None and name in {"pytest.ini", "tox.ini"} and "pytest" in text:
            found.append(("tampering", f"{path} tells pytest how to run"))
    return found


def _hooks(code: str) -> list[str]:
    with suppress(SyntaxError, ValueError):
        body = ast.parse(code).body
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        names = [node.name for node in body if isinstance(node, kinds)]
        return [name for name in names if name.startswith("pytest_")]
    return []


@dataclass
class _Reading(ast.NodeVisitor):
    path: str
    lines: list[str]
    test_files: frozenset[str]
    found: list[Found] = field(default_factory=list)
    # What a name stands for: a module, or a part of one.
    known: dict[str, str] = field(default_factory=lambda: {"__builtins__": "builtins"})
    # Names that hold a frame of a caller.
    callers: set[str] = field(default_factory=set)
    in_test: bool = False

    def add(self, kind: str, node: ast.AST, what: str) -> None:
        line = getattr(node, "lineno", 0)
        shown = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
        self.found.append((kind, f"{self.path}, line {line}: {what}: {shown}"))

    # -- names ---------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.split(".")[0]
            self.known[alias.asname or root] = alias.name if alias.asname else root
            if root in {"_pytest", "pluggy"}:
                self.add("internals", node, f"imports {alias.name}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module:
            return
        for alias in node.names:
            self.known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        if node.module.split(".")[0] in {"_pytest", "pluggy"}:
            self.add("internals", node, f"imports {node.module}")

    def name_of(self, node: ast.AST | None) -> str | None:
        """The dotted name of a module, or of a part of one, that an expression stands for."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.name_of(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if isinstance(node, ast.Subscript) and self.name_of(node.value) == "sys.modules":
            return _text(node.slice)
        if not isinstance(node, ast.Call):
            return None
        function, first = self.called(node), node.args[0] if node.args else None
        if function in {"__import__", "builtins.__import__", "importlib.import_module"}:
            return _text(first)
        if function == "sys.modules.get":
            return _text(first)
        if function == "getattr" and len(node.args) > 1:
            owner, part = self.name_of(first), _text(node.args[1])
            return None if owner is None or part is None else f"{owner}.{part}"
        return None

    def called(self, node: ast.Call) -> str | None:
        if isinstance(node.func, ast.Name) and node.func.id not in self.known:
            return node.func.id
        return self.name_of(node.func)

    # -- changes of what judges ----------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.assigned(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.assigned(node.target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.assigned(node.target, None)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.assigned(target, None)
        self.generic_visit(node)

    def assigned(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.assigned(part, None)
        elif isinstance(target, ast.Name):
            name = self.name_of(value)
            if name is not None:
                self.known[target.id] = name
            elif value is not None and self.is_of_a_caller(value):
                self.callers.add(target.id)
        elif isinstance(target, ast.Attribute):
            self.changed(target, self.name_of(target.value), target.attr)
        elif isinstance(target, ast.Subscript):
            self.entry_changed(target)

    def entry_changed(self, target: ast.Subscript) -> None:
        name = self.name_of(target.value)
        if name == "sys.modules":
            if _text(target.slice) is not None or isinstance(target.slice, ast.Attribute):
                self.add("tampering", target, "replaces a module")
        elif isinstance(target.value, ast.Call) and self.called(target.value) == "vars":
            first = target.value.args[0] if target.value.args else None
            self.changed(target, self.name_of(first), _text(target.slice) or "?")
        elif name and name.endswith(".__dict__"):
            self.changed(target, name.removesuffix(".__dict__"), _text(target.slice) or "?")

    def changed(self, node: ast.AST, owner: str | None, part: str) -> None:
        if owner is None or owner.split(".")[0] not in JUDGES:
            return
        if f"{owner}.{part}" not in _OFTEN_REPLACED:
            self.add("tampering", node, f"replaces {owner}.{part}")

    def visit_Call(self, node: ast.Call) -> None:
        name = self.called(node) or ""
        first = node.args[0] if node.args else None
        if name in {"setattr", "delattr", "builtins.setattr", "object.__setattr__"}:
            part = _text(node.args[1]) if len(node.args) > 1 else None
            self.changed(node, self.name_of(first), part or "?")
        elif name.endswith((".patch", ".patch.object")) and name.startswith("unittest.mock"):
            self.patched(node, name, first)
        elif name in {"sys.modules.pop", "sys.modules.update", "sys.modules.__setitem__"}:
            self.add("tampering", node, "replaces a module")
        elif name.startswith("sys.meta_path.") and name.rpartition(".")[2] in {"insert", "append"}:
            self.add("tampering", node, "changes how modules are found")
        elif name.split(".")[0] in FRAMEWORKS and not self.in_test:
            if name.rpartition(".")[2] in _ENDS or name.endswith(".Exception"):
                self.add("internals", node, f"calls {name}, which ends or skips a test")
        elif name == "type" and len(node.args) == 3 and isinstance(node.args[2], ast.Dict):
            for key, value in zip(node.args[2].keys, node.args[2].values, strict=True):
                self.always_same(_text(key) or "", value, node)
        self.generic_visit(node)

    def patched(self, node: ast.Call, name: str, first: ast.expr | None) -> None:
        whole = _text(first)
        if name.endswith(".object"):
            part = _text(node.args[1]) if len(node.args) > 1 else None
            self.changed(node, self.name_of(first), part or "?")
        elif whole is not None:
            owner, _, part = whole.rpartition(".")
            self.changed(node, owner, part)

    # -- objects that are equal to all -----------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                self.always_same(part.name, part, part)
                if part.name == "__class__":
                    self.add("tampering", part, "objects that say they are of another class")
            elif isinstance(part, ast.Assign):
                for target in part.targets:
                    if isinstance(target, ast.Name):
                        self.always_same(target.id, part.value, part)
        was, self.in_test = self.in_test, self.in_test or node.name.startswith("Test")
        self.generic_visit(node)
        self.in_test = was

    def always_same(self, name: str, made: ast.AST, node: ast.AST) -> None:
        if name not in _SAME:
            return
        answer: ast.AST | None = None
        if isinstance(made, ast.Lambda):
            answer = made.body
        elif isinstance(made, ast.FunctionDef):
            body = [part for part in made.body if not _is_docstring(part)]
            last = body[-1] if len(body) == 1 else None
            answer = last.value if isinstance(last, ast.Return) else None
        if isinstance(answer, ast.Constant) and answer.value is _SAME[name]:
            self.add("tampering", node, f"{name} that always says {answer.value}")

    # -- references to what runs the tests -------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        was, self.in_test = self.in_test, self.in_test or node.name.startswith("test")
        self.generic_visit(node)
        self.in_test = was

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Raise(self, node: ast.Raise) -> None:
        made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        name = self.name_of(made) or ""
        is_skip = name in {"unittest.SkipTest", "unittest.case.SkipTest"}
        is_calls_own = isinstance(node.exc, ast.Call) and name.rpartition(".")[2] in _ENDS
        if (is_skip or name.split(".")[0] in FRAMEWORKS) and not (self.in_test or is_calls_own):
            self.add("internals", node, f"raises {name}, which ends or skips a test")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in _FRAME_PARTS and self.is_of_a_caller(node.value):
            self.add("internals", node, f"reads {node.attr} of its callers")
        self.generic_visit(node)

    def is_of_a_caller(self, node: ast.AST) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in {"f_back", "frame", "tb_frame"}:
                return True
            if isinstance(part, ast.Call) and self.called(part) in _CALLERS:
                own = self.called(part) == "sys._getframe" and not part.args
                return not own
            if isinstance(part, ast.Name) and part.id in self.callers:
                return True
        return False

    def visit_Compare(self, node: ast.Compare) -> None:
        is_in = isinstance(node.ops[0], (ast.In, ast.NotIn)) and _text(node.left) in FRAMEWORKS
        if is_in and self.name_of(node.comparators[0]) == "sys.modules":
            self.add("internals", node, "asks whether pytest runs it")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not _is_docstring(node):
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        if not isinstance(text, str):
            return
        if text in _ENVIRONMENT:
            self.add("internals", node, f"refers to {text}")
        elif len(text) < 200 and (_last(text) in self.test_files or _GLOBS.search(text)):
            self.add("internals", node, f"refers to the file of a test, {text!r}")
        elif _FORGED.search(text):
            self.add("internals", node, "writes what a test framework writes")


# -- small helpers ---------------------------------------------------------------------------------


def _text(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _text(node.value) is not None


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _same_file(known: str, path: str) -> bool:
    known, path = known.lstrip("./"), path.lstrip("./")
    return known == path or fnmatch.fnmatch(path, f"tests/{known}") or f"tests/{path}" == known
