"""`testgrad audit`: say what the tests of tasks are worth, or what looks suspicious in a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testgrad.cli._shared import UsageError, not_below, share, warn

if TYPE_CHECKING:
    from testgrad.cli._shared import Subparsers
    from testgrad.tasks import Task


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "audit",
        help="say what the tests of tasks are worth, or what looks suspicious in a run",
        description="Run the reference of each task, programs that do nothing, mutants and "
        "attacks, and say what the tests made of them. Exit code 1 where a task is not ok, 3 where "
        "some could not be audited and the others are ok. With --run, look for marks of cheating "
        "in the candidates of a journal; exit code 1 where there are some.",
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", nargs="?", help="tasks: a file or a folder"
    )
    parser.add_argument(
        "--run",
        type=Path,
        dest="journal",
        metavar="JOURNAL",
        help="look at the candidates of this journal; FILE and --task name what they had to solve",
    )
    parser.add_argument("--task", metavar="ID", help="only the task of this name")
    parser.add_argument("--json", action="store_true", help="print one JSON object a task")
    parser.add_argument("--mutants", type=not_below(0), metavar="N", help="mutants at most")
    parser.add_argument("--repeat", type=not_below(1), metavar="N", help="runs of the reference")
    parser.add_argument("--seed", type=int, metavar="N", help="which mutants")
    parser.add_argument("--no-attacks", action="store_true", help="run no programs that cheat")
    parser.add_argument(
        "--fail-under", type=share, metavar="X", help="the least mutation score, 0..1"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.journal is not None:
        return _run_on_journal(arguments)
    if arguments.file is None:
        raise UsageError("give a FILE of tasks, or --run and a journal")
    return _run_on_tasks(arguments)


def _run_on_journal(arguments: argparse.Namespace) -> int:
    from testgrad import History, TestgradError
    from testgrad.audit import audit_run

    task = None if arguments.file is None else _one_task(arguments)
    try:
        history = History.from_journal(arguments.journal)
    except (OSError, TestgradError) as error:
        raise UsageError.of(error) from error
    audit = audit_run(history, task=task)
    sys.stdout.write(f"{audit.to_json() if arguments.json else audit}\n")
    return 0 if audit.ok else 1


def _one_task(arguments: argparse.Namespace) -> Task:
    from testgrad import TaskError, tasks

    try:
        found = [t for t in tasks.read(arguments.file) if arguments.task in (None, t.id)]
    except (OSError, ValueError, TaskError) as error:
        raise UsageError.of(error) from error
    if len(found) != 1:
        raise UsageError(f"{len(found)} tasks in {arguments.file}: name one with --task")
    return found[0]


def _run_on_tasks(arguments: argparse.Namespace) -> int:
    from testgrad import TaskError, tasks
    from testgrad.audit import audit_task

    options = {
        "mutants": arguments.mutants,
        "repeat": arguments.repeat,
        "seed": arguments.seed,
        "mutation_threshold": arguments.fail_under,
        "attacks": False if arguments.no_attacks else None,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    unusable: list[TaskError] = []
    try:
        found = tasks.read(arguments.file, on_error=unusable.append)
    except (OSError, ValueError) as error:
        raise UsageError.of(error) from error
    results: list[bool | None] = []  # None: could not be audited
    for task in found:
        if arguments.task is not None and task.id != arguments.task:
            continue
        name = f"task {len(results) + 1}, {task.id}"
        try:
            task.runner()
        except ValueError as error:
            warn(str(error))
            results.append(None)
            continue
        audit = audit_task(task, progress=sys.stderr.isatty(), **chosen)
        results.append(audit.ok)
        sys.stdout.write(f"{audit.to_json() if arguments.json else audit}\n")
        sys.stdout.flush()
        if arguments.json:
            warn(f"{name}: {'ok' if audit.ok else 'not ok'}")
    return _audited(results, unusable, arguments)


def _audited(
    results: Sequence[bool | None], unusable: Sequence[Exception], arguments: argparse.Namespace
) -> int:
    """Say what became of all tasks; return the exit code."""
    if arguments.task is not None and not results:
        raise UsageError(f"no task {arguments.task} in {arguments.file}")
    if not results and not unusable:
        raise UsageError(f"no tasks in {arguments.file}")
    for error in unusable if arguments.task is None else ():
        warn(str(error))
        results = [*results, None]
    if len(results) > 1:
        counts = {"ok": True, "not ok": False, "not audited": None}
        parts = [f"{n} {word}" for word, end in counts.items() if (n := results.count(end))]
        warn(f"{len(results)} tasks: {', '.join(parts)}")
    return 1 if False in results else 3 if None in results else 0
