"""What containment this machine can enforce, found by building a sandbox and trying it.

A fresh interpreter makes namespaces, a root of its own, limits and filters, and runs one program in
them. `examine()` says mechanism by mechanism what the kernel granted. The runners do not use this
sandbox yet; see docs/sandbox.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from testgrad import _testgrad
from testgrad.errors import SandboxError

__all__ = ["Containment", "Layer", "SandboxError", "examine"]

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
_START_S = 60.0


class Layer(NamedTuple):
    """One mechanism of containment and what became of it."""

    name: str
    status: str
    """`"enforced"`, `"partial"` (the reason says against what it does not hold) or
    `"unavailable"`."""
    reason: str


class Containment(NamedTuple):
    """What really holds a program."""

    layers: tuple[Layer, ...]
    output: str
    """What the program printed."""

    @property
    def level(self) -> str:
        """`"full"` (namespaces), `"partial"` (Landlock, system calls) or `"weak"` (limits only)."""
        enforced = {layer.name for layer in self.layers if layer.status == "enforced"}
        if enforced >= {"pid", "mount", "network", "ipc", "seccomp", "capabilities"}:
            return "full"
        return "partial" if enforced >= {"landlock", "seccomp", "no_new_privs"} else "weak"


def examine(code: str = "", *, avoid: Sequence[str] = ()) -> Containment:
    """Run a piece of Python in a new sandbox and say what held it.

    Args:
        code: What runs inside, with the standard library of this interpreter.
        avoid: Names of mechanisms not to use, to see what holds without them.

    Raises:
        SandboxError: This is not Linux, or a step that must not fail was refused.

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


def _examine(place: str, code: str, avoid: Sequence[str]) -> Containment:
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
            "cgroups": [],
            "cgroup_layer": ["unavailable", "not used"],
            "avoid": list(avoid),
            "owner": os.getpid(),
        }
    )
    ours, theirs = socket.socketpair()
    request, report = socket.socketpair()
    library = str(_testgrad.__file__)
    with ours, request, report, tempfile.TemporaryFile() as output:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-c", _CODE, library, plan],
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                cwd="/",
                env={},
            )
        with contextlib.suppress(OSError):
            socket.send_fds(ours, [b"d"], [request.fileno(), report.fileno()])
        lines: list[str] = []
        try:
            _until_end(ours, lines)
        finally:
            process.wait()
            _end(lines)
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    said = dict(line.partition(" ")[::2] for line in lines)
    if "layers" not in said:
        reason = said.get("failed") or printed.strip() or "it ended without a word"
        raise SandboxError(f"no sandbox could be built: {reason}")
    layers = tuple(Layer(**layer) for layer in json.loads(said["layers"]))
    return Containment(layers, printed)


def _until_end(control: socket.socket, lines: list[str]) -> None:
    """Hear all lines until the program, which holds the other end, is gone."""
    control.settimeout(_START_S)
    try:
        with control.makefile("r", encoding="utf-8", errors="replace") as heard:
            lines.extend(line.rstrip("\n") for line in heard)
    except TimeoutError as error:
        raise SandboxError(f"the sandbox was not done after {_START_S:g} s") from error
    except ConnectionResetError:
        pass


def _end(lines: list[str]) -> None:
    """End the program, which is a child of this process, and take its exit status."""
    for line in lines:
        word, _, number = line.partition(" ")
        if word == "pid":
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(number), 0)
