"""Reads test files for what keeps them from being apart from the candidate; see `_mirror.py`.

Only the text of the tests is looked at, so a candidate has no part in the answer. Standard library
only, Python 3.8 or later.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

WIDE = {"module", "session", "class", "package"}
SET_UPS = {"setUpClass", "setUpModule", "setup_class", "setup_module"}
# What a test may patch outside the candidate: the candidate has the same.
SHARED_NAMES = {"sys.stdin", "sys.stdout", "sys.stderr", "builtins.input", "os.environ"}
INSIDE = {"__file__", "__code__", "__globals__", "__closure__"}
RUNS = {
    "eval": "runs text as code",
    "exec": "runs text as code",
    "compile": "runs text as code",
}
MODULES = {
    "pickle": "unpickles",
    "dill": "unpickles",
    "joblib": "unpickles",
    "marshal": "reads code",
    "shelve": "unpickles",
    "runpy": "runs files",
    "subprocess": "runs programs",
    "inspect": "inspects functions",
    "asyncio": "runs coroutines",
    "doctest": "runs doctests",
}


class Reader(ast.NodeVisitor):
    """What one test file needs."""

    def __init__(self, module: str) -> None:
        self.top = module.split(".")[0]
        self.file = module.replace(".", "/") + ".py"
        self.own: set[str] = set()
        self.foreign: dict[str, str] = {}
        self.found: list[tuple[str, str]] = []

    def need(self, needs: str, node: Any, why: str) -> None:
        self.found.append((needs, f"line {node.lineno} {why}"))

    # -- imports -----------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.split(".")[0]
            name = alias.asname or top
            if top == self.top:
                self.own.add(name)
            else:
                self.foreign[name] = alias.name if alias.asname else top
            self._module(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            name = alias.asname or alias.name
            if module.split(".")[0] == self.top or (node.level > 0 and not module):
                self.own.add(name)
            else:
                self.foreign[name] = f"{module}.{alias.name}"
        self._module(node, module)

    def _module(self, node: Any, name: str) -> None:
        top = name.split(".")[0]
        if top in MODULES:
            self.need("shared", node, f"{MODULES[top]} ({name})")
        if name.startswith(("importlib.util", "importlib.machinery")):
            self.need("shared", node, f"loads modules by their files ({name})")

    # -- classes and fixtures ----------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            if root_of(base) in self.own:
                self.need("shared", node, f"bases the class {node.name} on one of the candidate")
            if text_of(base).endswith("IsolatedAsyncioTestCase"):
                self.need("shared", node, "runs coroutines")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SET_UPS:
            self.need("session", node, f"sets up for several tests in {node.name}")
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.need("shared", node, "runs coroutines")

    # -- calls -------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        name = text_of(node.func)
        if name in RUNS:
            self.need("shared", node, f"{RUNS[name]} ({name})")
        if name.endswith(("import_module", "spec_from_file_location")) and not self._is_own_name(
            node
        ):
            self.need("shared", node, f"loads modules ({name})")
        if name in ("os.system", "os.popen", "os.execv", "os.execvp"):
            self.need("shared", node, f"runs programs ({name})")
        if name.endswith("fixture"):
            for keyword in node.keywords:
                value = getattr(keyword.value, "value", None)
                if keyword.arg == "scope" and value in WIDE:
                    self.need("session", node, f"has a fixture for several tests (scope={value!r})")
        if name.split(".")[-1] in ("patch", "setattr", "delattr", "patch.object", "object", "dict"):
            self._patch(node, name)
        self.generic_visit(node)

    def _is_own_name(self, node: ast.Call) -> bool:
        value = getattr(node.args[0], "value", None) if node.args else None
        return isinstance(value, str) and value.split(".")[0] == self.top

    def _patch(self, node: ast.Call, name: str) -> None:
        is_monkeypatch = name in ("monkeypatch.setattr", "monkeypatch.delattr", "mp.setattr")
        is_patch = name == "patch" or name.endswith(("mock.patch", ".patch"))
        is_object = name.endswith("patch.object")
        if not node.args or not (is_monkeypatch or is_patch or is_object):
            return
        target = getattr(node.args[0], "value", None)
        if not isinstance(target, str):
            target = text_of(node.args[0])
            if (
                target in self.own
                or root_of(node.args[0]) in self.own
                or not (is_monkeypatch or is_object)
            ):
                return
            attribute = getattr(node.args[1], "value", "") if len(node.args) > 1 else ""
            root = root_of(node.args[0])
            if root not in self.foreign:
                return  # something of the test's own
            target = f"{self.foreign[root]}{target[len(root) :]}.{attribute}"
        if target.split(".")[0] != self.top and not any(
            target == own or target.startswith(own + ".") for own in SHARED_NAMES
        ):
            self.need("shared", node, f"patches {target}, of which the candidate has its own")

    # -- the candidate's file ----------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, str) and (value == self.file or value.endswith("/" + self.file)):
            self.need("shared", node, f"uses the file {value!r} of the candidate")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (
            node.attr in ("__file__", "__code__", "__globals__", "__closure__")
            and root_of(node) in self.own
        ):
            self.need("shared", node, f"looks at {node.attr} of the candidate")
        self.generic_visit(node)


def root_of(node: Any) -> str:
    """The name that an expression begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def text_of(node: Any) -> str:
    """A dotted name as text; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def examine(path: str, module: str) -> tuple[str, str] | None:
    """What a test file needs, "session" or "shared", and why; None for nothing."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return None  # which pytest will say
    reader = Reader(module)
    reader.visit(tree)
    found = sorted(reader.found, key=lambda one: one[0] != "shared")
    return found[0] if found else None
