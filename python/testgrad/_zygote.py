"""The inside of a warm worker: it forks a child for each job and ends all that the job started.

Started by `src/sandbox/worker.rs`, already contained, as `python _zygote.py SETTINGS` with its
control socket as descriptor 3. It loads what jobs need once, so that a job costs a fork. Nothing of
a job is read here: the child does that, on a socket of its own. Standard library only, Python 3.8
or later.

On the control socket comes `run`, with four descriptors: standard input, output, error, and the
socket of the job. At most two more may come along; a child finds them below the socket. `ended
STATUS CPU_US RSS_KIB CLEAN` goes back once the child and all that it started are gone. The owner
ends a job by killing the child.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # The package's own modules must not be importable by their bare names.
    del sys.path[0]

import _signal  # type: ignore[import-not-found]
import ctypes
import errno
import gc
import importlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import stat
import struct
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NoReturn

CONTROL = 3
ROOM_FOR_SIX = socket.CMSG_LEN(struct.calcsize("6i"))
# What most programs import; loaded once, here.
USUAL = (
    "abc atexit bisect calendar cmath collections contextlib copy dataclasses datetime decimal "
    "enum fractions functools hashlib heapq io itertools linecache math numbers operator queue "
    "random re statistics string textwrap threading time tokenize traceback typing warnings"
)
# Of a file system of its own; see src/sandbox/mount.rs.
OWN_HOME = "/box/home"
MOST_LEFT = 500
DEEPEST = 20

SIGINT, SIGTERM = int(signal.SIGINT), int(signal.SIGTERM)
SIG_DFL = int(signal.SIG_DFL)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER = 1, 4, 22, 36
SECCOMP_MODE_FILTER = 2


class Unwound(BaseException):
    """A child does its job once the stack of this file is unwound; the arguments say what it is."""


class Kernel:
    """The calls that Python has no names for."""

    def __init__(self) -> None:
        # These keep the interpreter's lock. A plain fork(2) is enough for a process of one thread,
        # and spares each child the work of Python's own, which touches hundreds of pages.
        library = ctypes.PyDLL(None)
        self._prctl, self.fork = library.prctl, library.fork
        text = os.environ.pop("TESTGRAD_GROUP_FILTER", "")
        steps = bytes.fromhex(text)
        self._steps = ctypes.create_string_buffer(steps, len(steps))
        self._filter = ctypes.create_string_buffer(
            struct.pack("HxxxxxxP", len(steps) // 8, ctypes.addressof(self._steps))
        )
        self.has_filter = bool(steps)

    def set(self, option: int, value: Any, what: Any = 0) -> None:
        """Call prctl(2); refused means that a promise cannot be kept, so nothing goes on then."""
        if self._prctl(option, value, what, 0, 0) != 0:
            raise OSError(f"prctl({option}) was refused")

    def stay_in_group(self) -> None:
        """Never leave the process group again, nor does anything started from here."""
        self.set(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(self._filter))


class Zygote:
    """Serves one job after the other."""

    def __init__(self, modules: Any) -> None:
        self.modules = modules
        self.kernel = Kernel()
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.highest = min(limit, 1024) - 1
        self.is_first = os.getpid() == 1  # of a process namespace of its own
        self.control = socket.socket(fileno=CONTROL)
        self.child = 0
        is_own = os.environ["HOME"] == OWN_HOME
        rooms = [os.getcwd(), os.environ["TMPDIR"], os.environ["HOME"]]  # noqa: PTH109
        self.rooms = [Room(path, is_own) for path in [*rooms, *(["/dev/shm"] if is_own else [])]]

    def serve(self) -> None:
        """Do jobs until the owner is gone."""
        # Children cannot look into this process or take its descriptors.
        self.kernel.set(PR_SET_DUMPABLE, 0)
        self.kernel.set(PR_SET_CHILD_SUBREAPER, 1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if not self.is_first:
            # When it must not end before what it started has.
            signal.signal(signal.SIGTERM, lambda *_: self.leave())
            self.kernel.set(PR_SET_PDEATHSIG, signal.SIGTERM)
            if not self.kernel.has_filter:
                raise RuntimeError("there is neither a process namespace nor a filter for groups")
        gc.collect()
        self.plugs = fill_holes()
        gc.freeze()
        self.control.send(b"ready " + json.dumps(self.modules.greeting()).encode())
        while True:
            message, ancillary, _, _ = self.control.recvmsg(64, ROOM_FOR_SIX)
            if not message:
                self.leave()
            if message == b"run":
                data = ancillary[0][2]
                self.run(struct.unpack(f"{len(data) // 4}i", data))

    def run(self, descriptors: tuple[int, ...]) -> None:
        """Fork a child for a job, and wait until it and all that it started are gone.

        Every page that is written to while the child lives must be copied, so nothing is done then
        but to reap orphans.
        """
        if self.modules.seed is None:
            random.seed()  # which the fork does not do, and here it copies no page
        child = self.child = self.kernel.fork()
        if child == 0:
            self.become_job(descriptors)
        if child < 0:
            raise OSError("no process could be forked for the job")
        cpu_s, rss_kib = 0.0, 0
        while True:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if dead is None or dead.si_pid == child:
                break  # it is reaped last, so that its number means nobody else yet
            _, _, usage = os.wait4(dead.si_pid, 0)  # and no other: the child may be dead by now
            cpu_s += usage.ru_utime + usage.ru_stime
        self.end_all()
        status = 0
        with suppress(ChildProcessError):
            while True:
                pid, ended, usage = os.wait4(-1, 0)
                cpu_s += usage.ru_utime + usage.ru_stime
                rss_kib = max(rss_kib, usage.ru_maxrss)
                if pid == child:
                    status = ended
        self.child = 0
        for descriptor in descriptors:
            os.close(descriptor)
        clean = all(room.tidy() for room in self.rooms)
        self.control.send(b"ended %d %d %d %d" % (status, cpu_s * 1e6, rss_kib, clean))

    def become_job(self, descriptors: tuple[int, ...]) -> NoReturn:
        """What the child does; no exception of it comes back into the loop."""
        status = 70
        try:
            # The functions of `_signal` make no enums.
            _signal.signal(SIGINT, _signal.default_int_handler)
            if self.is_first:
                os.setsid()
            else:
                _signal.signal(SIGTERM, SIG_DFL)
                self.kernel.set(PR_SET_PDEATHSIG, int(signal.SIGKILL))
                os.setpgid(0, 0)
                self.kernel.stay_in_group()
            self.kernel.set(PR_SET_DUMPABLE, 1)
            stdin, stdout, stderr, job, *more = descriptors
            os.dup2(stdin, 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            # A high number survives programs that close or reuse the low ones.
            for place, descriptor in enumerate((job, *more)):
                os.dup2(descriptor, self.highest - place, False)
            # What else is open was opened by what is loaded, before any job.
            for descriptor in (CONTROL, *descriptors):
                os.close(descriptor)
            gc.enable()
            status = self.modules.do(self.highest)
        except Unwound:
            raise
        except BaseException:
            with suppress(BaseException):
                import traceback

                os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
        os._exit(status)

    def end_all(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self.is_first:
                os.kill(-1, signal.SIGKILL)
            elif self.child:
                os.killpg(self.child, signal.SIGKILL)

    def leave(self) -> NoReturn:
        self.end_all()
        os._exit(0)


def fill_holes() -> list[bytes]:
    """Take all free blocks of the memory in use, so that children allocate from pages of their own.

    A page that a child shares with the worker must be copied when the child writes to it, which
    takes longer than a new page.
    """
    plugs: list[bytes] = []
    for size, count in free_blocks():
        plugs.extend(bytes(size - _EMPTY) for _ in range(count))
    return plugs


_EMPTY = sys.getsizeof(b"")


def free_blocks() -> list[tuple[int, int]]:
    """The free blocks of pools in use, by size; see `sys._debugmallocstats` of CPython."""
    kept = os.dup(2)
    report = os.memfd_create("report")
    try:
        os.dup2(report, 2)
        sys._debugmallocstats()
        os.dup2(kept, 2)
        text = os.pread(report, 1 << 16, 0).decode()
    finally:
        os.close(report)
        os.close(kept)
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and all(word.isdigit() for word in words):
            size, free = int(words[1]), int(words[4])
            if size > _EMPTY:
                found.append((size, free))
    return found


class Room:
    """A directory that jobs may write to."""

    def __init__(self, path: str, is_own: bool) -> None:
        self.path = path
        os.chmod(path, 0o700)  # noqa: PTH101
        os.utime(path, (0, 0))
        about = os.stat(path)  # noqa: PTH116
        # In a file system of our own, tmpfs, the size of a directory counts what is in it.
        self.empty = (about.st_mode, about.st_size) if is_own else None
        self.is_kept = bool(os.listdir(path))  # noqa: PTH208

    def tidy(self) -> bool:
        """Empty it after a job; false when that is left to be done.

        What takes long is left, and so is all where something is shown in it: then the whole worker
        goes, and its file system with it.
        """
        try:
            about = os.stat(self.path)  # noqa: PTH116
            if self.is_kept:
                return False
            os.utime(self.path, (0, 0))  # a number is a note, too
            if (about.st_mode, about.st_size) == self.empty:
                return True
            if stat.S_IMODE(about.st_mode) != 0o700:
                os.chmod(self.path, 0o700)  # noqa: PTH101
            with os.scandir(self.path) as entries:
                names = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
            if len(names) > MOST_LEFT:
                return False
            if any(is_directory for _, is_directory in names) and self.is_deep():
                return False
            for path, is_directory in names:
                if is_directory:
                    shutil.rmtree(path)
                else:
                    os.unlink(path)  # noqa: PTH108
            os.utime(self.path, (0, 0))
        except OSError:
            return False
        return True

    def is_deep(self) -> bool:
        """Whether there is more in it than is removed in a moment."""
        count = 0
        for path, directories, files in os.walk(self.path):
            count += len(directories) + len(files)
            if count > MOST_LEFT or path.count("/") > DEEPEST:
                return True
        return False


class Modules:
    """What jobs need, loaded once: the files of this package that do them, by the kind of job."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
        self.missing = ""
        self.message = ""
        for name in USUAL.split():
            with suppress(ImportError):
                importlib.import_module(name)
        load(settings["watch"])
        for path in settings.get("libraries", ()):
            load(path)
        self.kinds = {kind: load(path) for kind, path in settings["jobs"].items()}
        self.seed = settings.get("seed")
        random.seed(self.seed)
        try:
            for name in settings["preload"]:
                importlib.import_module(name)
            for module in self.kinds.values():
                module.prepare(settings)
        except ImportError as error:
            self.missing = str(getattr(error, "name", None) or "")
            self.message = str(error)
        gc.disable()

    def greeting(self) -> dict[str, Any]:
        version = ".".join(map(str, sys.version_info[:3]))
        return {"python": version, "missing": self.missing, "message": self.message}

    def do(self, job: int) -> int:
        """Read the request from the socket of the job and do it; the exit code of the child."""
        size, count = struct.unpack("=QQ", receive(job, 16))
        request, _ = self.scan(receive(job, size).decode(), 0)
        blobs = receive(job, count)
        return int(self.kinds[request["kind"]].do(request, blobs, job))


def receive(job: int, count: int) -> bytes:
    """Exactly so many bytes."""
    data = os.read(job, count) if count else b""
    if len(data) == count:
        return data
    parts = [data]
    while count > len(data):
        count -= len(data)
        data = os.read(job, min(count, 1 << 20))
        if not data:
            raise EOFError("the request of the job is cut")
        parts.append(data)
    return b"".join(parts)


def load(path: str) -> Any:
    """A file of this package as a module under a name that nobody imports."""
    name = f"_testgrad{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def lay_out(files: list[list[Any]], blobs: bytes) -> int:
    """Write the files of a job into the current directory.

    Args:
        files: For each, the length of its path and of its body, and its permissions, None for a
            link.
        blobs: Paths and bodies, one after the other.

    Returns:
        Where in `blobs` they end.
    """
    at = 0
    made = {b""}
    for path_size, body_size, mode in files:
        path = blobs[at : at + path_size]
        at += path_size
        body = blobs[at : at + body_size]
        at += body_size
        above, slash, _ = path.rpartition(b"/")
        if slash and above not in made:
            os.makedirs(above, exist_ok=True)  # noqa: PTH103
            made.add(above)
        if mode is None:
            os.symlink(body, path)  # noqa: PTH211
            continue
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            while body:
                body = body[os.write(descriptor, body) :]
            if mode != 0o644:
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
    return at


def is_full(error: OSError) -> bool:
    """Whether there was no room for the files."""
    return error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def main() -> None:
    """Load everything and serve."""
    sys.modules["_testgrad_zygote"] = sys.modules["__main__"]
    modules = Modules(json.loads(sys.argv[1]))
    serve = Zygote(modules).serve
    for module in modules.kinds.values():
        serve = getattr(module, "around", lambda serve: serve)(serve)
    serve()


if __name__ == "__main__":
    main()
