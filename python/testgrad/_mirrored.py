"""The candidate's side of a mirror: imports its modules and does what the tests ask of them.

Runs in a child of a warm worker (see `_zygote.py`); the judge's side is `_mirror.py`. Whatever is
sent from here is the candidate's word: the judge believes none of it beyond what it says. Standard
library only, Python 3.8 or later.
"""

from __future__ import annotations

import builtins
import importlib
import io
import json
import logging
import operator
import os
import sys
import threading
import traceback
import types
import warnings
from typing import Any

_zygote: Any = sys.modules["_testgrad_zygote"]
_wire: Any = sys.modules["_testgrad_wire"]
_surroundings: Any = sys.modules["_testgrad_surroundings"]
PRINTED_CHARS = 1 << 16
DETAILS_CHARS = 20_000
# What is in a container, whatever its class is.
CONTENTS: dict[str, Any] = {"list": list, "dict": dict, "set": set, "bytearray": bytearray}
# What a class itself may be asked for, as an enum is.
CLASSES: dict[str, Any] = {
    "__iter__": iter,
    "__len__": len,
    "__getitem__": operator.getitem,
    "__contains__": operator.contains,
}
# What is left of an object of a class below one of these, whatever its own methods say.
PLAIN: dict[type, Any] = {
    int: int.__int__,
    float: float.__float__,
    complex: lambda value: complex(complex.real.__get__(value), complex.imag.__get__(value)),
    str: str.__str__,
    bytes: lambda value: bytes.__getnewargs__(value)[0],
    tuple: lambda value: tuple(tuple.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}


def prepare(_: dict[str, Any]) -> None:
    """Do everything once that is slow the first time."""
    try:
        exec("raise ValueError('warm')", {})
    except ValueError:
        traceback.format_exc()
    source = "import sys\nfrom typing import List\nclass A:\n    x: List[int] = [1]\n"
    exec(compile(source, "<warm>", "exec"), {"__name__": "warm"})
    warm = Server(0, 0)
    for value in (1, [1, {"a": (1, 2)}], prepare, _wire.Line, ValueError("x"), map(str, [])):
        warm.pack(value)


def do(request: dict[str, Any], blobs: bytes, job: int) -> int:
    """Lay out the candidate's files and serve; the exit code of this process."""
    try:
        _zygote.lay_out(request["files"], blobs)
    except OSError as error:
        if not _zygote.is_full(error):
            raise
        os.write(job, b'{"kind": "full", "message": "the files of the candidate do not fit"}\n')
        return 0
    os.close(job)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    sys.argv = [request["main"]]
    sys.modules["__main__"] = types.ModuleType("__main__")
    server = Server(job - 1, job - 2)
    streams: Any = Printer(server, 0), Printer(server, 1), Keyboard(server)
    sys.stdout, sys.stderr, sys.stdin = streams
    sys.__stdout__, sys.__stderr__, sys.__stdin__ = streams  # type: ignore[misc]
    builtins.input = server.input
    warnings.simplefilter("always")  # the tests' own filters decide
    warnings.showwarning = server.warned
    sys.modules["_testgrad_watch"].watch(server.attempted)
    logging.Logger.handle = logged(server, logging.Logger.handle)  # type: ignore[method-assign]
    server.serve()
    return 0


def logged(server: Any, handle: Any) -> Any:
    """What handles the records of loggers: as usual, and the judge's loggers do it, too."""

    def both(logger: Any, record: Any) -> None:
        if not logger.disabled and logger.filter(record):
            text = json.dumps([logger.name, record.levelno, record.getMessage()])
            server.printed(_wire.LOG, text)
        # Without a handler of the candidate's own, the last resort would print it again.
        if logger.hasHandlers():
            handle(logger, record)

    return both


class Printer(io.TextIOBase):
    """Standard output or error: its text goes along with the next message."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, server: Any, index: int) -> None:
        self.server, self.index = server, index
        self.buffer = Bytes(self)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.index + 1

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.server.printed(self.index, text)
        return len(text)


class Bytes(io.RawIOBase):
    """What `sys.stdout.buffer` is."""

    def __init__(self, text: Printer) -> None:
        self.text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.text.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)


class Keyboard(io.TextIOBase):
    """Standard input: the judge's, line by line."""

    encoding = "utf-8"

    def __init__(self, server: Any) -> None:
        self.server = server
        self.ahead = ""

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        line, self.ahead = self.ahead or self.server.ask(_wire.READLINE, ()), ""
        if size is not None and 0 <= size < len(line):
            line, self.ahead = line[:size], line[size:]
        return str(line)

    def read(self, size: int | None = -1) -> str:
        parts: list[str] = []
        left = -1 if size is None else size
        while left:
            line = self.readline(left)
            if not line:
                break
            parts.append(line)
            left -= len(line) if left > 0 else 0
        return "".join(parts)


class Stub:
    """An object of the judge: it can be called, and has the special methods that the object has."""

    __slots__ = ("__weakref__", "_tg")

    def __getattr__(self, name: str) -> Any:
        server, number = _tg_of(self)
        return server.ask(_wire.CALLBACK_GET, (number, name))

    def __setattr__(self, name: str, value: Any) -> None:
        server, number = _tg_of(self)
        server.ask(_wire.CALLBACK_SET, (number, name, value))


_tg_of = Stub._tg.__get__  # type: ignore[attr-defined]
_set_tg = Stub._tg.__set__  # type: ignore[attr-defined]
_stubs: dict[tuple[str, ...], type] = {}


def _stub_class(names: tuple[str, ...]) -> type:
    """A class of stubs with these special methods."""
    found = _stubs.get(names)
    if found is None:

        def passed_on(name: str) -> Any:
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                server, number = _tg_of(self)
                if name == "__call__":
                    return server.ask(_wire.CALLBACK, (number, args, kwargs))
                return server.ask(_wire.CALLBACK_OPERATE, (number, name, args))

            method.__name__ = name
            return method

        body: dict[str, Any] = {name: passed_on(name) for name in names}
        if "__eq__" in body and "__hash__" not in body:
            body["__hash__"] = None
        found = _stubs[names] = type("Stub", (Stub,), {"__slots__": (), **body})
    return found


class HostError(Exception):
    """An exception of the judge's side that has no name here."""


class Server(_wire.Codec):  # type: ignore[misc]
    """Answers the judge, one request after the other."""

    def __init__(self, reading: int, writing: int) -> None:
        super().__init__()
        self.line = _wire.Line(reading, writing)
        self.place = _surroundings.Place()
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.last = 0
        self.described: set[int] = set()
        self.stubs: dict[int, Any] = {}
        self.output: list[tuple[int, str]] = []
        self.waiting = 0
        self.thread = threading.get_ident()
        self.replaced: dict[tuple[int, str], Any] = {}
        self.raised: dict[int, Any] = {}
        self._exit = os._exit

    # -- serving ---------------------------------------------------------------------------

    def serve(self) -> None:
        """Answer until the judge is gone."""
        try:
            while True:
                self.answer(self.line.receive())
        except _wire.Gone:
            self._exit(0)

    def answer(self, message: tuple[Any, ...]) -> None:
        """Do one thing that the judge asks for, and say what came of it."""
        kind, target, is_plain, data, dropped = message
        for number in dropped:
            value = self.objects.pop(number, None)
            self.numbers.pop(id(value), None)
        try:
            fields = data if is_plain else self.decode(data)
            if kind == _wire.CALL:
                value = self.objects[target](*fields[0], **fields[1])
                changes = self.changes(*fields) if value is None else ()
            else:
                do: Any = self.DO[kind]
                value = do(self, self.objects[target], *fields) if target else do(self, *fields)
                changes = ()
            if type(value) in _wire.ATOMS and not changes:
                reply = (_wire.RETURNED, True, (value, ()))
            else:
                reply = (_wire.RETURNED, *self.pack((value, changes)))
        except _wire.Gone:
            raise
        except BaseException as error:
            reply = self.raising(error)
        self.reply(reply)

    def reply(self, reply: tuple[Any, ...]) -> None:
        try:
            self.line.send((*reply, self.take_output(), self.place.news()))
        except ValueError as error:
            self.line.send((*self.raising(error), (), ()))

    def raising(self, error: BaseException) -> tuple[Any, ...]:
        try:
            packed = self.pack(error)
        except BaseException:
            packed = self.pack(Exception(f"{type(error).__name__} that cannot be told"))
        return (_wire.RAISED, *packed)

    def changes(self, args: Any, kwargs: Any) -> Any:
        """What a call has made of its containers: their places and what is in them now."""
        places = [*enumerate(args), *kwargs.items()]
        return tuple((place, part) for place, part in places if _wire.is_mutable(part))

    def ask(self, kind: int, fields: Any) -> Any:
        """Ask the judge for something in the middle of an answer."""
        if threading.get_ident() != self.thread:
            raise RuntimeError("only the thread that a test has called can use its objects")
        self.line.send((kind, *self.pack(fields), self.take_output(), self.place.news()))
        while True:
            message = self.line.receive()
            if message[0] >= _wire.CALL:
                self.answer(message)
                continue
            value = self.unpack(message[1], message[2])
            if message[0] == _wire.RAISED:
                raise value
            return value

    # -- what the judge asks for -------------------------------------------------------------

    def assign(self, target: Any, name: str, value: Any) -> None:
        # Whoever patches over there does not see what is in the `__dict__` here, and undoes it by
        # deleting.
        if isinstance(target, (type, types.ModuleType)) and name in target.__dict__:
            self.replaced.setdefault((id(target), name), target.__dict__[name])
        setattr(target, name, value)

    def delete(self, target: Any, name: str) -> None:
        old = self.replaced.pop((id(target), name), None)
        if old is not None:
            setattr(target, name, old)
        else:
            delattr(target, name)

    def operate(self, target: Any, name: str, args: Any) -> Any:
        if isinstance(target, type) and name in CLASSES:
            return CLASSES[name](target, *args)
        method = getattr(type(target), name, None)
        return NotImplemented if method is None else method(target, *args)

    def resolve(self, module: str, names: Any) -> Any:
        found = importlib.import_module(module)
        for name in names:
            found = getattr(found, name)
        return found

    def names(self, target: Any) -> Any:
        return [str(name) for name in dir(target)]

    DO = {  # noqa: RUF012
        _wire.GET: lambda _, target, name: getattr(target, name),
        _wire.SET: assign,
        _wire.DELETE: delete,
        _wire.OPERATE: operate,
        _wire.RESOLVE: resolve,
        _wire.IMPORT: lambda _, name: importlib.import_module(name),
        _wire.NAMES: names,
        _wire.SETTLE: lambda server, *news: server.place.settle(*news),
        _wire.PLAIN: lambda _, target, name: CONTENTS[name](target),
        _wire.RELOAD: lambda _, name: importlib.reload(sys.modules[name]),
    }

    # -- streams -----------------------------------------------------------------------------

    def printed(self, index: int, text: str) -> None:
        self.output.append((index, text))
        self.waiting += len(text)
        if self.waiting > PRINTED_CHARS and threading.get_ident() == self.thread:
            self.line.send((_wire.PRINTED, True, None, self.take_output(), ()))

    def warned(self, message: Any, category: Any, *_: Any, **__: Any) -> None:
        """Stand in for `warnings.showwarning`: the judge warns."""
        names = [kind.__name__ for kind in category.__mro__ if kind.__module__ == "builtins"]
        self.printed(_wire.WARNING, json.dumps([names[0], str(message)]))

    def attempted(self, words: str) -> None:
        """Let the judge know what containment refuses."""
        self.printed(_wire.ATTEMPT, words)

    def take_output(self) -> Any:
        if not self.output:
            return ()
        output, self.output, self.waiting = self.output, [], 0
        return tuple(
            (index, text[i : i + (1 << 20)])
            for index, text in output
            for i in range(0, len(text), 1 << 20)
        )

    def input(self, prompt: object = "", /) -> str:
        return str(self.ask(_wire.INPUT, (str(prompt),)))

    # -- values ------------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if isinstance(kind, type) and issubclass(kind, Stub):
            return self.node("own", _tg_of(value)[1])
        if isinstance(value, BaseException):
            return self.exception(value, depth)
        if isinstance(value, type):
            return self.class_node(value, depth)
        if isinstance(value, types.ModuleType):
            return self.node("module", self.number(value), value.__name__)
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
            name = getattr(value, "__name__", "")
            return self.node("function", self.number(value), str(name), str(value.__module__))
        base = None
        for simple in PLAIN:
            if issubclass(kind, simple):
                base = self.encode(PLAIN[simple](value), depth)
                break
        return self.node("object", self.number(value), self.class_node(kind, depth), base)

    def number(self, value: Any) -> int:
        """The number of an object, which is kept until the judge drops it."""
        known = self.numbers.get(id(value))
        if known is None:
            self.last = known = self.last + 1
            self.numbers[id(value)] = known
            self.objects[known] = value
        return known

    def class_node(self, kind: type, depth: int) -> Any:
        if kind.__module__ == "builtins" and getattr(builtins, kind.__name__, None) is kind:
            return self.node("builtin", kind.__name__)
        number = self.number(kind)
        if number in self.described:
            return self.node("class", number)
        self.described.add(number)
        return self.node("class", number, self.description(kind, depth))

    def description(self, kind: type, depth: int) -> dict[str, Any]:
        own = vars(kind)
        bases = [base for base in kind.__bases__ if base is not object]
        plain: Any = [base for base in PLAIN if issubclass(kind, base)]
        return {
            "name": str(kind.__name__),
            "qualname": str(kind.__qualname__),
            "module": str(kind.__module__),
            "bases": [self.class_node(base, depth + 1) for base in bases],
            "special": [name for name in _wire.SPECIAL if own.get(name) is not None],
            "is_unhashable": "__hash__" in own and own["__hash__"] is None,
            "fields": [str(name) for name in own.get("__dataclass_fields__", ())],
            "is_own": is_own(kind),
            "doc": kind.__doc__ if isinstance(kind.__doc__, str) else None,
            "hides": [str(name) for name in own if any(hasattr(base, name) for base in plain)],
        }

    def exception(self, error: BaseException, depth: int) -> Any:
        kind = type(error)
        known = self.raised.get(id(error))
        if known is not None and known[0] is error:
            return self.node("own_error", known[1])
        try:
            text = str(error)
        except BaseException:
            text = ""
        args = self.encode(tuple(error.args), depth)
        own = {str(k): v for k, v in vars(error).items() if k != "__notes__"}
        extra = self.encode(own, depth)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        told = ""
        if trace is not None and depth < 3:
            told = "".join(traceback.format_exception(kind, error, trace))[-DETAILS_CHARS:]
        cause = None
        if error.__cause__ is not None and depth < 3:
            cause = self.encode(error.__cause__, depth + 1)
        node = self.class_node(kind, depth)
        return self.node("error", self.number(error), node, args, text, extra, told, cause)

    def other_node(self, node: tuple[Any, ...]) -> Any:
        name = node[1]
        if name == "object":
            return self.objects[node[2]]
        if name == "stub":
            number, names = node[2], node[3]
            stub = self.stubs.get(number)
            if stub is None:
                stub = self.stubs[number] = _stub_class(tuple(names))()
                _set_tg(stub, (self, number))
            return stub
        if name == "builtin":
            return getattr(builtins, node[2])
        if name == "error":
            kind = getattr(builtins, node[3], HostError)
            try:
                error = kind(*self.decode(node[4]))
            except Exception:
                error = HostError(node[5])
            self.raised[id(error)] = (error, node[2])
            return error
        raise _wire.Gone


def is_own(kind: type) -> bool:
    """Whether a class was made by the candidate, and not by the library."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.startswith(os.getcwd())  # noqa: PTH109
