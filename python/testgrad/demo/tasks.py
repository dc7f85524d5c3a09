"""The cases of the demo: the standard library's programs, or the tasks of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from testgrad import TaskError, tasks
from testgrad.demo.programs import PROGRAMS, Program
from testgrad.demo.repair import Case

_T = TypeVar("_T")


def library_cases(
    names: Sequence[str] = (), *, seed: int = 0, warn: Callable[[str], None]
) -> list[Case]:
    """Break the standard library's programs, all or those named.

    Programs that this Python does not have in source form are left out, with a warning.

    Raises:
        TaskError: a name is not a program of the demo, or nothing is left.
    """
    cases = []
    for program in _choose({program.name: program for program in PROGRAMS}, names, "program"):
        try:
            cases.append(_library_case(program, seed))
        except LookupError as error:
            warn(f"left out: {error}")
    if not cases:
        raise TaskError("this Python's standard library has no source text of the programs")
    return cases


def _library_case(program: Program, seed: int) -> Case:
    source = program.read_source()
    defect, broken = program.breakage(source, seed=seed)
    return Case(
        name=program.name,
        broken=broken,
        tests={f"test_{program.name}.py": program.read_suite()},
        original=source,
        defect=str(defect),
    )


def task_cases(path: Path, names: Sequence[str] = ()) -> list[Case]:
    """Read a task file, all tasks or those named by id.

    Raises:
        TaskError: a line is not a task for Python, with its number; or an id is not in the file.
        OSError: the file cannot be read.
    """
    cases = {case.name: case for case in _read(path)}
    if not cases:
        raise TaskError(f"{path}: no tasks in it")
    return _choose(cases, names, "task")


def _read(path: Path) -> Iterator[Case]:
    for task in tasks.read(path):
        try:
            yield _task_case(task)
        except ValueError as error:
            where, line = task.source or (str(path), None)
            place = where if line is None else f"{where}, line {line}"
            raise TaskError(f"{place}: task {task.id}: {error}", path=where, line=line) from error


def _task_case(task: tasks.Task) -> Case:
    if task.kind != "pytest" or task.module is None:
        raise ValueError("not Python that pytest judges")
    if task.stub is None:
        raise ValueError("nothing to start from: no stub")
    tests = task.tests
    broken = _program(task.stub, task.module, tests)
    original = task.reference if isinstance(task.reference, str) else None
    names = [name for name in ("buggy", "stub") if task.variants.get(name) == task.stub]
    defect = f"variant {names[0]}" if names else "the stub"
    return Case(task.id, broken, tests, task.module, original, defect)


def _program(candidate: str | dict[str, str], module: str, beside: dict[str, str]) -> str:
    """The text of the module; the other files of the candidate go to `beside`."""
    if isinstance(candidate, str):
        return candidate
    path = f"{module.replace('.', '/')}.py"
    rest = {name: text for name, text in candidate.items() if name != path}
    if path not in candidate or any(name.endswith(".py") for name in rest):
        raise ValueError(f"its candidate is not one Python file, {path}")
    beside.update(rest)
    return candidate[path]


def _choose(items: Mapping[str, _T], names: Sequence[str], word: str) -> list[_T]:
    missing = [name for name in names if name not in items]
    if missing:
        known = ", ".join(items) if len(items) <= 20 else f"{len(items)} others"
        raise TaskError(f"no {word} {', '.join(missing)}: there is {known}")
    return [items[name] for name in names] if names else list(items.values())
