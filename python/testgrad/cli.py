"""The `testgrad` command: one function that adds a subcommand, one that runs it.

Exit codes: 0 fine, 1 below the threshold, 2 wrong usage, 3 no verdict, 130 after Ctrl-C. With
`--json` the data goes to standard output and the text for people to standard error.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testgrad import __version__

if TYPE_CHECKING:
    # At run time this class takes no parameters.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, the process's own when None; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="testgrad", description="Turn what tests say about code into a reward."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(metavar="command", required=True)
    for add in (_add_audit, _add_demo, _add_doctor):
        add(subparsers)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except UsageError as error:
        _warn(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has left; standard output must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


class UsageError(Exception):
    """An argument that cannot be used; says which and why."""


def _add_audit(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "audit",
        help="say what the tests of tasks are worth",
        description="Run the reference of each task, programs that do nothing, mutants and "
        "attacks, and say what the tests made of them. Exit code 1 where a task is not ok, 3 where "
        "some could not be audited and the others are ok.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="tasks: a file or a folder")
    parser.add_argument("--task", metavar="ID", help="only the task of this name")
    parser.add_argument("--json", action="store_true", help="print one JSON object a task")
    parser.add_argument("--mutants", type=_not_below(0), metavar="N", help="mutants at most")
    parser.add_argument("--repeat", type=_not_below(1), metavar="N", help="runs of the reference")
    parser.add_argument("--seed", type=int, metavar="N", help="which mutants")
    parser.add_argument("--no-attacks", action="store_true", help="run no programs that cheat")
    parser.add_argument(
        "--fail-under", type=_share, metavar="X", help="the least mutation score, 0..1"
    )
    parser.set_defaults(run=_run_audit)


def _run_audit(arguments: argparse.Namespace) -> int:
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
        raise UsageError(str(error)) from error
    results: list[bool | None] = []  # None: could not be audited
    for task in found:
        if arguments.task is not None and task.id != arguments.task:
            continue
        name = f"task {len(results) + 1}, {task.id}"
        try:
            task.runner()
        except ValueError as error:
            _warn(str(error))
            results.append(None)
            continue
        audit = audit_task(task, progress=sys.stderr.isatty(), **chosen)
        results.append(audit.ok)
        sys.stdout.write(f"{audit.to_json() if arguments.json else audit}\n")
        sys.stdout.flush()
        if arguments.json:
            _warn(f"{name}: {'ok' if audit.ok else 'not ok'}")
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
        _warn(str(error))
        results = [*results, None]
    if len(results) > 1:
        counts = {"ok": True, "not ok": False, "not audited": None}
        parts = [f"{n} {word}" for word, end in counts.items() if (n := results.count(end))]
        _warn(f"{len(results)} tasks: {', '.join(parts)}")
    return 1 if False in results else 3 if None in results else 0


def _add_demo(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="break real programs and let an agent repair them",
        description="Break programs of Python's standard library, or take broken ones from a task "
        "file, and let an agent repair them by what real tests say.",
    )
    parser.add_argument(
        "--tasks", type=Path, metavar="FILE", help="take the programs from a task file"
    )
    parser.add_argument(
        "--programs", type=_names, default=(), metavar="A,B", help="only these programs or tasks"
    )
    parser.add_argument("--strategy", metavar="NAME", help="how tests become a reward")
    parser.add_argument(
        "--max-iterations", type=_positive(int), metavar="N", help="test runs for each program"
    )
    parser.add_argument("--jobs", type=_positive(int), metavar="N", help="programs at a time")
    parser.add_argument("--seed", type=int, metavar="N", help="which defects, and in what order")
    parser.add_argument(
        "--timeout-s", type=_positive(float), metavar="S", help="seconds for one test run"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("testgrad-demo"), metavar="DIR", help="page and figure"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run_demo)


def _run_demo(arguments: argparse.Namespace) -> int:
    from testgrad import demo

    chosen = {
        name: value
        for name in ("max_iterations", "jobs", "seed", "timeout_s", "strategy")
        if (value := getattr(arguments, name)) is not None
    }
    options = demo.Options(**chosen)
    if options.strategy not in demo.STRATEGIES:
        raise UsageError(f"no strategy {options.strategy}: there is {', '.join(demo.STRATEGIES)}")
    try:
        if arguments.tasks is not None:
            cases = demo.task_cases(arguments.tasks, arguments.programs)
        else:
            cases = demo.library_cases(arguments.programs, seed=options.seed, warn=_warn)
        arguments.out.mkdir(parents=True, exist_ok=True)
    except (demo.TaskError, OSError) as error:
        raise UsageError(str(error)) from error
    data, code = demo.run(
        cases,
        options,
        out=arguments.out,
        stream=sys.stderr if arguments.json else sys.stdout,
        enough=None if arguments.tasks or arguments.programs else demo.ENOUGH,
    )
    if arguments.json:
        sys.stdout.write(json.dumps(data, indent=2) + "\n")
    return code


def _add_doctor(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="say what containment this machine can enforce",
        description="Build a sandbox, try each mechanism of containment, and say what the kernel "
        "enforces. Exit code 1 where only limits hold.",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run_doctor)


def _run_doctor(arguments: argparse.Namespace) -> int:
    from testgrad import sandbox

    try:
        found = sandbox.examine().containment
    except sandbox.SandboxError as error:
        _warn(str(error))
        return 3
    if arguments.json:
        layers = [
            {"name": layer.name, "status": layer.status, "reason": layer.reason}
            for layer in found.layers
        ]
        sys.stdout.write(json.dumps({"level": found.level, "layers": layers}, indent=2) + "\n")
    else:
        width = max(len(layer.name) for layer in found.layers)
        for layer in found.layers:
            sys.stdout.write(f"{layer.name:{width}}  {layer.status:11}  {layer.reason}\n")
        sys.stdout.write(f"containment: {found.level}\n")
    return 1 if found.level == "weak" else 0


def _warn(message: str) -> None:
    sys.stderr.write(f"testgrad: {message}\n")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _not_below(least: int) -> Callable[[str], int]:
    """Return an argument type: a whole number of at least this."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return number

    return parse


def _share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def _positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Return an argument type: a finite number of this kind above 0."""

    def parse(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(0)
        if not math.isfinite(number) or number <= 0:
            word = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r} is not a {word} above 0")
        return number

    return parse
