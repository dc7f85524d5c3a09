"""Plain data as one line of text: what goes into the candidate's process and what comes out of it.

`src/runner/value/json.rs` has the format and reads what is written here. This module needs only the
standard library, on Python 3.8 or later, and loads nothing else of testgrad.

It runs where the candidate can patch anything. So every name is bound at import, and a value is
read by the methods of the plain type that it is or falls to, never by its own: a list of a class
with another `__iter__`, `__len__` or `__class__` is what is in the list. All that this keeps out is
trickery; whoever reads the line must trust it no more than the candidate.
"""

from __future__ import annotations

import json.decoder
import json.encoder
import sys

# Later patches of these do not matter.
from builtins import (
    Exception,
    StopIteration,
    ValueError,
    any,
    bool,
    bytearray,
    bytes,
    complex,
    dict,
    divmod,
    enumerate,
    float,
    frozenset,
    getattr,
    id,
    int,
    len,
    list,
    map,
    max,
    range,
    set,
    str,
    sum,
    tuple,
    type,
)
from collections import OrderedDict, deque
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# As in src/runner/value/mod.rs.
MAX_BYTES = 64 << 20
MAX_DEPTH = 200
MAX_ITEMS = 5_000_000
MAX_DIGITS = 100_000

# No Python can be told to refuse an int of so many digits, which is less than so many bits.
PLAIN_DIGITS = 600
PLAIN_BITS = 1_990
# An int of more bits has more digits than MAX_DIGITS.
MAX_BITS = 332_193


# -- writing ---------------------------------------------------------------------------------------


def encode(value: object) -> str:
    """Write a value as one line of ASCII, without the line end.

    Instances of subclasses become their base: an IntEnum an int, a namedtuple a tuple, a Counter or
    OrderedDict a dict, a bytearray bytes. A range, a deque, the views of a dict and a numpy array
    become lists, a numpy number the Python number. What else there is becomes its type's name and
    equals nothing: objects, generators, a list in itself, ints of more than MAX_DIGITS digits, and
    the value as a whole when it is nested deeper than MAX_DEPTH or larger than MAX_ITEMS or
    MAX_BYTES. Raises nothing itself; only a signal, another thread or a forged numpy can.
    """
    line = _Line()
    try:
        line.write(value, 0)
        return _join(line.parts)
    except _TooMuch as error:
        return _other(_name(type(value)) + error.why)
    except Exception as error:  # no memory, no stack, a dict that another thread changes
        return _other(f"{_name(type(value))} that cannot be read: {_name(type(error))}")


class _TooMuch(Exception):
    """The value is larger than anybody wants to read."""

    def __init__(self, why: str) -> None:
        self.why = why


class _Line:
    """A line that is being written."""

    __slots__ = ("around", "items", "parts", "room")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.room = MAX_BYTES
        self.items = 0
        self.around: set[int] = set()  # the containers that are being written, by their ids

    def write(self, value: Any, depth: int) -> None:
        self.count(1)
        kind = type(value)
        base = _base(kind)
        scalar = _SCALARS.get(id(base))
        if scalar is not None:
            self.add(scalar(value))
            return
        container = _CONTAINERS.get(id(base))
        if container is None:
            plain = as_plain(value)
            if plain is None:
                self.add(_other(_name(kind)))
            else:
                self.write(plain, depth)
            return
        if id(value) in self.around:
            self.add(_other(_name(kind) + " in itself"))
            return
        if depth >= MAX_DEPTH:
            raise _TooMuch(f" nested deeper than {MAX_DEPTH}")
        opening, items_of, closing = container
        items = list(islice(items_of(value), MAX_ITEMS + 1))
        self.around.add(id(value))
        self.add(opening)
        if base is dict:
            self.write_pairs(items, depth + 1)
        else:
            self.write_items(items, depth + 1)
        self.add(closing)
        self.around.discard(id(value))

    def write_items(self, items: list[Any], depth: int) -> None:
        if self.write_quickly(items, _count(items, depth)):
            return
        for number, item in enumerate(items):
            if number:
                self.add(",")
            self.write(item, depth)

    def write_pairs(self, pairs: list[tuple[Any, Any]], depth: int) -> None:
        if self.write_quickly(pairs, _count(list(chain.from_iterable(pairs)), MAX_DEPTH)):
            return
        for number, (key, item) in enumerate(pairs):
            self.add(",[" if number else "[")
            self.write(key, depth)
            self.add(",")
            self.write(item, depth)
            self.add("]")

    def write_quickly(self, items: list[Any], count: int | None) -> bool:
        """Let the C encoder write items that are JSON already, `count` values in all."""
        if count is None or _c_encode is None:
            return False
        self.count(count)
        try:
            text = _join(_c_encode(items, 0))
        except ValueError:  # NaN or infinity
            self.items -= count
            return False
        self.add(text[1:-1])
        return True

    def add(self, text: str) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise _TooMuch(f" of more than {MAX_BYTES} bytes")
        self.parts.append(text)

    def count(self, items: int) -> None:
        self.items += items
        if self.items > MAX_ITEMS:
            raise _TooMuch(f" of more than {MAX_ITEMS} items")


def _kinds(items: Iterable[Any]) -> set[int]:
    return set(map(id, map(type, items)))


def _count(items: list[Any], depth: int) -> int | None:
    """Count the values of a list that the C encoder writes as we do; None for any other list.

    Looks into a list of lists, too, but no deeper: whatever is there is looked at twice at most.
    """
    kinds, total = _kinds(items), len(items)
    if kinds == {id(list)} and depth < MAX_DEPTH:
        items = list(islice(chain.from_iterable(items), MAX_ITEMS + 1))
        kinds, total = _kinds(items), total + len(items)
    if not kinds <= _PLAIN_KINDS or total > MAX_ITEMS:
        return None
    longest_int = max(map(int.bit_length, _only(int, items, kinds)), default=0)
    length = sum(map(len, _only(str, items, kinds)))
    return total if longest_int <= PLAIN_BITS and length <= MAX_BYTES else None


def _only(kind: type, items: list[Any], kinds: set[int]) -> list[Any]:
    """Pick the items of a kind out of those of `kinds`."""
    if id(kind) not in kinds:
        return []
    return items if len(kinds) == 1 else [item for item in items if type(item) is kind]


def _base(kind: type) -> type:
    """Find the plain type that a type is or falls to; the type itself when there is none."""
    if id(kind) not in _BASES:
        for base in _mro(kind):
            if id(base) in _BASES:
                return base
    return kind


def _name(kind: type) -> str:
    return str.__str__(_type_name(kind))[:100]


def _other(name: str) -> str:
    return '{"o":' + _quote(name) + "}"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _int(value: int) -> str:
    value = int.__int__(value)
    if int.bit_length(value) <= PLAIN_BITS:
        return int.__repr__(value)
    text = digits(value) if int.bit_length(value) <= MAX_BITS else ""
    if not text or len(text) - (value < 0) > MAX_DIGITS:
        return _other(f"int of more than {MAX_DIGITS} digits")
    return '{"i":"' + text + '"}'


def _float(value: float) -> str:
    value = float.__float__(value)
    if value - value == 0.0:
        return float.__repr__(value)
    return '{"f":"' + float.__repr__(value) + '"}'


def _complex(value: complex) -> str:
    return '{"c":[' + _float(_real(value)) + "," + _float(_imag(value)) + "]}"


def _str(value: str) -> str:
    return _quote(str.__str__(value))


def _bytes(value: bytes) -> str:
    return '{"b":"' + bytes.hex(value) + '"}'


def _bytearray(value: bytearray) -> str:
    return '{"b":"' + bytearray.hex(value) + '"}'


def as_plain(value: Any) -> Any:
    """Make a list or a number of what is as good as one; None for anything else."""
    kind = type(value)
    items_of = _LISTED.get(id(_base(kind)))
    if items_of is not None:
        return list(islice(items_of(value), MAX_ITEMS + 1))
    numpy = _modules.get("numpy")
    array, scalar = getattr(numpy, "ndarray", None), getattr(numpy, "generic", None)
    is_array = kind is array
    is_scalar = any(base is scalar for base in _mro(kind))
    if not is_array and not (is_scalar and getattr(numpy, _name(kind), None) is kind):
        return None  # not a type of numpy itself
    if value.dtype.kind in "mM":  # points in time, which would become ints of some unit
        return None
    if is_array and value.size > MAX_ITEMS:
        return [None] * (MAX_ITEMS + 1)  # too many, whatever they are
    plain = value.tolist()
    return None if type(plain) is kind else plain  # a longdouble stays what it is


# -- ints of any size ------------------------------------------------------------------------------


def digits(value: int) -> str:
    """Write an int in decimal, whatever limit this Python has for that."""
    value = int.__int__(value)
    if value < 0:
        return "-" + digits(-value)
    bits = int.bit_length(value)
    if bits <= PLAIN_BITS:
        return int.__repr__(value)
    half = bits * 3 // 20  # about half of the digits
    high, low = divmod(value, 10**half)
    return digits(high) + str.zfill(digits(low), half)


def integer(text: str) -> int:
    """Read an int in decimal, whatever limit this Python has for that."""
    if text[:1] == "-":
        return -integer(text[1:])
    if len(text) <= PLAIN_DIGITS:
        return int(text)
    half = len(text) // 2
    power: int = 10**half
    return integer(text[:-half]) * power + integer(text[-half:])


# -- reading ---------------------------------------------------------------------------------------


def decode(text: str) -> Any:
    """Read a line that testgrad wrote; ValueError for anything else."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    try:
        value, end = _scan(text, 0)
    except StopIteration as error:
        raise ValueError(f"no value at {error.value}") from None
    if end != len(text):
        raise ValueError(f"more than one value: {end} of {len(text)} characters read")
    return value


def _tagged(pairs: dict[str, Any]) -> Any:
    """Read what is no JSON value: an object with one key that says what its value stands for."""
    if len(pairs) == 1:
        for tag, value in pairs.items():
            reader = _READERS.get(tag)
            if reader is not None:
                return reader(value)
    raise ValueError(f"not an object of ours: {list(pairs)}")


def _complex_of(parts: list[float]) -> complex:
    re, im = parts
    return complex(re, im)


def _refuse(word: str) -> Any:
    raise ValueError(f"not a value: {word}")


# -- what is bound at import -----------------------------------------------------------------------

_join = "".join
_modules = sys.modules
_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_type_name: Callable[[type], str] = type.__dict__["__name__"].__get__
_real: Callable[[complex], float] = complex.__dict__["real"].__get__
_imag: Callable[[complex], float] = complex.__dict__["imag"].__get__
_quote: Callable[[str], str] = json.encoder.encode_basestring_ascii
_c_make_encoder: Any = getattr(json.encoder, "c_make_encoder", None)  # None where there is no C
_c_encode: Callable[[Any, int], tuple[str, ...]] | None = _c_make_encoder and _c_make_encoder(
    None, _refuse, _quote, None, ":", ",", False, False, False
)
_decoder: Any = json.decoder.JSONDecoder(object_hook=_tagged, parse_constant=_refuse)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once

# By the id of the type: to look up a type itself would call the `__hash__` of its metaclass.
_SCALARS: dict[int, Callable[[Any], str]] = {
    id(type(None)): lambda _: "null",
    id(bool): _bool,
    id(int): _int,
    id(float): _float,
    id(complex): _complex,
    id(str): _str,
    id(bytes): _bytes,
    id(bytearray): _bytearray,
}
_DICTS: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
_VIEWS: list[Any] = [type(view) for d in _DICTS for view in (d.keys(), d.values(), d.items())]
_CONTAINERS: dict[int, tuple[str, Callable[[Any], Iterable[Any]], str]] = {
    id(list): ("[", list.__iter__, "]"),
    id(tuple): ('{"t":[', tuple.__iter__, "]}"),
    id(set): ('{"s":[', set.__iter__, "]}"),
    id(frozenset): ('{"fs":[', frozenset.__iter__, "]}"),
    id(dict): ('{"d":[', dict.items, "]}"),
}
_LISTED: dict[int, Callable[[Any], Iterable[Any]]] = {
    id(kind): kind.__iter__ for kind in (range, deque, *_VIEWS)
}
_BASES = frozenset((*_SCALARS, *_CONTAINERS, *_LISTED))
_PLAIN_KINDS = frozenset(map(id, (type(None), bool, int, float, str)))
_READERS: dict[str, Callable[[Any], Any]] = {
    "i": integer,
    "f": float,
    "c": _complex_of,
    "b": bytes.fromhex,
    "t": tuple,
    "s": set,
    "fs": frozenset,
    "d": dict,
    "o": _refuse,
}
