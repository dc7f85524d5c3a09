"""`testgrad doctor`: say what containment this machine can enforce."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from testgrad.cli._shared import warn

if TYPE_CHECKING:
    from testgrad.cli._shared import Subparsers


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what containment this machine can enforce",
        description="Build a sandbox, try each mechanism of containment, and say what the kernel "
        "enforces. Exit code 1 where only limits hold.",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from testgrad import sandbox

    try:
        found = sandbox.examine().containment
    except sandbox.SandboxError as error:
        warn(str(error))
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
