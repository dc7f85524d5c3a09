"""Values between a judge and the process of a candidate: a small part of marshal's version 2.

Plain data crosses by value, and only of the very types of it: an instance of a subclass does not.
What is more than plain is a *node*, a tuple that begins with `MARK`. Every message that a candidate
sends is checked byte by byte before it gets here; see `src/runner/wire.rs`. Standard library only,
Python 3.8 or later.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import marshal
import os
import pathlib
import struct
import sys
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = StopIteration
ATOMS = frozenset(map(type, (None, True, 1, 1.5, 1j, "", b"", ...)))
DEEPEST = 60
MOST_BYTES = 64 << 20
# What a judge asks for.
CALL, GET, SET, DELETE, OPERATE, RESOLVE, IMPORT, NAMES, RELOAD, SETTLE, PLAIN = range(10, 21)
# What either side says.
RETURNED, RAISED = 0, 1
# What a candidate asks for, and what it has printed.
CALLBACK, CALLBACK_GET, CALLBACK_SET, CALLBACK_OPERATE, INPUT, READLINE, PRINTED = range(30, 37)

# What a candidate has put out: printed on one stream or the other, a warning, a record of a logger,
# what it tries and containment refuses.
OUT, ERR, WARNING, LOG, ATTEMPT = range(5)

# Special methods that are passed on, both ways.
BINARY = frozenset(
    f"__{prefix}{name}__"
    for name in (
        *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift"),
        *("rshift", "and", "xor", "or"),
    )
    for prefix in ("", "r", "i")
)
ORDER = frozenset({"__lt__", "__le__", "__gt__", "__ge__"})
SPECIAL = (
    BINARY
    | ORDER
    | frozenset(
        f"__{name}__"
        for name in (
            *("abs", "bool", "bytes", "call", "ceil", "complex", "contains", "delitem", "enter"),
            *("eq", "exit", "float", "floor", "format", "getitem", "hash", "index", "int"),
            *("invert", "iter", "len", "length_hint", "missing", "neg", "next", "pos", "repr"),
            *("reversed", "round", "setitem", "str", "trunc", "fspath"),
        )
    )
)


class Gone(Exception):
    """The other side has ended, or says what nobody can read."""


class Line:
    """Whole messages over two pipes."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing
        # Kept here because tests and candidates replace functions of these modules.
        self._read, self._write, self._close = os.read, os.write, os.close
        self._dumps, self._loads = marshal.dumps, marshal.loads
        self._size = struct.Struct("<I")

    def send(self, message: tuple[Any, ...]) -> None:
        """Write a message; raises ValueError for what cannot be written."""
        body = self._dumps(message, 2)
        if len(body) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES} bytes of values at once")
        data = self._size.pack(len(body)) + body
        try:
            count = self._write(self.writing, data)
            while count < len(data):
                data = data[count:]
                count = self._write(self.writing, data)
        except OSError:
            raise Gone from None

    def receive(self) -> Any:
        """Wait for a message and read it."""
        try:
            data = self._read(self.reading, 1 << 16)
            while len(data) < 4:
                data += self._more(4 - len(data))
            (size,) = self._size.unpack_from(data)
            left = size + 4 - len(data)
            if left > 0:
                parts = [data]
                while left > 0:
                    parts.append(self._more(min(left, 1 << 20)))
                    left -= len(parts[-1])
                data = b"".join(parts)
            return self._loads(data[4:])
        except (OSError, ValueError, EOFError, TypeError):
            raise Gone from None

    def _more(self, most: int) -> bytes:
        data = self._read(self.reading, most)
        if not data:
            raise Gone
        return data

    def close(self) -> None:
        """Say that no more will come."""
        self._close(self.reading)
        self._close(self.writing)


class Codec:
    """Between values and what a line carries; what is not plain is the subclass's."""

    def __init__(self) -> None:
        self.is_plain = True

    def pack(self, value: Any) -> tuple[bool, Any]:
        """A value as it is sent; whether it has no nodes."""
        before, self.is_plain = self.is_plain, True
        data = self.encode(value, 0)
        is_plain, self.is_plain = self.is_plain, before
        return is_plain, data

    def unpack(self, is_plain: bool, data: Any) -> Any:
        """A value that was sent."""
        return data if is_plain else self.decode(data)

    def encode(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in ATOMS:
            return value
        if depth > DEEPEST:
            raise ValueError(f"values are nested deeper than {DEEPEST}")
        depth += 1
        if kind is list or kind is tuple:
            if ATOMS.issuperset(map(type, value)):
                return value
            parts = [self.encode(part, depth) for part in value]
            return parts if kind is list else tuple(parts)
        if kind is dict:
            if ATOMS.issuperset(map(type, value)):
                if ATOMS.issuperset(map(type, value.values())):
                    return value
                return {key: self.encode(part, depth) for key, part in value.items()}
            return self.node(
                "dict", [[self.encode(p, depth) for p in pair] for pair in value.items()]
            )
        if kind is set or kind is frozenset:
            if ATOMS.issuperset(map(type, value)):
                return value
            return self.node(kind.__name__, [self.encode(part, depth) for part in value])
        standard = STANDARD.get(kind)
        if standard is not None:
            name, fields, _ = standard
            return self.node(name, self.encode(fields(value), depth))
        if kind.__module__ == "numpy":
            found = _numpy_fields(value)
            if found is not None:
                return self.node("numpy", *found)
        return self.other(value, depth)

    def node(self, name: str, *fields: Any) -> tuple[Any, ...]:
        self.is_plain = False
        return (MARK, name, *fields)

    def other(self, value: Any, depth: int) -> Any:
        """A value that is not plain."""
        raise NotImplementedError

    def decode(self, data: Any) -> Any:
        kind = type(data)
        if kind in ATOMS:
            return data
        if kind is tuple:
            if data and data[0] is MARK:
                return self.decode_node(data)
            return tuple(map(self.decode, data))
        if kind is list:
            return list(map(self.decode, data))
        if kind is dict:
            return {key: self.decode(part) for key, part in data.items()}
        return data

    def decode_node(self, node: tuple[Any, ...]) -> Any:
        name = node[1]
        if name == "dict":
            return {self.decode(key): self.decode(part) for key, part in node[2]}
        if name == "set" or name == "frozenset":
            return (set if name == "set" else frozenset)(map(self.decode, node[2]))
        if name == "numpy":
            return _numpy_value(*node[2:])
        make = MAKERS.get(name)
        if make is not None:
            return make(*self.decode(node[2]))
        return self.other_node(node)

    def other_node(self, node: tuple[Any, ...]) -> Any:
        """What a node of the subclass stands for."""
        raise NotImplementedError


def _moment(value: Any) -> tuple[Any, ...]:
    day = (value.year, value.month, value.day) if hasattr(value, "year") else ()
    time = (value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold)
    return (*day, *time)


def _datetime(*parts: Any) -> datetime.datetime:
    *numbers, fold = parts
    return datetime.datetime(*numbers, fold=fold)


def _time(*parts: Any) -> datetime.time:
    *numbers, fold = parts
    return datetime.time(*numbers, fold=fold)


STANDARD: dict[type, tuple[str, Callable[[Any], tuple[Any, ...]], Callable[..., Any]]] = {
    bytearray: ("bytearray", lambda v: (bytes(v),), bytearray),
    range: ("range", lambda v: (v.start, v.stop, v.step), range),
    slice: ("slice", lambda v: (v.start, v.stop, v.step), slice),
    datetime.date: ("date", lambda v: (v.year, v.month, v.day), datetime.date),
    datetime.datetime: ("datetime", _moment, _datetime),
    datetime.time: ("time", _moment, _time),
    datetime.timedelta: (
        "timedelta",
        lambda v: (v.days, v.seconds, v.microseconds),
        datetime.timedelta,
    ),
    datetime.timezone: ("timezone", lambda v: (v.utcoffset(None),), datetime.timezone),
    decimal.Decimal: ("decimal", lambda v: (str(v),), decimal.Decimal),
    fractions.Fraction: (
        "fraction",
        lambda v: (v.numerator, v.denominator),
        fractions.Fraction,
    ),
    array.array: (
        "array",
        lambda v: (v.typecode, v.tobytes()),
        lambda typecode, data: array.array(typecode, data),
    ),
    uuid.UUID: ("uuid", lambda v: (v.hex,), uuid.UUID),
    pathlib.PosixPath: ("path", lambda v: (str(v),), pathlib.Path),
    pathlib.PurePosixPath: ("pure_path", lambda v: (str(v),), pathlib.PurePosixPath),
    collections.deque: ("deque", lambda v: (list(v), v.maxlen), collections.deque),
    collections.OrderedDict: (
        "ordered_dict",
        lambda v: (list(v.items()),),
        collections.OrderedDict,
    ),
    collections.Counter: ("counter", lambda v: (dict(v),), collections.Counter),
    collections.defaultdict: (
        "default_dict",
        lambda v: (dict(v),),
        lambda items: collections.defaultdict(None, items),
    ),
    type(NotImplemented): ("not_implemented", lambda _: (), lambda: NotImplemented),
}
MAKERS = {name: make for name, _, make in STANDARD.values()}
_NUMBERS = "biufcSUmM"


def _numpy_fields(value: Any) -> tuple[Any, ...] | None:
    """An array or scalar of numbers or text, by its buffer."""
    numpy = sys.modules["numpy"]
    kind = type(value)
    if kind is numpy.ndarray:
        if value.dtype.kind not in _NUMBERS:
            return None
        return value.dtype.str, value.shape, value.tobytes()
    if issubclass(kind, numpy.generic) and value.dtype.kind in _NUMBERS:
        return value.dtype.str, None, value.tobytes()
    return None


def _numpy_value(dtype: str, shape: tuple[int, ...] | None, data: bytes) -> Any:
    import numpy

    kind = numpy.dtype(dtype)
    if kind.kind not in _NUMBERS:
        raise ValueError(f"no array of {dtype!r} crosses")
    if shape is None:
        return numpy.frombuffer(data, kind)[0]
    return numpy.frombuffer(data, kind).reshape(shape).copy()


def changed(old: Any, new: Any) -> None:
    """Make a container what it has become, in place and so deep as it is the same one."""
    if type(old) is not type(new):
        return
    if type(old) is list:
        merged = [_merged(*pair) for pair in zip(old, new)]  # noqa: B905
        old[:] = merged + new[len(merged) :]
    elif type(old) is dict:
        merged_items = [(key, _merged(old.get(key), value)) for key, value in new.items()]
        old.clear()
        old.update(merged_items)
    elif type(old) in (set, bytearray, collections.deque):
        if old != new:
            old.clear()
            (old.update if type(old) is set else old.extend)(new)
    elif isinstance(old, dict):
        old.clear()
        old.update(new)
    elif type(old).__name__ == "ndarray" and old.shape == new.shape:
        old[...] = new


def _merged(old: Any, new: Any) -> Any:
    if type(old) is type(new) and type(old) in (list, dict, set, bytearray, collections.deque):
        changed(old, new)
        return old
    return new


MUTABLE = (list, dict, set, bytearray, collections.deque)


def is_mutable(value: Any) -> bool:
    """Whether a call may change this argument."""
    kind = type(value)
    return kind in MUTABLE or kind.__name__ == "ndarray" or issubclass(kind, dict)
