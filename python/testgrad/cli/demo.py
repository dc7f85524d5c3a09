"""`testgrad demo`: break real programs and let an agent repair them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from testgrad.cli._shared import UsageError, names, positive, warn

if TYPE_CHECKING:
    from testgrad.cli._shared import Subparsers


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
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
        "--programs", type=names, default=(), metavar="A,B", help="only these programs or tasks"
    )
    parser.add_argument("--strategy", metavar="NAME", help="how tests become a reward")
    parser.add_argument(
        "--max-iterations", type=positive(int), metavar="N", help="test runs for each program"
    )
    parser.add_argument("--jobs", type=positive(int), metavar="N", help="programs at a time")
    parser.add_argument("--seed", type=int, metavar="N", help="which defects, and in what order")
    parser.add_argument(
        "--timeout-s", type=positive(float), metavar="S", help="seconds for one test run"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("testgrad-demo"), metavar="DIR", help="page and figure"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
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
            cases = demo.library_cases(arguments.programs, seed=options.seed, warn=warn)
        arguments.out.mkdir(parents=True, exist_ok=True)
    except (demo.TaskError, OSError) as error:
        raise UsageError.of(error) from error
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
