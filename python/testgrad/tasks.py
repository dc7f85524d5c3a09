"""Tasks: what to write, the tests that judge it, and a reference where there is one.

`read` takes HumanEval, MBPP, APPS-like rows, Exercism's folders, suites with variants, and
testgrad's own lines, which `write` writes. See docs/tasks.md.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from ._testgrad import Task, _TaskReader
from .errors import TaskError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Task", "TaskError", "read", "runner_options", "write"]

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)|<(?:think|thinking|thought|reasoning)>", re.M)
_SHORTEST_RUN_S = 10.0
_TESTS_AT_LEAST = 10


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    on_error: Callable[[TaskError], object] | None = None,
) -> Iterator[Task]:
    """The tasks of a file or folder, one after the other.

    A file has one JSON object a line, or an array of them; it may be packed with gzip. Of a file
    only one task at a time is in memory.

    Args:
        path: The file, or the folder of an Exercism exercise or track.
        format: "testgrad", "humaneval", "mbpp", "apps", "exercism" or "suites"; None finds it by
            content.
        on_error: Called with the error of a task that cannot be used, which is then left out; None
            raises it.

    Raises:
        TaskError: A task cannot be used: which line, and why.
        FileNotFoundError: There is no such file.
        ValueError: No such format.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        ...     write(file.name, [Task("a", kind="stdio", cases=[{"input": "1", "output": "2"}])])
        ...     [task.id for task in read(file.name)]
        ['a']
    """
    reader = _TaskReader(path, format)
    return reader if on_error is None else _usable(reader, on_error)


def _usable(reader: Iterator[Task], on_error: Callable[[TaskError], object]) -> Iterator[Task]:
    while True:
        try:
            task = next(reader)
        except StopIteration:
            return
        except TaskError as error:
            on_error(error)
        else:
            yield task


def write(path: str | PathLike[str], tasks: Iterable[Task]) -> None:
    """Write tasks as testgrad's own lines, from which `read` gives equal ones.

    The file is replaced once all are written, so `tasks` may come from it.

    Args:
        path: The file; packed with gzip when its name ends in ".gz".
        tasks: The tasks.
    """
    from pathlib import Path

    target = Path(path)
    part = target.with_name(f"{target.name}.part")
    try:
        with _opened(part, packed=target.suffix == ".gz") as file:
            for task in tasks:
                file.write(task.to_json().encode() + b"\n")
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _opened(path: Path, *, packed: bool) -> Any:
    if not packed:
        return path.open("wb")
    import gzip

    return gzip.open(path, "wb")


# -- runners ---------------------------------------------------------------------------------------


def runner_options(task: Task) -> dict[str, Any]:
    """The keyword arguments of the runner that judges a task.

    `limits` is a mapping with the arguments of `Limits`; it is absent when the task has no limits.
    The time of a whole run is that of its cases together (of a pytest suite, of ten tests), and
    10 s at least.

    Raises:
        ValueError: A task of kind "command": no runner here knows its command.
    """
    if task.kind == "command":
        raise ValueError(
            f"task {task.id!r} is for a command: run it beside task.tests and a candidate"
        )
    options: dict[str, Any] = {}
    if task.kind == "pytest":
        options |= {"tests": task.tests, "module": task.module}
        if task.reference is not None:
            options["reference"] = task.reference
    if task.kind == "function":
        options["entry_point"] = task.entry_point
        # What came from JSON has no tuples, and 1 and 1.0 are one number there.
        options |= {"sequences_equal": True, "tolerance": 0.0}
    if task.kind != "pytest":
        options["cases"] = task.cases
        if task.compare not in (None, "checker"):
            options["compare"] = task.compare
        if task.tolerance is not None:
            options["tolerance"] = task.tolerance
    limits: dict[str, Any] = {}
    if task.time_limit_s is not None:
        tests = len(options.get("cases", ())) or _TESTS_AT_LEAST
        limits["test_timeout_s"] = task.time_limit_s
        limits["timeout_s"] = max(_SHORTEST_RUN_S, task.time_limit_s * tests)
    if task.memory_limit_bytes is not None:
        limits["memory_bytes"] = task.memory_limit_bytes
    if limits:
        options["limits"] = limits
    return options


def _runner(task: Task, given: Mapping[str, Any]) -> Any:
    """`Task.runner`."""
    import testgrad

    options = runner_options(task) | dict(given)
    if task.compare == "checker" and "checker" not in options:
        raise ValueError(f"task {task.id!r} has many right outputs: give a checker=")
    if isinstance(options.get("limits"), dict):
        options["limits"] = testgrad.Limits(**options["limits"])
    runners = {
        "pytest": testgrad.PytestRunner,
        "stdio": testgrad.StdioRunner,
        "function": testgrad.FunctionRunner,
    }
    return runners[task.kind](**options)


# -- candidates ------------------------------------------------------------------------------------


def _candidate(task: Task, completion: str) -> str | dict[str, str]:
    """`Task.candidate`."""
    from testgrad.agents import extract_code

    if task.kind == "command":
        from pathlib import PurePosixPath

        path = _only_path(task)
        return {path: extract_code(completion, PurePosixPath(path).suffix.lstrip("."))}
    if task.entry_point is None or not _defines(task.prompt, task.entry_point):
        return extract_code(completion)
    return _continued(task.prompt, task.entry_point, completion)


def _only_path(task: Task) -> str:
    for files in (task.reference, task.stub):
        if isinstance(files, dict) and len(files) == 1:
            return next(iter(files))
    raise ValueError(f"task {task.id!r} wants several files, or files that nothing names")


def _continued(prompt: str, entry_point: str, completion: str) -> str:
    """The program that begins with a prompt, or takes its place."""
    from testgrad.agents import extract_code

    text = completion.replace("\r\n", "\n")
    first = next((line for line in text.split("\n") if line.strip()), "")
    is_bare = first[:1] in (" ", "\t") and not _FENCE.search(text)
    code = text if is_bare else extract_code(text)
    if not is_bare and not code[:1].isspace() and _defines(code, entry_point):
        return _with_preamble(prompt, entry_point, code)
    attempts = [prompt + code, f"{prompt}\n{code}", f"{prompt}\n{textwrap.indent(code, '    ')}"]
    return next((program for program in attempts if _has_body(program, entry_point)), attempts[0])


def _definition(code: str, name: str) -> re.Match[str] | None:
    return re.search(rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(name)}\b", code, re.M)


def _defines(code: str, name: str) -> bool:
    return _definition(code, name) is not None


def _with_preamble(prompt: str, entry_point: str, code: str) -> str:
    """A whole program below what the prompt has above the function; its own definitions win."""
    found = _definition(prompt, entry_point)
    above = prompt[: found.start()].rstrip() if found else ""
    while above.rpartition("\n")[2].startswith("@"):  # decorators belong to the function
        above = above.rpartition("\n")[0].rstrip()
    if not above or above in code or "from __future__" in code:
        return code
    return f"{above}\n\n\n{code}"


def _has_body(program: str, name: str) -> bool:
    """Whether a program is one, and its function does more than to have a docstring."""
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in tree.body if isinstance(node, kinds) and node.name == name]
    if not found:
        return False
    body = found[-1].body
    return not (
        len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    )
