"""The `testgrad` command: a module for each subcommand.

Exit codes: 0 fine, 1 below the threshold, 2 wrong usage, 3 no verdict, 130 after Ctrl-C. With
`--json` the data goes to standard output and the text for people to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from testgrad import __version__
from testgrad.cli import audit, demo, doctor
from testgrad.cli._shared import UsageError, warn

# A command is a module with a function `add`, which adds its subcommand.
COMMANDS = (audit, demo, doctor)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, the process's own when None; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="testgrad", description="Turn what tests say about code into a reward."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(metavar="command", required=True)
    for command in COMMANDS:
        command.add(subparsers)
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except UsageError as error:
        warn(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output has left; standard output must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code
