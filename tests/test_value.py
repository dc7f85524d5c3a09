"""Plain data on its way: written in the candidate's process, read by the core, and back."""

from __future__ import annotations

import ast
import collections
import dataclasses
import decimal
import enum
import json
import math
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import texts
from testgrad import _values
from testgrad._testgrad import _encode_value, _parse_value
from testgrad._values import MAX_DEPTH, MAX_DIGITS, decode, digits, encode

SOURCE = Path(_values.__file__)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.builds(lambda n, size: n * 10**size + n, st.integers(), st.integers(0, 2000)),
    st.floats(),
    st.complex_numbers(allow_nan=True),
    texts,
    st.binary(max_size=20),
)
hashables = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=8,
)
plain = st.recursive(
    hashables | st.sets(hashables, max_size=4),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(hashables, inner, max_size=4),
    ),
    max_leaves=20,
)


def picture(value: Any) -> str:
    """The value with its types, so that 1, 1.0, True and -0.0 all differ and NaN does not."""
    kind = type(value).__name__
    if isinstance(value, dict):
        pairs = sorted(f"{picture(key)}: {picture(item)}" for key, item in value.items())
        return f"{kind} {pairs}"
    if isinstance(value, (set, frozenset)):
        return f"{kind} {sorted(map(picture, value))}"
    if isinstance(value, (list, tuple)):
        return f"{kind} {[picture(item) for item in value]}"
    return f"{kind} {digits(value) if kind == 'int' else repr(value)}"


def through(value: object) -> Any:
    """The value as the judge sees it."""
    return _parse_value(encode(value))


# -- there and back --------------------------------------------------------------------------------


@given(plain)
def test_what_a_candidate_returns_arrives_unchanged(value: Any) -> None:
    line = encode(value)
    assert line.isascii()
    assert "\n" not in line
    assert picture(_parse_value(line)) == picture(value)


@given(plain)
def test_arguments_arrive_unchanged(value: Any) -> None:
    line = _encode_value(value)
    assert "\n" not in line
    assert picture(decode(line)) == picture(value)
    assert picture(decode(encode(value))) == picture(value)


@given(st.lists(st.none() | st.booleans() | st.integers() | st.floats() | texts))
def test_the_quick_way_writes_what_the_slow_one_does(values: list[Any]) -> None:
    class Own(list):  # type: ignore[type-arg]
        pass

    with_slow = encode([*values, ()])
    quick = encode(values)
    assert picture(_parse_value(quick)) == picture(_parse_value(with_slow)[:-1])
    assert encode(Own(values)) == quick
    nested = [[values, values], [values]]
    assert picture(through(nested)) == picture(nested)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e16, 1e22])
def test_floats_keep_every_bit(value: float) -> None:
    for wrapped in (value, [value], {"a": value}, complex(value, value)):
        assert picture(through(wrapped)) == picture(wrapped)
        assert picture(decode(_encode_value(wrapped))) == picture(wrapped)


# -- ints of any size ------------------------------------------------------------------------------


@pytest.fixture(params=[640, 4300, 0])
def limit(request: pytest.FixtureRequest) -> Any:
    """What this Python lets an int have in digits; 0 is no limit."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(request.param)
    yield request.param
    sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("size", [1, 599, 600, 601, 640, 641, 4300, 4301, 20_000, MAX_DIGITS])
@pytest.mark.parametrize("sign", [1, -1])
def test_ints_of_any_size_arrive(limit: int, size: int, sign: int) -> None:
    for value in (sign * 10 ** (size - 1), sign * (10**size - 1)):
        wrapped = [{value: 0}]
        assert through(wrapped) == wrapped
        assert decode(_encode_value(wrapped)) == wrapped


def test_an_int_of_more_digits_is_no_plain_data(limit: int) -> None:
    for value in (10**MAX_DIGITS, -(10**MAX_DIGITS), 1 << 20_000_000):
        assert encode((value,)) == '{"t":[{"o":"int of more than 100000 digits"}]}'
        with pytest.raises(ValueError, match=r"^at \[0\]: an int of more than 100000 digits"):
            _encode_value([value])


# -- what falls to its base ------------------------------------------------------------------------


class Colour(enum.IntEnum):
    RED = 1


class Word(enum.StrEnum):
    YES = "yes"


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (True, True),
        (Colour.RED, 1),
        (Word.YES, "yes"),
        (Point(1, 2), (1, 2)),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (bytearray(b"\0a"), b"\0a"),
        (range(3), [0, 1, 2]),
        (range(10**4)[::-1], list(range(10**4))[::-1]),
        (collections.deque([1, 2]), [1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.items(), [("a", 1)]),
        (collections.OrderedDict(a=1).items(), [("a", 1)]),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.complex64(1j), 1j),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
        (np.arange(3), [0, 1, 2]),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.array(5), 5),
        (np.array([]), []),
        (np.array([{}, None], dtype=object), [{}, None]),
    ],
)
def test_what_is_as_good_as_plain_data_becomes_it(value: object, base: object) -> None:
    for wrap in (lambda x: x, lambda x: [x, x], lambda x: {"k": x}):
        assert picture(through(wrap(value))) == picture(wrap(base))
        assert picture(_parse_value(_encode_value(wrap(value)))) == picture(wrap(base))


def hostile(base: type) -> type:
    """A subclass of which every method that Python could call fails the test."""

    def called(*args: Any) -> Any:
        raise AssertionError("a method of the candidate was called")

    kept = {"__new__", "__init__", "__init_subclass__", "__getattribute__", "__setattr__"}
    names = {name for name in dir(base) if name.startswith("__")} - kept
    methods: dict[str, Any] = dict.fromkeys(names - {"__class__", "__dict__", "__doc__"}, called)
    methods |= dict.fromkeys(["__int__", "__index__", "__float__", "__bool__", "__len__"], called)
    methods |= dict.fromkeys(["items", "keys", "values", "tolist", "item", "hex"], called)
    methods["__hash__"] = base.__hash__
    methods["__class__"] = property(called)
    return type("Hostile", (base,), methods)


@pytest.mark.parametrize(
    "value",
    [7, 10**700, 0.5, math.nan, 1j, "é", b"a", bytearray(b"a"), [1], [()], (1,), {1}, {"a": 1}],
    ids=repr,
)
def test_no_method_of_a_candidates_class_is_called(value: Any) -> None:
    base = type(value)
    disguised = hostile(base)(value)
    line = encode(value)
    assert encode(disguised) == line
    inner = encode([value, ()])
    assert encode([disguised, ()]) == inner


def test_a_frozenset_of_a_candidates_class_too() -> None:
    assert encode(hostile(frozenset)([1])) == '{"fs":[1]}'


def test_a_class_that_cannot_be_hashed_or_compared_is_only_named() -> None:
    def called(*args: Any) -> Any:
        raise AssertionError("a method of the candidate was called")

    names = ("__hash__", "__eq__", "__instancecheck__", "__subclasscheck__", "mro2", "__call__")
    meta = type("Meta", (type,), dict.fromkeys(names, called))
    odd = type.__call__(meta, "Odd", (), {"__getattribute__": called})
    assert encode([object.__new__(odd), 1]) == '[{"o":"Odd"},1]'


def test_what_claims_another_class_is_what_it_is() -> None:
    class Liar:
        @property
        def __class__(self) -> Any:
            return int

    assert encode(Liar()) == '{"o":"Liar"}'


# -- what is no plain data -------------------------------------------------------------------------


@dataclasses.dataclass
class Pair:
    left: int = 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"),
        (Pair(), "Pair"),
        ((number for number in [1]), "generator"),
        (iter([1]), "list_iterator"),
        (map(str, [1]), "map"),
        (len, "builtin_function_or_method"),
        (int, "type"),
        (decimal.Decimal(1), "Decimal"),
        (enum.Enum("E", "a").a, "E"),  # type: ignore[attr-defined]
        (np.datetime64("2026-01-01"), "datetime64"),
        (np.array(["2026-01-01"], dtype="M8[D]"), "ndarray"),
        (np.longdouble(1), np.longdouble.__name__),
        (np.ma.array([1]), "MaskedArray"),
        (memoryview(b"a"), "memoryview"),
    ],
)
def test_what_is_no_plain_data_is_named(value: object, name: str) -> None:
    assert encode([value, 1]) == f'[{{"o":"{name}"}},1]'
    with pytest.raises(ValueError, match=rf"^at \[0\]: {name} is not plain data$"):
        through([value, 1])
    with pytest.raises(ValueError, match=rf'^at \[0\]\["a"\]: {name} is not plain data; use None'):
        _encode_value([{"a": value}])


def test_a_lone_surrogate_crosses_and_is_refused() -> None:
    for value in ("\ud800", "a\udfffb"):
        with pytest.raises(ValueError, match=r"^at \[1\]: str with a lone surrogate is not plain"):
            through([1, value])
        with pytest.raises(ValueError, match=r"^at \[1\]: a str with a lone surrogate"):
            _encode_value((1, value))
    assert through("\U0001f980") == "\U0001f980"


def nested(depth: int, kind: type = list) -> Any:
    value: Any = kind()
    for _ in range(depth - 1):
        value = {0: value} if kind is dict else kind([value])
    return value


@pytest.mark.parametrize("kind", [list, tuple, frozenset, dict])
def test_values_may_be_so_deep_and_no_deeper(kind: type) -> None:
    deepest = nested(MAX_DEPTH, kind)
    assert through(deepest) == deepest
    assert decode(_encode_value(deepest)) == deepest
    deeper = nested(MAX_DEPTH + 1, kind)
    for value in (deeper, nested(5_000, kind)):
        assert encode(value) == f'{{"o":"{kind.__name__} nested deeper than 200"}}'
    with pytest.raises(ValueError, match="nested deeper than 200"):
        _encode_value(deeper)


def test_a_stack_that_is_nearly_full_is_no_crash() -> None:
    def deep(levels: int) -> str:
        return deep(levels - 1) if levels else encode(nested(MAX_DEPTH, tuple))

    answers = []

    def run() -> None:
        limit = sys.getrecursionlimit()
        answers.append(deep(limit - 300))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert answers == ['{"o":"tuple that cannot be read: RecursionError"}']


def test_what_contains_itself_ends_there() -> None:
    around: list[Any] = [1]
    around.append(around)
    assert encode(around) == '[1,{"o":"list in itself"}]'
    keyed: dict[str, Any] = {}
    keyed["a"] = (keyed,)
    assert encode(keyed) == '{"d":[["a",{"t":[{"o":"dict in itself"}]}]]}'
    twice = [[1], ()]
    assert through([twice, twice]) == [twice, twice]
    with pytest.raises(ValueError, match="nested deeper than 200, or in itself"):
        _encode_value(around)


def test_what_is_small_here_and_huge_as_text_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    many = ["x" * 1_000_000] * 1_000
    assert encode(many) == '{"o":"list of more than 67108864 bytes"}'
    assert encode(dict.fromkeys(range(100), many[0])) == '{"o":"dict of more than 67108864 bytes"}'
    assert encode(np.broadcast_to(1, 10**9)) == '{"o":"ndarray of more than 5000000 items"}'
    with pytest.raises(ValueError, match="more than 5000000 items"):
        _encode_value(np.broadcast_to(1, 10**9))
    monkeypatch.setattr(_values, "MAX_ITEMS", 10_000)
    doubled: Any = [()]
    for _ in range(60):
        doubled = [doubled, doubled]
    assert encode(doubled) == '{"o":"list of more than 10000 items"}'
    assert encode([[0] * 100] * 100) == '{"o":"list of more than 10000 items"}'
    assert encode(range(10**30)) == '{"o":"range of more than 10000 items"}'


def test_a_dict_that_changes_meanwhile_is_no_crash() -> None:
    class Mapping(dict):  # type: ignore[type-arg]
        pass

    ordered = collections.OrderedDict(a=1)
    view = ordered.items()
    dict.__setitem__(ordered, "b", 2)  # behind its back
    assert encode(view).startswith(('{"o":', "["))
    assert through(Mapping(a=1)) == {"a": 1}


# -- the candidate's process -----------------------------------------------------------------------


def test_patches_of_the_candidate_do_not_matter() -> None:
    code = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_values", {str(SOURCE)!r})
values = importlib.util.module_from_spec(spec)
spec.loader.exec_module(values)
import builtins, json, json.encoder, json.decoder, json.scanner, itertools, collections
put, write, big = setattr, sys.stdout.write, 10 ** 5000
value = [1, 0.5, "a", None, True, float("nan"), (1,), {{2}}, frozenset([3]), {{"k": [4]}}, b"b", 1j]
def evil(*args, **kwargs):
    raise SystemExit("patched")
kept = {{"__build_class__", "__import__", "__name__", "__spec__", "__loader__"}}
for module in (json, json.encoder, json.decoder, json.scanner, itertools, collections, builtins):
    for name in list(vars(module)):
        if name not in kept and not name.startswith("__"):
            put(module, name, evil)
sys.modules.clear()
line = values.encode(value)
values.encode([big, value])
values.encode(values.decode(values.encode([1, (2,), big])))
write(line)
"""
    command = [sys.executable, "-I", "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert shown.stderr == ""
    value = [1, 0.5, "a", None, True, math.nan, (1,), {2}, frozenset([3]), {"k": [4]}, b"b", 1j]
    assert picture(_parse_value(shown.stdout)) == picture(value)


def test_the_module_is_python_3_8_and_loads_only_the_standard_library() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 8))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    assert names <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    "line",
    ["", "nul", "1 1", "NaN", "[Infinity]", '{"x":1}', "{}", '{"t":[],"s":[]}', '{"o":"a"}', "[1"],
)
def test_only_our_lines_are_read(line: str) -> None:
    with pytest.raises(ValueError):
        decode(line)
    with pytest.raises(ValueError):
        _parse_value(line)


def best_s(call: Any) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def test_a_long_list_of_ints_costs_little_more_than_json() -> None:
    numbers = list(range(100_000))
    assert best_s(lambda: encode(numbers)) <= 5 * best_s(lambda: json.dumps(numbers))
