"""The judge's side of a mirror: what the tests import in place of the candidate's module.

The candidate runs in a process of its own (`_mirrored.py`), a fresh one for each test. Plain data
crosses by value; a function, a class or an object of the candidate is a proxy here, and what the
tests do with it is asked for over there. Nothing of the candidate runs in this process, and of what
it says nothing is believed but the value itself: whether two values are equal is decided here.
Standard library only, Python 3.8 or later.
"""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import functools
import importlib.machinery
import json
import logging
import numbers
import os
import random
import socket
import struct
import sys
import threading
import types
import warnings
import weakref
from contextlib import suppress
from typing import Any

_wire: Any = sys.modules["_testgrad_wire"]
_surroundings: Any = sys.modules["_testgrad_surroundings"]
CALL, GET, SET, DELETE, OPERATE = (
    _wire.CALL,
    _wire.GET,
    _wire.SET,
    _wire.DELETE,
    _wire.OPERATE,
)
LOCAL = frozenset(
    f"__{name}__"
    for name in ["spec", "loader", "package", "path", "file", "cached", "name", "dict", "class"]
)
# Exceptions of these modules mean something to the tests' own tools.
JUDGES = frozenset({"unittest", "doctest", "bdb", "pdb", "pytest", "_pytest", "pluggy"})
# Objects of these modules are what tests judge with.
TOOLS = JUDGES - {"bdb", "pdb"}
# Builtin classes whose objects cannot change: an object of a class below one has its value here.
SIMPLE = (int, float, complex, str, bytes, tuple, frozenset)
PLAIN_OF = (list, dict, set, bytearray)
ABSTRACT = {"collections.abc": collections.abc, "numbers": numbers}
DIFFERENCES = frozenset({"__sub__", "__rsub__"})
PUT_OUT = (_wire.OUT, _wire.ERR, _wire.WARNING, _wire.LOG, _wire.ATTEMPT)
# What a mock tells of itself.
MOCKED = frozenset(
    {
        *("called", "call_count", "call_args", "call_args_list", "mock_calls", "method_calls"),
        *("return_value", "side_effect", "reset_mock", "configure_mock", "attach_mock"),
        "mock_add_spec",
    }
)
USES = frozenset({CALL, GET, OPERATE})
CHANGES = frozenset({CALL, SET, DELETE, OPERATE})
OPAQUE = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    functools.partial,
)


UNREADABLE = "the candidate's process said what nobody can read"


class CandidateGone(Exception):
    """The process of the candidate has ended in the middle of a test."""


class Ref:
    """Which object of which process a proxy stands for, and how to find it in another one."""

    __slots__ = ("epoch", "made_by", "number", "path", "twin")

    def __init__(self, epoch: int, number: int) -> None:
        self.epoch, self.number = epoch, number
        self.path: tuple[str, tuple[str, ...]] | None = None
        self.made_by: tuple[Any, Any, Any] | None = None
        self.twin: Any = None


class Glass(_wire.Codec):  # type: ignore[misc]
    """All that is mirrored in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.desk: Any = None
        self.line: Any = None
        self.epoch = 0
        self.is_touched = False
        self.is_kept = False
        self.test: str | None = None
        self.lost: dict[str, str] | None = None
        self.told = ""
        self.left = 0
        self.mark: Any = None
        self.watch: Any = None
        self.lock = threading.RLock()
        self.proxies: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.kept: dict[int, Any] = {}
        self.placed: dict[Any, Any] = {}
        self.renewed: Any = None
        self.classes: dict[int, type] = {}
        self.by_name: dict[tuple[str, str], type] = {}
        self.standins: dict[type, type] = {}
        self.dropped: set[int] = set()
        self.own: dict[int, Any] = {}
        self.own_numbers: dict[int, int] = {}
        self.own_errors: dict[int, BaseException] = {}
        # Kept here because tests replace functions of these modules.
        self._json, self._pid = json.loads, os.getpid
        self._owner = 0

    # -- the process on the other side -------------------------------------------------------------

    def begin(self, desk: int, settings: dict[str, Any]) -> None:
        """Put mirrors in the place of the modules that the settings name."""
        self.desk = socket.socket(fileno=desk)
        self._owner = os.getpid()
        self.left = settings["output_bytes"]
        self.is_kept = settings["is_kept"]
        self.watch = _surroundings.Watch()
        random.seed, os.chdir = self.watch.seeded, self.watch.moved
        first = [settings["module"]]
        sys.meta_path.insert(0, Finder(self, first))
        # Other modules of the candidate, where the tests have none of that name.
        sys.meta_path.append(Finder(self, [*settings["others"], settings["module"].split(".")[0]]))

    def begin_test(self, name: str | None) -> None:
        """Give a test a process of its own; None is what lies between tests."""
        if name is not None:
            self.lost, self.told = None, ""
            if self.is_touched and not self.is_kept:
                self.end()
        self.test = name

    def end(self) -> None:
        """End the process of the candidate."""
        if self.line is not None:
            self.line.close()
            self.line = None
        self.forget()

    def forget(self) -> None:
        self.epoch += 1
        self.watch.reset()
        self.is_touched = False
        self.proxies.clear()
        for things in (
            self.kept,
            self.classes,
            self.own,
            self.own_numbers,
            self.own_errors,
            self.dropped,
        ):
            things.clear()

    def connect(self) -> Any:
        """Ask for a fresh process of the candidate."""
        self.desk.send(b"new")
        message, ancillary, _, _ = self.desk.recvmsg(64, socket.CMSG_LEN(8))
        if message != b"here" or not ancillary:
            os._exit(1)  # nobody is left to judge for
        reading, writing = struct.unpack("2i", ancillary[0][2])
        self.line = _wire.Line(_high(reading), _high(writing))
        for proxy in list(self.placed.values()):
            # So that what is found at its place again is the same object.
            with suppress(Exception):
                self.number_of(proxy)
        return self.line

    def lose(self, message: str = "") -> CandidateGone:
        """Find out why the process has ended."""
        self.end()
        self.desk.send(b"why")
        told = self.desk.recv(1 << 16)
        if not told:
            os._exit(1)
        why = self._json(told)
        if message:
            why = {"reason": "crash", "message": message, "is_odd": True}
        if why.get("is_odd"):
            self.mark("tampering", why["message"])
        self.lost = {"reason": why["reason"], "message": why["message"]}
        return CandidateGone(self.lost["message"])

    def request(self, kind: int, target: Any, *fields: Any) -> Any:
        """Ask for something to be done with an object, or with None; wait for what comes of it."""
        __tracebackhide__ = True
        if self.desk is None or self._pid() != self._owner:
            raise RuntimeError("only the process of the test can use the candidate")
        with self.lock:
            if self.lost is not None and self.test is not None:
                raise CandidateGone(self.lost["message"])
            if self.line is None:
                self.connect()
            number = 0 if target is None else self.number_of(target)
            if kind in USES:
                news = self.watch.news(fields)
                if news is not None:
                    self.exchange(_wire.SETTLE, 0, news)
            if kind in CHANGES:
                self.is_touched = True
            answer, value = self.exchange(kind, number, fields)
            if answer == _wire.RAISED:
                raise value
            result, changes = value
            if changes:
                self.take_over(changes, fields)
        return result

    def take_over(self, changes: Any, fields: Any) -> None:
        """Change containers that a test has given as the candidate has changed its own."""
        args, kwargs = fields
        for place, new in changes:
            _wire.changed(args[place] if type(place) is int else kwargs[place], new)

    def exchange(self, kind: int, number: int, fields: Any) -> tuple[int, Any]:
        """Say something and wait for the answer: how it ended, and with what."""
        __tracebackhide__ = True
        is_plain, data = self.pack(fields)
        dropped: tuple[int, ...] = ()
        if self.dropped:
            dropped = tuple(self.dropped)
            self.dropped.clear()
        line = self.line or self.connect()
        try:
            line.send((kind, number, is_plain, data, dropped))
            while True:
                answer, is_plain, data, output, files = self.hear(line)
                if output:
                    self.show(output)
                if files:
                    self.watch.files.apply(files, is_trusted=False)
                if answer in (_wire.RETURNED, _wire.RAISED):
                    return answer, self.read(is_plain, data, answer, fields)
                if answer != _wire.PRINTED:
                    line.send(self.answer(answer, is_plain, data))
        except _wire.Gone:
            raise self.lose() from None

    def hear(self, line: Any) -> Any:
        """A message of the right shape."""
        message = line.receive()
        try:
            answer, is_plain, _, output, files = message
            is_right = type(answer) is int and type(is_plain) is bool
            if output != () or files != ():
                is_right &= all(n in PUT_OUT and type(text) is str for n, text in output)
                for path, body, is_gone in files:
                    is_right &= type(path) is str and "\0" not in path and type(is_gone) is bool
                    is_right &= body is None or type(body) is bytes
        except (TypeError, ValueError):
            is_right = False
        if not is_right:
            raise self.lose(UNREADABLE)
        return message

    def read(self, is_plain: bool, data: Any, answer: int = -1, fields: Any = ()) -> Any:
        """A value that the candidate has sent."""
        try:
            value = self.unpack(is_plain, data)
            is_right = True
            if answer == _wire.RETURNED:
                result, changes = value
                if changes:
                    # Only what returns nothing may change what it was given; see `take_over`.
                    is_right = result is None
                    args, kwargs = fields
                    for place, _ in changes:
                        is_right &= place in (kwargs if type(place) is str else range(len(args)))
            elif answer == _wire.RAISED:
                is_right = isinstance(value, BaseException)
        except CandidateGone:
            raise
        except Exception:
            is_right = False
        if not is_right:
            raise self.lose(UNREADABLE)
        return value

    def show(self, output: Any) -> None:
        """Print what the candidate has printed, where the test captures it."""
        for index, text in output:
            self.left -= len(text)
            if self.left < 0:
                error = self.lose()
                error.args = ("printed more than allowed",)
                self.lost = {"reason": "output", "message": str(error)}
                raise error
            if index == _wire.ATTEMPT:
                self.mark("blocked", text)
            elif index in (_wire.OUT, _wire.ERR):
                (sys.stderr if index == _wire.ERR else sys.stdout).write(text)
            else:
                self.tell(index, text)

    def tell(self, index: int, text: str) -> None:
        """Warn or log as the candidate has."""
        try:
            *names, message = self._json(text)
            if index == _wire.WARNING:
                category = getattr(builtins, names[0])
                is_right = isinstance(category, type) and issubclass(category, Warning)
            else:
                is_right = type(names[0]) is str and type(names[1]) is int
            is_right &= type(message) is str
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            is_right = False
        if not is_right:
            raise self.lose(UNREADABLE)
        if index == _wire.WARNING:
            warnings.warn(message, category, stacklevel=5)
        else:
            logging.getLogger(names[0]).log(names[1], "%s", message)

    def answer(self, kind: int, is_plain: bool, data: Any) -> tuple[Any, ...]:
        """Do what the candidate asks for with an object that a test gave it."""
        fields = self.read(is_plain, data)
        try:
            if kind == _wire.CALLBACK:
                value = self.own[fields[0]](*fields[1], **fields[2])
            elif kind == _wire.CALLBACK_GET:
                value = getattr(self.open(*fields[:2]), fields[1])
            elif kind == _wire.CALLBACK_SET:
                target = self.open(*fields[:2])
                if callable(getattr(type(target), fields[1], None)):
                    raise AttributeError(fields[1])  # a method of a test's object stays what it is
                value = setattr(target, fields[1], fields[2])  # type: ignore[func-returns-value]
            elif kind == _wire.CALLBACK_OPERATE:
                target = self.own[fields[0]]
                if fields[1] not in special_of(target):
                    raise AttributeError(fields[1])
                value = getattr(type(target), fields[1])(target, *fields[2])
            elif kind == _wire.INPUT:
                value = builtins.input(*fields)
            elif kind == _wire.READLINE:
                value = sys.stdin.readline()
            else:
                raise _wire.Gone
            return (_wire.RETURNED, *self.pack(value), ())
        except (_wire.Gone, CandidateGone):
            raise
        except BaseException as error:
            return (_wire.RAISED, *self.pack(error), ())

    def open(self, number: int, name: str) -> Any:
        """An object of a test, if the candidate may see this attribute of it."""
        target = self.own[number]
        if name.startswith("_") or isinstance(target, (*OPAQUE, types.ModuleType, type)):
            raise AttributeError(name)
        mock = sys.modules.get("unittest.mock")
        is_mock = mock is not None and isinstance(target, mock.NonCallableMock)
        if is_mock and (name in MOCKED or name.startswith("assert")):
            raise AttributeError(name)
        return target

    # -- values that go ----------------------------------------------------------------------------

    def other(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if issubclass(kind, Mirror) or issubclass(kind, MirrorType) or kind is MirrorModule:
            return self.node("object", self.number_of(value))
        if isinstance(value, types.TracebackType):
            return None
        if isinstance(value, BaseException):
            return self.error(value, depth)
        if isinstance(value, type) and builtin_name(value):
            return self.node("builtin", builtin_name(value))
        if isinstance(value, types.ModuleType):
            raise TypeError(f"the module {value.__name__} of the tests cannot be given away")
        is_mock = kind.__module__ == "unittest.mock"
        if not is_mock and any(base.__module__.split(".")[0] in TOOLS for base in kind.__mro__):
            raise TypeError(f"{kind.__name__!r} objects judge, and cannot be given away")
        number = self.own_numbers.get(id(value))
        if number is None:
            number = self.own_numbers[id(value)] = len(self.own) + 1
            self.own[number] = value
        name = str(getattr(value, "__name__", ""))
        return self.node("stub", number, special_of(value), name)

    def error(self, error: BaseException, depth: int) -> Any:
        number = len(self.own_errors) + 1
        self.own_errors[number] = error
        kinds = (kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        try:
            args = self.encode(tuple(error.args), depth)
        except Exception:
            args = ()
        return self.node("error", number, next(kinds).__name__, args, str(error))

    def number_of(self, proxy: Any) -> int:
        """The number of what a proxy stands for, in the process that there is now."""
        ref = ref_of(proxy)
        if ref.epoch == self.epoch and self.line is not None:
            return ref.number
        if ref.path is not None or ref.made_by is not None:
            self.renewed = proxy
            try:
                if ref.path is not None:
                    twin = self.request(_wire.RESOLVE, None, *ref.path)
                elif ref.made_by is not None:
                    twin = self.request(CALL, *ref.made_by)
            finally:
                self.renewed = None
        else:
            raise RuntimeError("this object of the candidate belongs to an earlier test")
        if not isinstance(twin, (Mirror, MirrorType, MirrorModule)):
            raise RuntimeError("the candidate's module has no longer what the test got of it")
        found = ref_of(twin)
        ref.epoch, ref.number = found.epoch, found.number
        if twin is not proxy:
            ref.twin = twin
        return ref.number

    # -- values that come --------------------------------------------------------------------------

    def other_node(self, node: tuple[Any, ...]) -> Any:
        name = node[1]
        if name == "own":
            return self.own[node[2]]
        if name == "own_error":
            return self.own_errors[node[2]]
        if name == "builtin":
            found = getattr(builtins, node[2])
            if isinstance(found, type):
                return found
        if name == "class":
            return self.class_of(*node[2:])
        if name == "function":
            return self.proxy(MirrorFunction, node[2], None, node[3], node[4])
        if name == "module":
            return self.module(node[2], node[3])
        if name == "object":
            cls = self.decode(node[3])
            if not isinstance(cls, MirrorType):
                cls = self.standin(cls)
            return self.proxy(cls, node[2], self.decode(node[4]))
        if name == "error":
            return self.raised(*node[2:])
        raise _wire.Gone

    def proxy(self, cls: Any, number: int, base: Any, *more: Any) -> Any:
        known = self.proxies.get(number)
        if known is None:
            known = self.kept.get(number)
        if known is not None:
            return known
        self.dropped.discard(number)
        renewed, self.renewed = self.renewed, None
        if renewed is not None and type(renewed) is cls:
            ref = ref_of(renewed)
            ref.epoch, ref.number = self.epoch, number
            self.keep(number, renewed)
            return renewed
        simple = next((kind for kind in SIMPLE if issubclass(cls, kind)), None)
        if simple is not None and type(base) is simple:
            made = simple.__new__(cls, base)
        elif simple is not None or issubclass(cls, BaseException):
            raise _wire.Gone
        else:
            made = cls.__new__(cls)
        object.__setattr__(made, "_tg", Ref(self.epoch, number))
        if more:
            object.__setattr__(made, "__name__", str(more[0]))
            object.__setattr__(made, "__qualname__", str(more[0]))
            object.__setattr__(made, "__module__", str(more[1]))
        self.keep(number, made)
        return made

    def keep(self, number: int, proxy: Any) -> None:
        """Remember a proxy as long as somebody has it."""
        try:
            self.proxies[number] = proxy
        except TypeError:  # of a class whose objects cannot be referred to weakly
            self.kept[number] = proxy

    def module(self, number: int, name: str) -> Any:
        known = sys.modules.get(name)
        if not isinstance(known, MirrorModule):
            known = self.proxies.get(number)
            if known is None:
                known = MirrorModule(name)
                self.proxies[number] = known
        ref = ref_of(known)
        ref.epoch, ref.number = self.epoch, number
        return known

    def class_of(self, number: int, about: dict[str, Any] | None = None) -> type:
        if about is None:
            return self.classes[number]
        bases = [self.decode(base) for base in about["bases"]]
        key = (about["module"], about["qualname"])
        is_local = "<locals>" in about["qualname"]
        real = None if about["is_own"] else standard_exception(*key)
        if real is not None:
            self.classes[number] = real
            return real
        known = None if is_local else self.by_name.get(key)
        made = known or self.new_class(about, bases)
        ref = ref_of(made)
        ref.epoch, ref.number = self.epoch, number
        if not is_local:
            ref.path = (about["module"], tuple(about["qualname"].split(".")))
            self.by_name[key] = made
        self.classes[number] = made
        return made

    def new_class(self, about: dict[str, Any], bases: list[Any]) -> type:
        parents: list[type] = []
        for base in bases:
            if isinstance(base, MirrorType) or issubclass(base, BaseException):
                parents.append(base)
            else:
                parents.append(self.standin(base))
        is_error = any(issubclass(base, BaseException) for base in parents)
        own = {}
        for name in about["special"]:
            if name in _wire.SPECIAL and name not in ("__eq__", "__hash__"):
                own[name] = passed_on(name)
        own.update((name, seen(name)) for name in about["hides"] if not name.startswith("_"))
        own["_tg_has_own"] = frozenset(about["special"])
        own["_tg_fields"] = tuple(about["fields"])
        if "__eq__" in about["special"] or "__hash__" in about["special"]:
            own["__hash__"] = None if about["is_unhashable"] else Mirror.__hash__
            own["__eq__"] = Mirror.__eq__
        own["__module__"], own["__qualname__"] = about["module"], about["qualname"]
        own["__doc__"] = about["doc"]
        own["_tg_is_named"] = False
        order = [*([] if any(issubclass(p, Mirror) for p in parents) else [Mirror]), *parents]
        if is_error:
            order = [MirrorError, *(base for base in order if base not in (Mirror, MirrorError))]
            if any(issubclass(base, MirrorError) for base in order[1:]):
                del order[0]
        made: type = MirrorType.made(about["name"], tuple(order), own)
        library = ABSTRACT.get(about["module"])
        real: Any = getattr(library, about["name"], None)
        if real is not None:
            with suppress(Exception):
                real.register(made)
        return made

    def standin(self, real: type) -> type:
        """The class of proxies for objects of a builtin class."""
        known = self.standins.get(real)
        if known is not None:
            return known
        own: dict[str, Any] = {"_tg_is_named": False, "_tg_has_own": frozenset(), "_tg_fields": ()}
        bases: tuple[type, ...] = (Mirror,)
        if real in SIMPLE:
            bases = (Mirror, real)
            own["__eq__"], own["__hash__"] = real.__eq__, real.__hash__
            for name in ("__repr__", "__str__", "__format__", "__dir__"):
                own[name] = getattr(real, name)
        elif real is not object:
            for name in _wire.SPECIAL:
                if getattr(real, name, None) is not getattr(object, name, None):
                    own[name] = passed_on(name)
            if real in PLAIN_OF:
                bases = (Mirror, real)
                own["__eq__"], own["__hash__"] = Mirror.__eq__, None
                for name in dir(real):
                    if not name.startswith("_"):
                        own[name] = seen(name)
            else:
                own["__class__"] = property(lambda _: real)
                own.pop("__eq__", None)
                own.pop("__hash__", None)
        own["__module__"] = "builtins"
        own["_tg_real"] = real
        made: type = MirrorType.made(real.__name__, bases, own)
        self.standins[real] = made
        return made

    def raised(
        self, number: int, kind: Any, args: Any, text: str, extra: Any, told: str, cause: Any
    ) -> BaseException:
        """An exception of the candidate, as one of ours or of a class that mirrors its own."""
        known = self.proxies.get(number)
        if known is not None:
            return known  # type: ignore[no-any-return]
        cls, args, extra = self.decode(kind), self.decode(args), self.decode(extra)
        self.told = told or self.told
        if not issubclass(cls, BaseException):
            raise _wire.Gone
        is_usual = issubclass(cls, (Exception, SystemExit, GeneratorExit))
        if not is_usual or issubclass(cls, KeyboardInterrupt):
            # One of those that end a whole run.
            return RuntimeError(f"{cls.__name__}: {text}" if text else cls.__name__)
        error: BaseException
        if isinstance(cls, MirrorType):
            made: Any = cls
            error = made.__new__(made, *args)
            error.args = args
            error.__dict__["_tg_text"] = text
            error.__dict__["_tg"] = Ref(self.epoch, number)
            self.dropped.discard(number)
            self.proxies[number] = error
        else:
            try:
                error = cls(*args)
            except Exception:
                error = cls.__new__(cls, *args)
        if type(extra) is dict:
            own = {str(name): value for name, value in extra.items()}
            error.__dict__.update(
                (name, value) for name, value in own.items() if not name.startswith(("__", "_tg"))
            )
        reason = self.decode(cause)
        if isinstance(reason, BaseException):
            error.__cause__ = reason
        return error


glass = Glass()


def ref_of(proxy: Any) -> Ref:
    """What a proxy stands for."""
    if isinstance(proxy, type):
        ref = type.__getattribute__(proxy, "__dict__").get("_tg")
    else:
        ref = object.__getattribute__(proxy, "_tg")
    if type(ref) is not Ref:
        raise TypeError("this is no object of the candidate")
    return ref


def builtin_name(kind: type) -> str:
    """The name of a builtin class; "" for another one."""
    name = str(kind.__name__)
    return name if getattr(builtins, name, None) is kind else ""


def _high(descriptor: int) -> int:
    """The same descriptor where tests do not close it."""
    import fcntl

    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)
    os.close(descriptor)
    return high


def special_of(value: Any) -> tuple[str, ...]:
    """The special methods of an object of a test that the candidate may use."""
    if isinstance(value, (*OPAQUE, type)):
        return ("__call__",)
    kind = type(value)
    return tuple(
        name
        for name in sorted(_wire.SPECIAL)
        if getattr(kind, name, None) is not getattr(object, name, None)
        and not (name == "__hash__" and kind.__hash__ is None)
    )


def standard_exception(module: str, qualname: str) -> type | None:
    """An exception of the standard library, where it means nothing special to a judge."""
    if module.split(".")[0] in JUDGES:
        glass.mark("tampering", f"raises {qualname} of {module}, which tells pytest what to do")
        return None
    if "." in qualname:
        return None
    if module not in sys.modules or is_mirrored(module):
        return None
    file = getattr(sys.modules[module], "__file__", None) or ""
    is_standard = not file or (os.path.dirname(os.__file__) in file and "site-packages" not in file)  # noqa: PTH120
    found = getattr(sys.modules[module], qualname, None)
    if is_standard and isinstance(found, type) and issubclass(found, Exception):
        return found
    return None


def is_mirrored(module: str) -> bool:
    return isinstance(sys.modules.get(module), MirrorModule)


def passed_on(name: str) -> Any:
    """A special method that is asked for over there."""

    def method(self: Any, *args: Any) -> Any:
        __tracebackhide__ = True
        return operate(self, name, args)

    method.__name__ = name
    return method


def operate(target: Any, name: str, args: tuple[Any, ...]) -> Any:
    """Do what a special method does; docs/design/mirror.md says what it may not, and why."""
    __tracebackhide__ = True
    kind = type(target)
    has_two = name in _wire.BINARY or name in _wire.ORDER
    if not kind._tg_is_named:
        if issubclass(kind, SIMPLE):
            real = next(real for real in SIMPLE if issubclass(kind, real))
            own = getattr(real, name, None)
            if own is None and not has_two:
                raise TypeError(f"{kind.__name__!r} object has no {name}")
            return NotImplemented if own is None else own(target, *args)
        if has_two and not isinstance(args[0], Mirror):
            return NotImplemented  # it might be whatever the test compares it with
    value = glass.request(OPERATE, target, name, args)
    if name in DIFFERENCES and type(args[0]) in (int, float, complex):
        # What is no further from a number than from its neighbour is no number.
        other = glass.request(OPERATE, target, name, (args[0] + 1,))
        if type(other) in (int, float, complex) and other == value:
            return NotImplemented
    if value is NotImplemented and not has_two:
        raise TypeError(f"{kind.__name__!r} object has no {name}")  # which would count as true
    return value


def seen(name: str) -> Any:
    """An attribute that is looked up over there."""
    return property(lambda self: attribute(self, name))


def attribute(target: Any, name: str) -> Any:
    """Look an attribute up; what is found at a place that has a name is found again by it."""
    __tracebackhide__ = True
    value = glass.request(GET, target, name)
    path = ref_of(target).path
    if path is not None and isinstance(value, (Mirror, MirrorType)):
        ref = ref_of(value)
        if ref.path is None:
            ref.path = (path[0], (*path[1], name))
            if not isinstance(value, (MirrorFunction, MirrorType)):
                glass.placed[ref.path] = value
        if isinstance(value, MirrorType) and isinstance(target, MirrorModule):
            type.__setattr__(value, "_tg_is_named", True)
    return value


def call(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    __tracebackhide__ = True
    value = glass.request(CALL, target, args, kwargs)
    if glass.test is None and isinstance(value, Mirror):
        ref = ref_of(value)
        if ref.path is None and ref.made_by is None:
            ref.made_by = (target, args, kwargs)
    return value


class MirrorType(type):
    """The class of classes that mirror those of a candidate."""

    _tg: Ref
    _tg_is_named: bool
    _tg_has_own: frozenset[str]
    _tg_fields: tuple[str, ...]

    @staticmethod
    def made(name: str, bases: tuple[type, ...], own: dict[str, Any]) -> Any:
        """A new one, when the candidate has one."""
        own["_tg"] = Ref(-1, 0)
        return type.__new__(MirrorType, name, bases, own)

    def __new__(cls, name: str, *_: Any) -> Any:
        raise TypeError(
            f"the class {name} of a test is based on a class of the candidate, which needs "
            "isolation='none'"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return call(cls, args, kwargs)

    def __getattr__(cls, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_tg"):
            raise AttributeError(name)
        if name == "__dataclass_fields__":
            return fields_of(cls)
        return attribute(cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "__abstractmethods__":
            return
        glass.request(SET, cls, name, value)

    def __delattr__(cls, name: str) -> None:
        glass.request(DELETE, cls, name)

    def __dir__(cls) -> list[str]:
        return list(glass.request(_wire.NAMES, cls))

    def __iter__(cls) -> Any:
        return operate_class(cls, "__iter__")

    def __len__(cls) -> int:
        return int(operate_class(cls, "__len__"))

    def __getitem__(cls, key: Any) -> Any:
        return operate_class(cls, "__getitem__", key)

    def __contains__(cls, key: Any) -> bool:
        return bool(operate_class(cls, "__contains__", key))

    def __bool__(cls) -> bool:
        return True

    def __reduce_ex__(cls, protocol: Any) -> Any:
        raise TypeError("a class of the candidate cannot be pickled")


def operate_class(cls: Any, name: str, *args: Any) -> Any:
    __tracebackhide__ = True
    return glass.request(OPERATE, cls, name, args)


def fields_of(cls: Any) -> dict[str, Any]:
    """The fields of a dataclass, for `dataclasses.asdict` and its like."""
    names = [name for kind in reversed(cls.__mro__) for name in kind.__dict__.get("_tg_fields", ())]
    if not names:
        raise AttributeError("__dataclass_fields__")
    made = dataclasses.make_dataclass("Fields", list(dict.fromkeys(names)))
    return made.__dataclass_fields__  # type: ignore[attr-defined, no-any-return]


class Mirror:
    """An object of the candidate."""

    _tg_is_named = False
    _tg_has_own: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name.startswith("_tg"):
            raise AttributeError(name)
        if name == "__dataclass_fields__":
            return fields_of(type(self))
        return attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        glass.request(SET, self, name, value)

    def __delattr__(self, name: str) -> None:
        glass.request(DELETE, self, name)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return dict(glass.request(GET, self, "__dict__"))

    def __dir__(self) -> list[str]:
        return list(glass.request(_wire.NAMES, self))

    def __repr__(self) -> str:
        return str(glass.request(OPERATE, self, "__repr__", ()))

    def __str__(self) -> str:
        return str(glass.request(OPERATE, self, "__str__", ()))

    def __format__(self, spec: str) -> str:
        return str(glass.request(OPERATE, self, "__format__", (spec,)))

    def __eq__(self, other: object) -> Any:
        __tracebackhide__ = True
        return equal(self, other)

    def __ne__(self, other: object) -> Any:
        __tracebackhide__ = True
        result: Any = self.__eq__(other)
        return result if result is NotImplemented else not result

    def __hash__(self) -> int:
        if any("__hash__" in kind.__dict__.get("_tg_has_own", ()) for kind in type(self).__mro__):
            value = glass.request(OPERATE, self, "__hash__", ())
            return hash(value) if type(value) is int else 0
        return hash(type(self).__name__)

    def __copy__(self) -> Any:
        return copied(self, "copy")

    def __deepcopy__(self, memo: Any) -> Any:
        return copied(self, "deepcopy")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an object of the candidate cannot be pickled")

    def __del__(self) -> None:
        with suppress(AttributeError):
            ref = object.__getattribute__(self, "_tg")
            if ref.epoch == glass.epoch and ref.twin is None:
                glass.dropped.add(ref.number)


class MirrorFunction(Mirror):
    # A function of the candidate; it has the doc of its own.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return call(self, args, kwargs)

    __doc__ = property(lambda self: attribute(self, "__doc__"))
    __class__ = property(lambda _: types.FunctionType)


class MirrorError(Mirror):
    """An exception of a class of the candidate's own."""

    def __str__(self) -> str:
        text = object.__getattribute__(self, "_tg_text") if self._tg_has_text() else None
        return text if isinstance(text, str) else str(BaseException.__str__(self))  # type: ignore[arg-type]

    def _tg_has_text(self) -> bool:
        try:
            object.__getattribute__(self, "_tg_text")
        except AttributeError:
            return False
        return True

    def __repr__(self) -> str:
        return BaseException.__repr__(self)  # type: ignore[arg-type]

    __dict__ = BaseException.__dict__["__dict__"]
    __setattr__ = BaseException.__setattr__  # type: ignore[assignment]
    __delattr__ = BaseException.__delattr__
    __dir__ = BaseException.__dir__  # type: ignore[assignment]
    __reduce_ex__ = BaseException.__reduce_ex__  # type: ignore[assignment]


class MirrorModule(types.ModuleType):
    """A module of the candidate."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        ref = Ref(-1, 0)
        ref.path = (name, ())
        object.__setattr__(self, "_tg", ref)

    def __getattr__(self, name: str) -> Any:
        __tracebackhide__ = True
        if name in LOCAL:
            raise AttributeError(name)
        if name == "__all__":
            return self._tg_star(sys._getframe(1).f_globals)
        return attribute(self, name)

    def _tg_star(self, importer: dict[str, Any]) -> list[str]:
        """The names that `import *` takes: none that mean something to the tests already."""
        try:
            names = [str(name) for name in attribute(self, "__all__")]
        except AttributeError:
            names = [name for name in dir(self) if not name.startswith("_")]
        taken = set(vars(builtins)).union(importer)
        names = [name for name in names if name not in taken]
        return [name for name in names if not isinstance(attribute(self, name), types.ModuleType)]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in LOCAL:
            super().__setattr__(name, value)
        else:
            glass.request(SET, self, name, value)

    def __delattr__(self, name: str) -> None:
        glass.request(DELETE, self, name)

    def __dir__(self) -> list[str]:
        return list(glass.request(_wire.NAMES, self))


class Finder:
    """Finds the candidate's modules; both finder and loader."""

    def __init__(self, glass: Glass, names: list[str]) -> None:
        self.glass, self.names = glass, names

    def find_spec(self, name: str, *_: Any) -> Any:
        if not any(name == own or name.startswith(own + ".") for own in self.names):
            return None
        spec = importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        spec.has_location = False
        return spec

    def create_module(self, spec: Any) -> Any:
        return MirrorModule(spec.name)

    def exec_module(self, module: Any) -> None:
        __tracebackhide__ = True
        is_again = module.__dict__.get("_tg_is_loaded", False)
        kind = _wire.RELOAD if is_again else _wire.IMPORT
        try:
            self.glass.request(kind, None, module.__name__)
        except Exception:
            raise
        except BaseException as error:
            name = type(error).__name__
            raise ImportError(f"the module ended with {name}: {error}") from None
        module.__dict__["_tg_is_loaded"] = True


# -- equality --------------------------------------------------------------------------------------


class Probe:
    """Something that is equal to nothing."""


def equal(left: Any, right: Any) -> Any:
    """Whether an object of the candidate is what it is compared with, as far as it may say so."""
    __tracebackhide__ = True
    if left is right:
        return True
    kind = type(left)
    if isinstance(right, Mirror) and is_same(left, right):
        return True
    is_own = any("__eq__" in base.__dict__.get("_tg_has_own", ()) for base in kind.__mro__)
    if not is_own or not kind._tg_is_named:
        real = next((base for base in PLAIN_OF if issubclass(kind, base)), None)
        if real is None:
            return NotImplemented
        other = plain_of(right, real) if isinstance(right, real) else right
        return plain_of(left, real) == other
    # One that is equal to all is equal to nothing. Asked about a plain value, it is not told which
    # of several is the one.
    others = [] if isinstance(right, Mirror) else [other for other in near(right) if other != right]
    values = [right, Probe(), *others]
    _shuffled(values)
    answers = [said_equal(left, value) for value in values]
    own = next(answer for answer, value in zip(answers, values) if value is right)  # noqa: B905
    if own is True and sum(answer is True for answer in answers) > 1:
        if any(answer is True for answer, value in zip(answers, values) if type(value) is Probe):  # noqa: B905
            glass.mark("tampering", f"an object of {kind.__name__} says that it is equal to all")
        return False
    return own


def _shuffled(values: list[Any], random_: Any = random.SystemRandom()) -> None:  # noqa: B008
    random_.shuffle(values)


def said_equal(left: Any, right: Any) -> Any:
    try:
        answer = glass.request(OPERATE, left, "__eq__", (right,))
    except CandidateGone:
        raise
    except Exception:
        if isinstance(right, Probe):
            return False
        raise
    if answer is NotImplemented or type(answer) is bool:
        return answer
    return bool(answer)


def near(value: Any) -> list[Any]:
    """Other values of the same kind, on all sides of it."""
    kind = type(value)
    if kind is int or kind is float or kind is complex:
        steps = [step for step in (-2, -1, 1, 2, 3) if value + step != value]
        return [value + step for step in steps]
    if kind is str or kind is bytes:
        tail = "~" if kind is str else b"~"
        return [value + value[-1:] + tail[: not value], value[:-1], value[1:], value.swapcase()][
            : 4 if value else 1
        ]
    if kind is list or kind is tuple:
        return [kind([*value, *value[-1:]] or [0]), *([value[:-1], value[1:]] if value else [])]
    if kind is dict:
        return [{**value, "~": 0}, dict(list(value.items())[:-1])][: 2 if value else 1]
    if kind is set or kind is frozenset:
        return [kind([*value, 0.5]), kind(list(value)[:-1])][: 2 if value else 1]
    if kind is bool:
        return [not value]
    return []


def is_same(left: Any, right: Any) -> bool:
    """Whether two proxies are of one object."""
    try:
        return glass.number_of(left) == glass.number_of(right)
    except RuntimeError:
        return False


def plain_of(value: Any, real: type) -> Any:
    """What is in a container of the candidate."""
    return glass.request(_wire.PLAIN, value, real.__name__) if isinstance(value, Mirror) else value


def copied(value: Any, how: str) -> Any:
    function = glass.request(_wire.RESOLVE, None, "copy", (how,))
    return glass.request(CALL, function, (value,), {})
