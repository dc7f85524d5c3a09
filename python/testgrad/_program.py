"""Runs a candidate's program or function inside a child of a warm worker; see `_zygote.py`.

Expected values are not here: a program gets its input, a function its arguments, and what comes out
is compared elsewhere. Standard library only, Python 3.8 or later.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import io
import json
import linecache
import os
import sys
import threading
import time
import traceback
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

MESSAGE_CHARS = 2_000
DETAILS_CHARS = 20_000

_values: Any = None
_zygote: Any = None


def prepare(settings: dict[str, Any]) -> None:
    """Load what reads and writes values, and do everything once that is slow the first time."""
    global _values, _zygote
    _zygote = sys.modules["_testgrad_zygote"]
    _values = _zygote.load(settings["values"])
    _values.decode(_values.encode([1, "a", 2.5, None, True, {"a": (1, 2)}, {3}, b"x"]))
    code = compile(
        "from typing import List\ndef f(x: List[int]) -> int:\n    return x[0]\nassert f([1])",
        "<warm>",
        "exec",
    )
    exec(code, {"__name__": "warm"})
    try:
        exec("raise ValueError('warm')", {})
    except ValueError:
        traceback.format_exc()
    linecache.clearcache()


def do(request: dict[str, Any], blobs: bytes, job: socket.socket) -> int:
    """Do what the request says; the exit code of this process."""
    try:
        size = sum(path + body for path, body, _ in request["files"])
        _zygote.lay_out(request["files"], blobs[:size])
    except OSError as error:
        if not _zygote.is_full(error):
            raise
        send(job, kind="full", message=str(error))
        return 0
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    how = request["how"]
    if how == "program":
        job.close()
        sys.argv = [request["main"]]
        _own_streams()
        return run_program(request["main"])
    if how == "programs":
        sys.argv = [request["main"]]
        return run_programs(request, blobs[size:], job)
    return run_function(request, job)


def send(job: socket.socket, **fields: Any) -> None:
    job.sendall((json.dumps(fields) + "\n").encode())


# -- programs --------------------------------------------------------------------------------------


def _own_streams() -> None:
    """Make the three streams anew, as an interpreter that just started would."""
    sys.stdin = sys.__stdin__ = _text(0, "r", "surrogateescape")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _text(1, "w", "surrogateescape")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")  # type: ignore[misc]


def _text(descriptor: int, mode: str, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, mode, closefd=False)
    buffered = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffered,
        encoding="utf-8",
        errors=errors,
        newline=None if mode == "r" else "\n",
        line_buffering=descriptor == 2,
    )


def run_program(path: str) -> int:
    """Run a file as the main program, to the end of its threads and exit functions."""
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    main.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = main
    status = 0
    try:
        with open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        status = _status_of(error)
    except BaseException:
        status = 1
        _show_exception()
    return _finish(status)


def _status_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with contextlib.suppress(Exception):
        print(error.code, file=sys.stderr)
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


def _finish(status: int) -> int:
    """What an interpreter does at its end."""
    for step in (getattr(threading, "_shutdown", None), getattr(atexit, "_run_exitfuncs", None)):
        if step is None:
            continue
        try:
            step()
        except SystemExit:
            pass
        except BaseException:
            _show_exception()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            status = status or 120
    return status


def run_programs(request: dict[str, Any], inputs: bytes, job: socket.socket) -> int:
    """Run the program for several inputs in this one process."""
    at = 0
    code = None
    for index, size in request["inputs"]:
        text = inputs[at : at + size]
        at += size
        send(job, kind="started", case=index)
        began = time.perf_counter()
        out, err = (os.memfd_create(name) for name in ("stdout", "stderr"))
        stdin = os.memfd_create("stdin")
        _write_all(stdin, text)
        os.lseek(stdin, 0, os.SEEK_SET)
        for place, descriptor in enumerate((stdin, out, err)):
            os.dup2(descriptor, place)
        _own_streams()
        status, code = _run_again(request["main"], code)
        elapsed_ms = (time.perf_counter() - began) * 1000
        send(
            job,
            kind="output",
            case=index,
            status=status,
            duration_ms=elapsed_ms,
            stdout=_read_back(out, request["output_bytes"]),
            stderr=_read_back(err, DETAILS_CHARS, end=True),
        )
        for descriptor in (stdin, out, err):
            os.close(descriptor)
    return 0


def _run_again(path: str, code: Any) -> tuple[int, Any]:
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    main.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = main
    status = 0
    try:
        if code is None:
            with open(path, "rb") as file:
                code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except SystemExit as error:
        status = _status_of(error)
    except BaseException:
        status = 1
        _show_exception()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            status = status or 120
    return status, code


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


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


# -- functions -------------------------------------------------------------------------------------


def run_function(request: dict[str, Any], job: socket.socket) -> int:
    """Import the candidate's module and call one thing in it, case by case."""
    clock, say = time.perf_counter, send
    encode, decode, exit_ = _values.encode, _values.decode, os._exit
    try:
        module = _import(request["module"], request["main"])
        call = find(module, request["entry_point"])
    except BaseException as error:
        say(job, kind="failed", message=_words(error), details=_details(error))
        return 0
    for index, arguments in request["cases"]:
        say(job, kind="started", case=index)
        positional, named = decode(arguments)
        began = clock()
        try:
            value = call()(*positional, **named)
        except BaseException as error:
            elapsed_ms = (clock() - began) * 1000
            fields = {"types": _types(error), "message": _words(error), "details": _details(error)}
            say(job, kind="raised", case=index, duration_ms=elapsed_ms, **fields)
        else:
            text = encode(value)  # which runs what is lazy
            elapsed_ms = (clock() - began) * 1000
            say(job, kind="value", case=index, duration_ms=elapsed_ms, value=text)
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
    with open(path, "rb") as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    return sys.modules.get(name, module)


def find(module: Any, entry_point: str) -> Callable[[], Any]:
    """What gives the thing to call: a function, a class, or a method of an instance made for the call."""
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
