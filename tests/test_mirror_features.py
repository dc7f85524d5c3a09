"""What else honest tests do with a candidate: the same in one process and apart from it."""

# ruff: noqa: E501

from __future__ import annotations

import pytest

from testgrad import PytestRunner

TESTS = """
import collections.abc, copy, json, math, operator
import pytest, solution
from solution import *
def test_abc():
    with pytest.raises(TypeError): Shape()
    assert Square(2).area() == 4 and isinstance(Square(2), Shape)
def test_generic(): s = Box[int](5); assert s.get() == 5
def test_flag():
    assert (Perm.R | Perm.W) == Perm.RW and Perm.R in Perm.RW and bool(Perm.R & Perm.W) is False
def test_strenum(): assert Suit.H == "h" and Suit("h") is Suit.H and isinstance(Suit.H, str)
def test_property():
    t = Temp(0); t.f = 212; assert t.c == 100
    with pytest.raises(ValueError): t.c = -500
def test_slots():
    s = Slotted(1)
    with pytest.raises(AttributeError): s.y = 2
def test_getattr():
    assert Dyn().anything == "anything"
def test_cache():
    assert fib(30) == 832040 and fib.cache_info().hits > 0
    fib.cache_clear(); assert fib.cache_info().currsize == 0
def test_dispatch(): assert kind(1) == "int" and kind([]) == "list" and kind("x") == "other"
def test_iter():
    it = Count(3); assert list(it) == [0, 1, 2] and isinstance(it, collections.abc.Iterator)
    assert isinstance(it, collections.abc.Iterable)
def test_nt():
    e = Emp("a"); assert e.age == 3 and e == ("a", 3) and e._replace(age=4).age == 4 and e._asdict() == {"name": "a", "age": 3}
    assert e.older().age == 4 and Emp._fields == ("name", "age")
def test_userdict():
    d = Low(A=1); assert d["a"] == 1 and dict(d) == {"a": 1} and "A" in d and len(d) == 1 and d == {"a": 1}
def test_dictsub():
    d = Counter2("aab"); assert d["a"] == 2 and d["z"] == 0 and sorted(d.items()) == [("a", 2), ("b", 1)] and d == {"a": 2, "b": 1}
    assert isinstance(d, dict) and json.dumps(dict(d))
def test_num():
    m = Mod(7, 5)
    assert m + 4 == Mod(1, 5) and 4 + m == Mod(1, 5) and 3 - m == Mod(1, 5) and int(m) == 2 and m ** 2 == Mod(4, 5)
    m += 1; assert m == Mod(3, 5)
    assert divmod(Mod(7, 9), 2) == (3, 1) and round(Mod(7, 9)) == 7 and f"{m:>6}" == "  Mod3" and math.floor(m) == 3
    assert sum([Mod(1, 5), Mod(2, 5)], Mod(0, 5)) == Mod(3, 5) and max(Mod(1, 5), Mod(4, 5)) == Mod(4, 5)
    assert len({Mod(1, 5), Mod(1, 5)}) == 1 and Mod(1, 5) in [Mod(1, 5)] and sorted([Mod(3, 5), Mod(1, 5)])[0] == Mod(1, 5)
    with pytest.raises(TypeError): m + "x"
def test_seq():
    s = Seq([1, 2, 3, 4])
    assert s[1:3] == [2, 3] and s[-1] == 4 and list(reversed(s)) == [4, 3, 2, 1]
    s[0] = 9; del s[1]; assert list(s) == [9, 3, 4] and 3 in s and [*s] == [9, 3, 4]
    a, b, c = s; assert (a, b, c) == (9, 3, 4) and tuple(s) == (9, 3, 4) and ",".join(map(str, s)) == "9,3,4"
def test_map(): assert show(**Conf()) == "x=1"
def test_nested():
    tree = Node(1, [Node(2), Node(3, [Node(4)])])
    assert tree.children[1].children[0].value == 4 and sum(n.value for n in tree.walk()) == 10
def test_identity():
    n = Node(1); p = Node(0, [n]); assert p.children[0] is n and p.children[0] == n and n != Node(1)
def test_singleton(): assert Single() is Single()
def test_closures():
    c = counter(); assert (c(), c(), c()) == (1, 2, 3)
    add = partial_add(5); assert add(2) == 7
def test_deco(): assert twice(lambda x: x + 1)(1) == 3
def test_classattr():
    Base.total = 0; Base(); Base(); assert Base.total == 2
def test_meta(): assert Registry.names() == ["PluginA", "PluginB"]
def test_linked():
    l = Linked([1, 2]); l.append(3); assert list(l) == [1, 2, 3] and repr(l) == "Linked([1, 2, 3])" and l == Linked([1, 2, 3])
def test_exc_chain():
    with pytest.raises(AppError) as e: outer()
    assert isinstance(e.value.__cause__, KeyError) and e.value.detail == {"k": [1]}
    err = AppError("m", {}); assert str(err) == "m" and isinstance(err, Exception)
    with pytest.raises(AppError): raise err
def test_threads(): assert parallel([1, 2, 3]) == [1, 4, 9]
def test_none_defaults(): assert kw(1, c=3) == (1, 2, 3, (), {}) and kw(1, 5, 6, 7, z=1) == (1, 5, 6, (7,), {"z": 1})
def test_typeerror():
    with pytest.raises(TypeError): kw()
    with pytest.raises(TypeError, match="argument"): Temp()
def test_docs(): assert documented.__doc__ == "Docs." and documented.__name__ == "documented"
def test_gen_send():
    g = averager(); next(g); assert g.send(10) == 10 and g.send(20) == 15
def test_observer():
    seen = []
    s = Subject(); s.attach(seen.append); s.attach(lambda x: seen.append(x * 2)); s.notify(3); assert seen == [3, 6]
def test_key(): assert sort_by([(1, "b"), (2, "a")], key=lambda p: p[1]) == [(2, "a"), (1, "b")]
def test_pathlib(tmp_path):
    p = tmp_path / "d" / "f.json"; p.parent.mkdir(); p.write_text('{"a": 1}')
    assert load_json(p) == {"a": 1} and load_json(str(p))["a"] == 1
    out = dump_json({"b": 2}, tmp_path); assert out.read_text() == '{"b": 2}' and out.parent == tmp_path
    assert sorted(x.name for x in list_dir(tmp_path)) == ["d", "out.json"]
def test_fixture_obj(acc): acc.deposit(5); assert acc.balance == 15
@pytest.fixture
def acc(): return Acc(10)
@pytest.mark.parametrize("shape,area", [(Square(2), 4), (Square(3), 9)])
def test_param_objects(shape, area): assert shape.area() == area
def test_tuple_return():
    lo, hi = bounds([3, 1, 2]); assert (lo, hi) == (1, 3)
def test_floats(): assert third() == pytest.approx(1/3) and math.isnan(nan()) and third() * 3 == pytest.approx(1.0)
def test_dataclass_list(): assert pts() == [Pt(1, 2), Pt(3, 4)] and Pt(1, 2) in pts() and pts()[0] < pts()[1]
def test_dc_fields():
    import dataclasses
    assert [f.name for f in dataclasses.fields(Pt)] == ["x", "y"] and dataclasses.replace(Pt(1, 2), y=5) == Pt(1, 5)
    assert dataclasses.is_dataclass(Pt)
"""

CODE = """
import abc, collections, contextlib, enum, functools, json, pathlib, threading, typing, dataclasses
from typing import Generic, TypeVar, NamedTuple
TV = TypeVar("TV")
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Square(Shape):
    def __init__(self, s): self.s = s
    def area(self): return self.s ** 2
class Box(Generic[TV]):
    def __init__(self, v): self.v = v
    def get(self): return self.v
class Perm(enum.Flag):
    R = enum.auto(); W = enum.auto(); RW = R | W
class Suit(str, enum.Enum): H = "h"
class Temp:
    def __init__(self, c): self._c = c
    @property
    def c(self): return self._c
    @c.setter
    def c(self, v):
        if v < -273: raise ValueError("cold")
        self._c = v
    @property
    def f(self): return self._c * 9 / 5 + 32
    @f.setter
    def f(self, v): self.c = (v - 32) * 5 / 9
class Slotted:
    __slots__ = ("x",)
    def __init__(self, x): self.x = x
class Dyn:
    def __getattr__(self, n): return n
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.singledispatch
def kind(x): return "other"
@kind.register(int)
def _(x): return "int"
@kind.register(list)
def _(x): return "list"
class Count:
    def __init__(self, n): self.n, self.i = n, 0
    def __iter__(self): return self
    def __next__(self):
        if self.i >= self.n: raise StopIteration
        self.i += 1
        return self.i - 1
class Emp(NamedTuple):
    name: str
    age: int = 3
    def older(self): return self._replace(age=self.age + 1)
class Low(collections.UserDict):
    def __setitem__(self, k, v): super().__setitem__(k.lower(), v)
    def __contains__(self, k): return super().__contains__(k.lower())
class Counter2(dict):
    def __init__(self, it):
        super().__init__()
        for x in it: self[x] = self.get(x, 0) + 1
    def __missing__(self, k): return 0
class Mod:
    def __init__(self, v, m): self.v, self.m = v % m, m
    def _o(self, o):
        if isinstance(o, Mod): return o.v
        if isinstance(o, int): return o
        return None
    def __add__(self, o):
        x = self._o(o)
        return NotImplemented if x is None else Mod(self.v + x, self.m)
    __radd__ = __add__
    def __sub__(self, o): return Mod(self.v - self._o(o), self.m)
    def __rsub__(self, o): return Mod(o - self.v, self.m)
    def __pow__(self, n): return Mod(self.v ** n, self.m)
    def __divmod__(self, n): return divmod(self.v, n)
    def __int__(self): return self.v
    def __floor__(self): return self.v
    def __round__(self, n=None): return self.v
    def __eq__(self, o): return isinstance(o, Mod) and self.v == o.v
    def __hash__(self): return hash(self.v)
    def __lt__(self, o): return self.v < o.v
    def __gt__(self, o): return self.v > o.v
    def __format__(self, spec): return format(f"Mod{self.v}", spec)
class Seq:
    def __init__(self, d): self.d = list(d)
    def __getitem__(self, i): return self.d[i]
    def __setitem__(self, i, v): self.d[i] = v
    def __delitem__(self, i): del self.d[i]
    def __len__(self): return len(self.d)
class Conf:
    def keys(self): return ["x"]
    def __getitem__(self, k): return 1
def show(**k): return ",".join(f"{a}={b}" for a, b in k.items())
class Node:
    def __init__(self, value, children=()): self.value, self.children = value, list(children)
    def walk(self):
        yield self
        for c in self.children: yield from c.walk()
class Single:
    _i = None
    def __new__(cls):
        if cls._i is None: cls._i = super().__new__(cls)
        return cls._i
def counter():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    return inc
def partial_add(a): return functools.partial(lambda x, y: x + y, a)
def twice(f):
    @functools.wraps(f)
    def w(x): return f(f(x))
    return w
class Base:
    total = 0
    def __init__(self): Base.total += 1
class Meta(type):
    reg = []
    def __new__(m, n, b, d):
        c = super().__new__(m, n, b, d)
        if b: m.reg.append(n)
        return c
class Registry(metaclass=Meta):
    @classmethod
    def names(cls): return Meta.reg
class PluginA(Registry): pass
class PluginB(Registry): pass
class Linked:
    def __init__(self, it=()): self.l = list(it)
    def append(self, x): self.l.append(x)
    def __iter__(self): return iter(self.l)
    def __repr__(self): return f"Linked({self.l})"
    def __eq__(self, o): return isinstance(o, Linked) and self.l == o.l
class AppError(Exception):
    def __init__(self, m, detail): super().__init__(m); self.detail = detail
def outer():
    try: {}["k"]
    except KeyError as e: raise AppError("m", {"k": [1]}) from e
def parallel(xs):
    out = [None] * len(xs)
    def work(i): out[i] = xs[i] ** 2
    ts = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
    [t.start() for t in ts]; [t.join() for t in ts]
    return out
def kw(a, b=2, c=None, *args, **k): return (a, b, c, args, k)
def documented(): "Docs."
def averager():
    t = n = 0; avg = None
    while True:
        x = yield avg
        t += x; n += 1; avg = t / n
class Subject:
    def __init__(self): self.obs = []
    def attach(self, o): self.obs.append(o)
    def notify(self, x):
        for o in self.obs: o(x)
def sort_by(xs, key): return sorted(xs, key=key)
def load_json(p):
    with open(p) as f: return json.load(f)
def dump_json(d, place):
    out = pathlib.Path(place) / "out.json"; out.write_text(json.dumps(d)); return out
def list_dir(p): return list(pathlib.Path(p).iterdir())
class Acc:
    def __init__(self, b): self.balance = b
    def deposit(self, x): self.balance += x
def bounds(xs): return min(xs), max(xs)
def third(): return 1 / 3
def nan(): return float("nan")
@dataclasses.dataclass(order=True)
class Pt:
    x: int
    y: int = 0
def pts(): return [Pt(1, 2), Pt(3, 4)]
"""


@pytest.mark.parametrize(("isolation", "trust"), [("process", "isolated"), ("none", "shared")])
def test_every_feature_works(isolation: str, trust: str) -> None:
    suite = PytestRunner({"test_a.py": TESTS}, isolation=isolation)(CODE)
    assert [f"{test.name}: {test.message}" for test in suite if test.is_failing] == []
    assert (len(suite), suite.all_passed, suite.trust) == (40, True, trust)
