"""What containment this machine can enforce, found by building a sandbox and trying it.

A fresh interpreter makes namespaces, a root of its own, limits and filters, and runs one program in
them. `examine()` says mechanism by mechanism what the kernel granted; a runner's suites say it of
their own run (`suite.containment`). See docs/sandbox.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from testgrad import _testgrad
from testgrad._testgrad import Containment, Layer, Limits, close
from testgrad.errors import SandboxError

__all__ = ["Containment", "Examination", "Layer", "Limits", "SandboxError", "close", "examine"]

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
_CODE = (
    "import sys; from importlib.machinery import ExtensionFileLoader as Loader; "
    "from importlib.util import module_from_spec, spec_from_file_location as spec; "
    "loader = Loader('_testgrad', sys.argv[1]); "
    "found = spec('_testgrad', sys.argv[1], loader=loader); "
    "module = module_from_spec(found); loader.exec_module(module); "
    "sys.exit(module._launch(sys.argv[2]))"
)
_LIMIT_S = 60.0


class Examination(NamedTuple):
    """A program that was run in a new sandbox."""

    containment: Containment
    """What really held it."""
    output: str
    """What it printed."""


def examine(code: str = "", *, avoid: Sequence[str] = ()) -> Examination:
    """Run a piece of Python in a new sandbox and say what held it.

    Args:
        code: What runs inside, with the standard library of this interpreter.
        avoid: Names of mechanisms not to use, to see what holds without them.

    Raises:
        SandboxError: This is not Linux, `avoid` names no mechanism, a step that must not fail was
            refused, or the program took longer than a minute.

    Example:
        >>> from testgrad import sandbox
        >>> found = sandbox.examine("print(1 + 1)", avoid=("network",))
        >>> found.output.strip()
        '2'
    """
    if sys.platform != "linux":
        raise SandboxError("only Linux has the means to contain a program; limits alone hold here")
    place = tempfile.mkdtemp(prefix="testgrad-")
    try:
        return _examine(place, code, avoid)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _examine(place: str, code: str, avoid: Sequence[str]) -> Examination:
    plan = json.dumps(
        {
            "argv": [os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", code],
            "env": [["PATH", "/usr/bin:/bin"], ["LANG", "C.UTF-8"]],
            "place": place,
            "readable": [*_SYSTEM, sys.base_prefix],
            "walls": {
                "memory_bytes": 1 << 30,
                "processes": 64,
                "file_bytes": 256 << 20,
                "scratch_bytes": 256 << 20,
                "open_files": 256,
                "stack_bytes": 8 << 20,
            },
            "avoid": list(avoid),
            "owner": os.getpid(),
            "keeps_control": False,
        }
    )
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as output:
        with theirs:
            launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _CODE, str(_testgrad.__file__), plan],
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                cwd="/",
                env={},
            )
        said: dict[str, str] = {}
        try:
            _hear(ours, said)
            if "pid" in said:
                _wait(int(said["pid"]))
        finally:
            launcher.kill()
            launcher.wait()
            if "pid" in said:
                pid = int(said["pid"])
                _testgrad._end(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    if "failed" in said or "layers" not in said:
        reason = said.get("failed") or printed.strip() or "it ended without a word"
        raise SandboxError(f"no sandbox could be built: {reason}")
    layers = [Layer(**layer) for layer in json.loads(said["layers"])]
    return Examination(Containment(layers), printed)


def _hear(control: socket.socket, said: dict[str, str]) -> None:
    """Hear all lines until the program begins, which closes the other end, or cannot."""
    control.settimeout(_LIMIT_S)
    try:
        with control.makefile("r", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                word, _, rest = line.rstrip("\n").partition(" ")
                said[word] = rest
    except TimeoutError as error:
        raise SandboxError(f"the sandbox was not ready after {_LIMIT_S:g} s") from error
    except ConnectionResetError:
        pass


def _wait(pid: int) -> None:
    """Wait until the program, a child of this process, has ended."""
    exit_descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()  # a descriptor of any number
        poll.register(exit_descriptor, select.POLLIN)
        if not poll.poll(_LIMIT_S * 1000):
            raise SandboxError(f"the program was not done after {_LIMIT_S:g} s")
    finally:
        os.close(exit_descriptor)
