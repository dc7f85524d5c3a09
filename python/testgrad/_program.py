"""Runs a candidate's program or function inside a child of a warm worker; see `_zygote.py`.

Expected values are not here: a program gets its input, a function its arguments, and what comes out
is compared elsewhere. Standard library only, Python 3.8 or later.
"""

from __future__ import annotations

import _thread
import atexit
import base64
import contextlib
import io
import json
import linecache
import os
import sys
import threading
import traceback
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ERRORS = ("surrogateescape", "surrogateescape", "backslashreplace")
_to_json = json.JSONEncoder().encode
MESSAGE_CHARS = 2_000
DETAILS_CHARS = 20_000

_values: Any = None
_zygote: Any = None
_streams: tuple[Any, Any, Any] = (None, None, None)
_exit_functions = 0


def prepare(settings: dict[str, Any]) -> None:
    """Load what reads and writes values, and do everything once that is slow the first time."""
    global _values, _zygote, _streams, _exit_functions
    _zygote = sys.modules["_testgrad_zygote"]
    _values = _zygote.load(settings["values"])
    _values.decode(_values.encode([1, "a", 2.5, None, True, {"a": (1, 2)}, {3}, b"x"]))
    _warm_up()
    _streams = _made_on_pipes()
    _exit_functions = atexit._ncallbacks()


def _warm_up() -> None:
    source = "from typing import List\ndef f(x: List[int]) -> int:\n    return x[0]\nassert f([1])"
    exec(compile(source, "<warm>", "exec"), {"__name__": "warm"})
    try:
        exec("raise ValueError('warm')", {})
    except ValueError:
        traceback.format_exc()
    linecache.clearcache()


def _made_on_pipes() -> tuple[Any, Any, Any]:
    """The three streams as an interpreter makes them on pipes; each child uses them."""
    kept = [os.dup(number) for number in range(3)]
    reading, writing = os.pipe()
    try:
        for number, descriptor in enumerate((reading, writing, writing)):
            os.dup2(descriptor, number)
        return (
            _text(0, "r", "surrogateescape"),
            _text(1, "w", "surrogateescape"),
            _text(2, "w", "backslashreplace"),
        )
    finally:
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(reading)
        os.close(writing)


def _text(descriptor: int, mode: str, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, mode, closefd=False)
    return io.TextIOWrapper(
        io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw),
        encoding="utf-8",
        errors=errors,
        newline=None if mode == "r" else "\n",
        line_buffering=descriptor == 2,
    )


def do(request: dict[str, Any], blobs: bytes, job: int) -> int:
    """Do what the request says; the exit code of this process."""
    try:
        at = _zygote.lay_out(request["files"], blobs)
    except OSError as error:
        if not _zygote.is_full(error):
            raise
        send(job, kind="full", message=str(error))
        return 0
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    how, main = request["how"], request["main"]
    if how == "command":
        return run_command(request["argv"], job)
    sys.argv = [main]
    _use(_streams)
    sys.modules["_testgrad_watch"].watch(Noting(job).blocked)
    if how == "program":
        return run_program(main)
    if how == "programs":
        return run_programs(request, blobs[at:], job)
    return run_function(request, job)


class Noting:
    """Tells the judge what the candidate tries."""

    def __init__(self, job: int) -> None:
        # Kept here because candidates replace functions of these modules.
        self._write, self._encode, self.job = os.write, _to_json, job

    def blocked(self, words: str) -> None:
        line = self._encode({"kind": "mark", "mark": "blocked", "evidence": words})
        self._write(self.job, line.encode() + b"\n")


def send(job: int, **fields: Any) -> None:
    """Write one line to the judge."""
    _say(job, _line(**fields))


def _line(**fields: Any) -> bytes:
    return (_to_json(fields) + "\n").encode()


def _say(job: int, lines: bytes) -> None:
    while lines:
        lines = lines[os.write(job, lines) :]


# -- programs --------------------------------------------------------------------------------------


def _use(streams: tuple[Any, Any, Any]) -> None:
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]


def run_program(path: str) -> int:
    """Run a file as the main program, to the end of its threads and exit functions."""
    status, _ = _run(path, None)
    if _thread._count():
        _step(getattr(threading, "_shutdown", None))
    if atexit._ncallbacks() != _exit_functions:
        _step(getattr(atexit, "_run_exitfuncs", None))
    return _flush(status)


def _run(path: str, code: Any) -> tuple[int, Any]:
    """Run a file, compiled already or not, as `__main__`; its exit code, and the code."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __annotations__={})
    sys.modules["__main__"] = main
    try:
        if code is None:
            code = compile(_read(path), path, "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except SystemExit as error:
        return _status_of(error), code
    except BaseException:
        _show_exception()
        return 1, code
    return 0, code


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _status_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{error.code}\n")
    return 1


def _show_exception() -> None:
    """Show the exception as the interpreter does, without the frames of this file."""
    kind, value, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        sys.excepthook(kind, value, trace)  # type: ignore[arg-type]
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exception(kind, value, trace)


def _step(step: Callable[[], None] | None) -> None:
    """Do something of an interpreter's end, whose exceptions are shown and change no exit code."""
    try:
        if step is not None:
            step()
    except SystemExit:
        pass
    except BaseException:
        _show_exception()


def _flush(status: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            status = status or 120
    return status


def run_programs(request: dict[str, Any], inputs: bytes, job: int) -> int:
    """Run the program for several inputs in this one process."""
    global _exit_functions
    at = 0
    code = None
    said = b""
    files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    for index, size in request["inputs"]:
        _say(job, said + _line(kind="started", case=index))
        for number, file in enumerate(files):
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.dup2(file, number)
        os.pwrite(files[0], inputs[at : at + size], 0)
        at += size
        streams = [_text(n, "w" if n else "r", _ERRORS[n]) for n in range(3)]
        _use((streams[0], streams[1], streams[2]))
        status, code = _run(request["main"], code)
        if _thread._count():
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
        if atexit._ncallbacks() != _exit_functions:
            _step(getattr(atexit, "_run_exitfuncs", None))
            _exit_functions = atexit._ncallbacks()  # it has forgotten them
        status = _flush(status)
        fields = {
            "stdout": _read_back(files[1], request["output_bytes"]),
            "stderr": _read_back(files[2], DETAILS_CHARS, end=True),
        }
        said = _line(kind="output", case=index, status=status, **fields)
    _say(job, said)
    return 0


def _read_back(descriptor: int, limit: int, *, end: bool = False) -> str:
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, max(0, size - limit) if end else 0, os.SEEK_SET)
    parts = []
    left = limit + 1
    while left > 0:
        part = os.read(descriptor, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return base64.b64encode(b"".join(parts)).decode()


# -- commands --------------------------------------------------------------------------------------


def run_command(argv: list[str], job: int) -> int:
    """Become another program; comes back only when there is none of that name."""
    try:
        os.execvp(argv[0], argv)  # which closes the socket of the job
    except OSError as error:
        send(job, kind="missing", message=f"{argv[0]}: {error.strerror}")
    return 127


# -- functions -------------------------------------------------------------------------------------


def run_function(request: dict[str, Any], job: int) -> int:
    """Import the candidate's module and call one thing in it, case by case."""
    say, encode, decode, exit_ = send, _values.encode, _values.decode, os._exit
    try:
        module = _import(request["module"], request["main"])
        call = find(module, request["entry_point"])
    except BaseException as error:
        say(job, kind="failed", message=_words(error), details=_details(error))
        return 0
    for index, arguments in request["cases"]:
        say(job, kind="started", case=index)
        positional, named = decode(arguments)
        try:
            value = call()(*positional, **named)
        except BaseException as error:
            fields = {"types": _types(error), "message": _words(error), "details": _details(error)}
            say(job, kind="raised", case=index, **fields)
        else:
            say(job, kind="value", case=index, value=encode(value))
    exit_(0)
    return 0


def _import(name: str, path: str) -> Any:
    module = types.ModuleType(name)
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    if path.endswith("__init__.py"):
        module.__path__ = [os.path.dirname(path)]  # noqa: PTH120
    module.__package__ = name if path.endswith("__init__.py") else name.rpartition(".")[0]
    sys.modules[name] = module
    exec(compile(_read(path), path, "exec", dont_inherit=True), module.__dict__)
    return sys.modules.get(name, module)


def find(module: Any, entry_point: str) -> Callable[[], Any]:
    """Find what to call: a function, a class, or a method of an instance made for the call."""
    names = entry_point.split(".")
    if len(names) == 1 and not hasattr(module, names[0]):
        owner = getattr(module, "Solution", None)
        if isinstance(owner, type) and hasattr(owner, names[0]):
            names = ["Solution", names[0]]
    found = module
    for place, name in enumerate(names):
        if not hasattr(found, name):
            raise AttributeError(f"the candidate has no {'.'.join(names[: place + 1])!r}")
        owner, found = found, getattr(found, name)
    if isinstance(owner, type):
        raw = next((kind.__dict__[name] for kind in owner.__mro__ if name in kind.__dict__), None)
        if not isinstance(raw, (staticmethod, classmethod)):
            return lambda: getattr(owner(), name)
    if not callable(found):
        raise TypeError(f"the candidate's {entry_point!r} cannot be called")
    return lambda: found


def _types(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__ if kind is not object]


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        text = ""
    name = type(error).__name__
    return _clean(f"{name}: {text}" if text else name, MESSAGE_CHARS)


def _details(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:
        text = ""
    return _clean(text, DETAILS_CHARS)


def _clean(text: str, limit: int) -> str:
    return str(text)[-limit:].encode("utf-8", "backslashreplace").decode("utf-8")
