"""A dataclass made late is made when it is first used, and looks like any other."""

import copy
import dataclasses
import inspect
import pickle
import threading

import pytest

from flowscope.graph import op as op_module
from flowscope.graph.lazy import mutable
from flowscope.graph.op import Op, frozen
from flowscope.graph.origins.origin import SourceLine
from flowscope.ops.linalg.products import MatMul


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """What the tests register is forgotten."""
    monkeypatch.setattr(op_module, "_registry", dict(op_module._registry))


def make_op():
    @frozen
    class Blurred(Op):
        """An input, blurred."""

        width: int
        how: str = "box"
        note: str = dataclasses.field(default="", compare=False)

        def __post_init__(self) -> None:
            if self.width < 0:
                raise ValueError("no such width")

    return Blurred


def is_made(cls):
    return inspect.isfunction(vars(cls)["__init__"])


def test_it_is_made_when_it_is_called():
    cls = make_op()
    assert not is_made(cls)
    op = cls(3, note="x")
    assert is_made(cls)
    assert (op.width, op.how, op.note) == (3, "box", "x")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'width'"):
        cls()
    with pytest.raises(ValueError, match="no such width"):
        cls(-1)


@pytest.mark.parametrize(
    ("look", "found"),
    [
        (lambda cls: [f.name for f in dataclasses.fields(cls)], ["width", "how", "note"]),
        (lambda cls: list(inspect.signature(cls).parameters), ["width", "how", "note"]),
        (lambda cls: cls.__match_args__, ("width", "how", "note")),
        (lambda cls: cls.__init__.__qualname__.endswith("Blurred.__init__"), True),
    ],
)
def test_looking_at_it_makes_it(look, found):
    cls = make_op()
    assert look(cls) == found
    assert [f.name for f in dataclasses.fields(cls)] == ["width", "how", "note"]


def test_defaults_are_class_attributes_at_once():
    cls = make_op()
    assert (cls.how, cls.note) == ("box", "")
    assert not is_made(cls)


def test_equality_hash_and_text_know_the_fields():
    cls = make_op()
    assert cls(3, note="a") == cls(3, note="b") != cls(4)
    assert hash(cls(3)) == hash(cls(3, note="b"))
    assert repr(cls(3)) == "Blurred(width=3, how='box', note='')"
    assert dataclasses.replace(cls(3), how="gauss") == cls(3, "gauss")


def test_it_cannot_be_changed():
    op = make_op()(3)
    for name in ("width", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{name}'"):
            setattr(op, name, 4)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete field '{name}'"):
            delattr(op, name)


def test_fields_are_inherited():
    base = make_op()

    @frozen
    class Sharpened(base):
        """One with a further field, of a base that nobody has used yet."""

        amount: float = 1.0

    @dataclasses.dataclass(frozen=True, repr=False)
    class Painted(base):
        """One that is made at once."""

        colour: str = "red"

    class Plain(base):
        """One without fields of its own."""

    assert repr(Sharpened(2)) == "Sharpened(width=2, how='box', note='', amount=1.0)"
    assert repr(Painted(2)) == "Painted(width=2, how='box', note='', colour='red')"
    assert repr(Plain(2)) == "Plain(width=2, how='box', note='')"
    with pytest.raises(ValueError, match="no such width"):
        Sharpened(-1)


def test_a_constructor_of_ones_own_is_kept():
    @frozen
    class Halved(Op):
        """The input, halved so often."""

        times: int

        def __init__(self, by: int) -> None:
            object.__setattr__(self, "times", by.bit_length() - 1)

    assert Halved(8).times == 3
    assert [f.name for f in dataclasses.fields(Halved)] == ["times"]


def make_record(decorator):
    @decorator
    class SourceLine:
        """Where something is."""

        line: int
        file: str = "x"
        seen: list[int] = dataclasses.field(default_factory=list, compare=False, repr=False)

        def __str__(self) -> str:
            return f"{self.file}:{self.line}"

    @decorator
    class Marked(SourceLine):
        """One with a further field."""

        mark: str = ""

    return SourceLine, Marked


@pytest.mark.parametrize("decorator", [frozen, dataclasses.dataclass(frozen=True)])
def test_one_that_is_no_op_is_like_a_dataclass(decorator):
    place, marked = make_record(decorator)
    name = place.__qualname__
    assert (str(place(3)), repr(place(3))) == ("x:3", f"{name}(line=3, file='x')")
    assert place(3, "y") == place(3, "y", [1]) != place(3)
    assert hash(place(3)) == hash(place(3, seen=[1]))
    assert (place(3) == marked(3), place(3) == 3) == (False, False)
    assert repr(marked(3, mark="!")) == f"{marked.__qualname__}(line=3, file='x', mark='!')"
    assert dataclasses.asdict(marked(3)) == {"line": 3, "file": "x", "seen": [], "mark": ""}
    assert place.__match_args__ == ("line", "file", "seen")
    assert str(inspect.signature(place)).startswith("(line: int, file: str = 'x'")
    for thing in (place(3), marked(3)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'line'"):
            thing.line = 4
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'line'"):
            del thing.line
    with pytest.raises(TypeError, match="unexpected keyword argument 'column'"):
        place(column=1)


@pytest.mark.parametrize("decorator", [mutable, dataclasses.dataclass])
def test_one_that_may_be_changed_is_like_a_dataclass(decorator):
    place, marked = make_record(decorator)
    thing, other = place(3), marked(3, mark="!")
    assert (thing, other) == (place(3), marked(3, mark="!"))
    thing.line, other.mark = 4, "?"
    thing.seen.append(1)
    assert (thing, other) == (place(4), marked(3, mark="?"))
    assert place(3).seen == []
    assert dataclasses.replace(other, line=7) == marked(7, mark="?")
    with pytest.raises(TypeError, match="unhashable"):
        hash(thing)


def test_an_equality_of_ones_own_is_kept():
    @frozen
    class Nearby:
        """Equal to all that is near."""

        at: float

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Nearby) and abs(self.at - other.at) < 1

        def __hash__(self) -> int:
            return 7

    assert Nearby(1.0) == Nearby(1.5) != Nearby(3.0)
    assert hash(Nearby(1.0)) == 7


THINGS = [MatMul(True, False), SourceLine("x.py", None, 3)]


@pytest.mark.parametrize("thing", THINGS, ids=["op", "record"])
def test_objects_travel(thing):
    assert pickle.loads(pickle.dumps(thing)) == copy.deepcopy(thing) == thing


def test_many_threads_may_use_it_first():
    for _ in range(20):
        cls, together, made = make_op(), threading.Barrier(4), []

        def first(cls=cls, together=together, made=made):
            together.wait()
            made.append(cls(3, note="x"))

        threads = [threading.Thread(target=first) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [cls(3)] * 4
        assert [f.compare for f in dataclasses.fields(cls)] == [True, True, False]


def test_nothing_else_is_a_subclass():
    """Whoever lists the subclasses of a class finds those that were written, and no twins."""

    @frozen
    class Base:
        x: int = 1

    @frozen
    class Derived(Base):
        y: int = 2

    assert Derived(3) == Derived(3, 2)
    assert Base.__subclasses__() == [Derived]


def test_defaults_and_what_follows_them_are_inherited():
    def made(decorate):
        @decorate
        class Base:
            x: int = 5
            y: str = "y"

            def __post_init__(self):
                seen.append((self.x, self.y))

        @decorate
        class Middle(Base):
            z: float = 0.5

        @decorate
        class Derived(Middle):
            x: int
            y: str = "new"

        return Derived

    seen: list = []
    late, usual = made(mutable), made(dataclasses.dataclass)
    assert inspect.signature(late) == inspect.signature(usual)
    assert repr(late(z=1.0)).rpartition(".")[2] == repr(usual(z=1.0)).rpartition(".")[2]
    assert seen == [(5, "new")] * 2
