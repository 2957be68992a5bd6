"""Functions that do the same, and functions that may not, told by what they are made of."""

import functools
import sys
import textwrap
import threading
import types
import weakref

import numpy as np
import pytest

import flowscope as fs
from flowscope.cells.fingerprint import Comparison
from flowscope.cells.fingerprint_scan import MOST_BYTES, fingerprint


def compare(new, old, is_live=False):
    return Comparison(fingerprint(new), fingerprint(old), is_live, lambda thing: thing)


def made(source, **names):
    """Returns the `f` that a source makes, as a cell would: in the names of the notebook."""
    space = {"np": np, "functools": functools, **names}
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), space)
    return space["f"]


SAME = {
    "lines and comments": (
        "def f(x): return x + 1",
        "# why\n\ndef f(x):\n    return x + 1  # because",
    ),
    "a nested function": ("def f(x):\n  def g(y): return y * 2\n  return g(x)",) * 2,
    "a lambda": ("f = lambda x: [i for i in x if i > 0.5]",) * 2,
    "an array": ("a = np.arange(5.0)\ndef f(x): return x * a",) * 2,
    "a NaN": ("n = float('nan')\ndef f(x): return x * n",) * 2,
    "a helper": ("def g(x): return x * k\nk = 3\ndef f(x): return g(x)",) * 2,
    "recursion": ("def f(x): return x if x < 1 else f(x - 1)",) * 2,
    "mutual recursion": ("def f(x): return g(x)\ndef g(x): return f(x)",) * 2,
    "defaults": ("def f(x, k=2, *, m=(1, 'a')): return x * k",) * 2,
    "a closure": ("def make(k):\n  return lambda x: x * k\nf = make(2.5)",) * 2,
    "a method": (
        """
        class A:
            rate = 0.5
            def __init__(self): self.k = {"a": [1, 2]}
            def step(self, x): return x * self.k["a"][0] * self.rate
        f = A().step""",
    )
    * 2,
    "super": (
        """
        class A:
            def go(self, x): return x
        class B(A):
            @property
            def k(self): return 2
            def go(self, x): return super().go(x) * self.k
        f = B().go""",
    )
    * 2,
    "a dataclass": (
        """
        from dataclasses import dataclass
        @dataclass
        class A:
            k: int = 2
            def __call__(self, x): return x * self.k
        f = A(3)""",
    )
    * 2,
    "a partial": ("f = functools.partial(lambda a, b: a * b, b=2)",) * 2,
    "vectorized": ("f = np.vectorize(lambda x: x + 1)",) * 2,
    "library functions": ("from numpy import sum as s\ndef f(x): return np.sqrt(s(x))",) * 2,
    "a global that is not there": ("def f(x): return later(x)",) * 2,
    "sets": ("s = {'a', 1}\ndef f(x): return x in s and x in {1, 2}",) * 2,
    "an import inside": ("def f(x):\n  import math\n  return math.sin(x)",) * 2,
    "wrapped": ("@functools.wraps(len)\ndef f(x): return len(x)",) * 2,
}
OTHER = {
    "a constant": ("def f(x): return x + 1", "def f(x): return x + 2"),
    "the type of a constant": ("def f(x): return x + 1", "def f(x): return x + 1.0"),
    "a bool for an int": ("def f(x): return x, 1", "def f(x): return x, True"),
    "the sign of zero": ("def f(x): return x + 0.0", "def f(x): return x + -0.0"),
    "a constant in a tuple": ("def f(x): return x in (1, 2)", "def f(x): return x in (1, 2.0)"),
    "a nested function": ("f = lambda x: (lambda y: y)(x)", "f = lambda x: (lambda y: -y)(x)"),
    "a name": ("def f(x): return np.sin(x)", "def f(x): return np.cos(x)"),
    "its own name": ("def f(x): return x", "def g(x): return x\nf = g"),
    "a global": ("k = 1\ndef f(x): return x * k", "k = 2\ndef f(x): return x * k"),
    "a helper": (
        "def g(x): return x\ndef f(x): return g(x)",
        "def g(x): return -x\ndef f(x): return g(x)",
    ),
    "a helper's global": (
        "k = 1\ndef g(x): return x * k\ndef f(x): return g(x)",
        "k = 3\ndef g(x): return x * k\ndef f(x): return g(x)",
    ),
    "a default": ("def f(x, k=1): return x", "def f(x, k=2): return x"),
    "a default by keyword": ("def f(x, *, k=1): return x", "def f(x, *, k=2): return x"),
    "a closure": (
        "def make(k):\n  return lambda x: x * k\nf = make(2)",
        "def make(k):\n  return lambda x: x * k\nf = make(3)",
    ),
    "one bit of an array": (
        "a = np.zeros(3)\ndef f(x): return x + a",
        "a = np.zeros(3)\na[1] = -0.0\ndef f(x): return x + a",
    ),
    "an array's dtype": (
        "a = np.zeros(2)\ndef f(x): return x + a",
        "a = np.zeros(2, 'i8')\ndef f(x): return x + a",
    ),
    "an array's order": (
        "a = np.zeros((2, 2))\ndef f(x): return x + a",
        "a = np.zeros((2, 2), order='F')\ndef f(x): return x + a",
    ),
    "an entry of a dict": (
        "d = {'a': [1]}\ndef f(x): return d['a'][0]",
        "d = {'a': [2]}\ndef f(x): return d['a'][0]",
    ),
    "two names of one list": (
        "a = []\nb = a\ndef f(x): a.append(x); return b",
        "a = []\nb = []\ndef f(x): a.append(x); return b",
    ),
    "an attribute": (
        "class A:\n  k = 1\n  def go(self, x): return self.k\nf = A().go",
        "class A:\n  k = 2\n  def go(self, x): return self.k\nf = A().go",
    ),
    "an instance's attribute": (
        "class A:\n  def __init__(s): s.k = 1\n  def go(s, x): return s.k\nf = A().go",
        "class A:\n  def __init__(s): s.k = 2\n  def go(s, x): return s.k\nf = A().go",
    ),
    "a base class": (
        "class B:\n  def go(s, x): return 1\nclass A(B): pass\nf = A().go",
        "class B:\n  def go(s, x): return 2\nclass A(B): pass\nf = A().go",
    ),
    "a decorator": ("def f(x): return x", "@np.vectorize\ndef f(x): return x"),
    "what is partial": (
        "f = functools.partial(lambda a, b: a, b=1)",
        "f = functools.partial(lambda a, b: a, b=2)",
    ),
    "an exception's handler": (
        "def f(x):\n  try: return x.a\n  except KeyError: return 1",
        "def f(x):\n  try: return x.a\n  except ValueError: return 1",
    ),
    "a global that came": ("def f(x): return k", "k = 1\ndef f(x): return k"),
    "a built-in that is hidden": ("def f(x): return abs(x)", "abs = len\ndef f(x): return abs(x)"),
    # What cannot be looked at is never the same.
    "eval": ("def f(x): return eval('k')",) * 2,
    "globals()": ("def f(x): return globals()['k']",) * 2,
    "a random generator": ("r = np.random.default_rng(0)\ndef f(x): return r.normal()",) * 2,
    "slots": (
        "class A:\n  __slots__ = 'k'\n  def go(s, x): return s.k\na = A(); a.k = 1\nf = a.go",
    )
    * 2,
    "a subclass of list": ("class L(list): pass\nl = L([1])\ndef f(x): return l",) * 2,
    "a metaclass": ("class M(type): pass\nclass A(metaclass=M):\n  pass\ndef f(x): return A",) * 2,
    "a cache": ("@functools.lru_cache\ndef f(x): return x",) * 2,
    "a generator": ("g = (i for i in range(3))\ndef f(x): return next(g)",) * 2,
    "a lock": ("def f(x):\n  with lock: return x",) * 2,
    "a module that is not imported": ("def f(x):\n  import surely_missing\n  return x",) * 2,
}


@pytest.mark.parametrize("case", SAME)
def test_functions_that_do_the_same(case):
    old, new = SAME[case]
    found = compare(made(new), made(old))
    assert found.is_same
    assert not found.is_mapped


@pytest.mark.parametrize("case", OTHER)
def test_functions_that_may_not(case):
    old, new = OTHER[case]
    names = {"lock": threading.Lock()}
    for a, b in ((old, new), (new, old)):
        assert not compare(made(a, **names), made(b, **names)).is_same


def test_what_a_function_holds_counts_as_it_was_when_it_was_made():
    source = "def f(x): held.append(x); return a[0]"
    held, a = [], np.zeros(2)
    old = fingerprint(made(source, held=held, a=a))

    def is_same(is_live):
        new = fingerprint(made(source, held=held, a=a))
        return Comparison(new, old, is_live, lambda thing: thing).is_same

    assert is_same(is_live=False)
    held.append(1)
    assert not is_same(is_live=False)
    # What only steps call sees the list as it is then, before and after.
    assert is_same(is_live=True)
    del held[:]
    a[0] = 3
    assert not is_same(is_live=False)
    assert is_same(is_live=True)
    del a
    a = np.full(2, 3.0)
    assert not is_same(is_live=True)


def test_what_cannot_be_looked_at_is_the_same_for_steps_if_it_is_the_same_object():
    source = "def f(x): return r.normal()"
    r = np.random.default_rng(0)
    assert compare(made(source, r=r), made(source, r=r), is_live=True).is_same
    assert not compare(made(source, r=r), made(source, r=r)).is_same
    other = np.random.default_rng(0)
    assert not compare(made(source, r=r), made(source, r=other), is_live=True).is_same


@pytest.mark.slow
def test_what_is_too_large_is_never_the_same():
    big = np.zeros(MOST_BYTES // 8 + 1)
    source = "def f(x): return a"
    assert not compare(made(source, a=big), made(source, a=big)).is_same
    assert compare(made(source, a=big[:-9]), made(source, a=big[:-9])).is_same
    long = [[] for _ in range(20_000)]
    assert not compare(made(source, a=long), made(source, a=long)).is_same


def test_modules_of_the_users_count_with_what_is_in_them(monkeypatch):
    module = types.ModuleType("users_own")
    exec("k = 1\ndef g(x): return x * k", vars(module))
    monkeypatch.setitem(sys.modules, "users_own", module)
    for source in (
        "def f(x): return m.g(x)",
        "def f(x):\n  import users_own\n  return users_own.g(x)",
    ):
        old = fingerprint(made(source, m=module))
        assert Comparison(fingerprint(made(source, m=module)), old, False, lambda t: t).is_same
        module.k += 1
        assert not Comparison(fingerprint(made(source, m=module)), old, False, lambda t: t).is_same


def test_tensors_and_variables_count_as_themselves(graph):
    with graph.as_default():
        a, b = fs.constant(1.0), fs.constant(1.0)
        v, w = fs.Variable(1.0), fs.Variable(1.0)
    source = "def f(x): return x * {}"
    assert compare(made(source.format("a"), a=a), made(source.format("a"), a=a)).is_same
    assert not compare(made(source.format("a"), a=a), made(source.format("a"), a=b)).is_same
    assert compare(made(source.format("v"), v=v), made(source.format("v"), v=v)).is_same
    assert not compare(made(source.format("v"), v=v), made(source.format("v"), v=w)).is_same
    new, old = (fingerprint(made(source.format("a"), a=t)) for t in (a, b))
    mapped = Comparison(new, old, False, {a: b}.get)
    assert mapped.is_same and mapped.is_mapped and mapped.shares


def test_it_is_told_whether_what_may_change_is_shared():
    source = "def f(x): return a"
    held, fixed = [1], np.ones(2)
    fixed.setflags(write=False)
    assert compare(made(source, a=held), made(source, a=held)).shares
    assert not compare(made(source, a=[1]), made(source, a=[1])).shares
    assert compare(made(source, a=(1, "b")), made(source, a=(1, "b"))).shares
    counter = (
        "def make():\n  n = 0\n  def f(x):\n    nonlocal n\n    n += 1\n  return f\nf = make()"
    )
    assert not compare(made(counter), made(counter)).shares
    assert compare(made("def f(x): return x"), made("def f(x): return x")).shares


def test_arrays_that_a_list_has_lost_are_let_go():
    held = [np.ones(3)]
    seen = fingerprint(made("def f(x): return held", held=held))
    gone = weakref.ref(held.pop())
    assert gone() is None
    assert seen.kind == "function"
