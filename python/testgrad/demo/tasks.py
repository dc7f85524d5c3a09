"""Read the cases of the demo: the standard library's programs, or a task file.

A task file has one JSON object a line (plain or gzip): `id`, `files` (path to text, among them the
tests) and `variants` (name to path to text), laid over the files.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from testgrad.demo.programs import PROGRAMS, Program
from testgrad.demo.repair import Case

STARTS = ("buggy", "stub")

_T = TypeVar("_T")


class TaskError(ValueError):
    """A task file, or the choice of programs, that cannot be used; says where and why."""


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
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            try:
                yield _task_case(json.loads(line))
            except (ValueError, TypeError) as error:
                raise TaskError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> list[str]:
    content = path.read_bytes()
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return content.decode("utf-8").split("\n")
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: not a task file: {error}") from error


def _task_case(task: object) -> Case:
    if not isinstance(task, dict) or not isinstance(task.get("id"), str):
        raise ValueError("not a task: an object with an id is needed")
    variants = task.get("variants")
    if not isinstance(variants, dict):
        raise ValueError(f"task {task['id']}: no variants")
    start = next((name for name in STARTS if name in variants), None)
    if start is None:
        raise ValueError(f"task {task['id']}: no variant {' or '.join(STARTS)}")
    files = _texts(task, task["id"], "files")
    variant = _texts(variants, task["id"], start)
    programs = [name for name in variant if name.endswith(".py")]
    if len(programs) != 1:
        raise ValueError(
            f"task {task['id']}: variant {start} has {len(programs)} Python files, not one"
        )
    [program] = programs
    reference = variants.get("reference")
    original = reference.get(program) if isinstance(reference, dict) else None
    return Case(
        name=task["id"],
        broken=variant[program],
        tests={name: text for name, text in (files | variant).items() if name != program},
        module=".".join(PurePosixPath(program).with_suffix("").parts),
        original=original if isinstance(original, str) else None,
        defect=f"variant {start}",
    )


def _texts(holder: Mapping[str, object], task: str, key: str) -> dict[str, str]:
    texts = holder.get(key)
    if not isinstance(texts, dict):
        raise ValueError(f"task {task}: {key} is not an object of path to text")
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"task {task}: {key}: {name} is not a text")
    return texts


def _choose(items: Mapping[str, _T], names: Sequence[str], word: str) -> list[_T]:
    missing = [name for name in names if name not in items]
    if missing:
        known = ", ".join(items) if len(items) <= 20 else f"{len(items)} others"
        raise TaskError(f"no {word} {', '.join(missing)}: there is {known}")
    return [items[name] for name in names] if names else list(items.values())
