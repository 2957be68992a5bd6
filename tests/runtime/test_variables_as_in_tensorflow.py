"""Variables: arguments, devices, what assignments return, as TensorFlow 1 has them."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest

import flowscope as fs


@pytest.fixture(autouse=True)
def new_graph(graph: Any) -> Any:
    return graph


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"constraint": 0}, "constraint to be a function"),
        ({"collections": 3}, "collections to be a list"),
        ({"collections": "variables"}, "collections to be a list"),
        ({"synchronization": 3}, "VariableSynchronization"),
        ({"aggregation": 3}, "VariableAggregation"),
        ({"expected_shape": [2]}, r"shape \[2\]"),
        ({"shape": [2]}, r"shape \[2\]"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fs.Variable(1.0, **arguments)


def test_a_message_of_a_variable_comes_alone() -> None:
    with pytest.raises(ValueError, match="initial_value or variable_def, got both"):
        fs.Variable(1.0, variable_def="x")
    with pytest.raises(NotImplementedError, match="it belongs to variable_def"):
        fs.Variable(1.0, import_scope="x")


def test_what_touches_a_variable_stands_where_it_stands() -> None:
    with fs.device("/job:ps"):
        v = fs.Variable(0.0, name="v")
    with fs.device("/job:worker"):
        ops = [v.assign(1.0).op, v.assign_add(1.0).op, v.read_value().op, v.initializer]
        sums = v + 1.0
    assert {op.device for op in ops} == {"/job:ps"}
    assert {tuple(op.colocation_groups()) for op in ops} == {(b"loc:@v",)}
    assert sums.device == "/job:worker"


def test_a_caching_device_holds_one_copy() -> None:
    v = fs.Variable(2.0, caching_device="/job:foo", name="v")
    assert v.value().device == "/job:foo" and v.value() is v.value()
    assert v.read_value().device == ""
    with fs.variable_scope("s", caching_device=lambda op: "/job:bar"):
        assert fs.get_variable("w", [1]).value().device == "/job:bar"
        assert fs.get_variable("x", [1], caching_device="/job:x").value().device == "/job:x"
    local = fs.Variable(3.0, caching_device="/cpu:0")
    with fs.Session() as sess:
        sess.run(local.initializer)
        assert sess.run(local + 1.0) == 4.0


def test_what_is_synchronised_on_read_is_not_trained() -> None:
    on_read = fs.VariableSynchronization.ON_READ
    v = fs.Variable(1.0, synchronization=on_read)
    w = fs.Variable(1.0, synchronization=on_read, trainable=True)
    x = fs.get_variable("x", [1], synchronization=on_read)
    assert (v.trainable, w.trainable, x.trainable) == (False, True, False)
    assert fs.trainable_variables() == [w]


def test_a_shape_may_be_left_open() -> None:
    v = fs.Variable([1.0], shape=fs.TensorShape(None))
    w = fs.Variable([1.0], shape=[None])
    assert v.shape.ndims is None and w.shape.as_list() == [None]
    with fs.Session() as sess:
        sess.run([v.initializer, w.initializer])
        assert sess.run(v.assign([1.0, 2.0])).tolist() == [1.0, 2.0]
        assert sess.run(w.assign([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_assignments_can_be_read_and_written_as_the_variable() -> None:
    v = fs.Variable(1.0)
    twice = v.assign(3.0).assign_add(1.0)
    other = fs.assign(fs.assign_add(v, 1.0), 10.0)
    read = v.assign_add(1.0).read_value()
    assert twice.dtype is fs.float32 and read.shape == ()
    with fs.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(twice) == 4.0
        assert sess.run(read) == 5.0
        assert sess.run(other) == 10.0
        assert sess.run(v) == 10.0
    with pytest.raises(AttributeError, match="has no attribute 'foo'"):
        _ = twice.foo
    assert not hasattr(twice, "handle")


def test_assign_builds_in_the_variables_graph() -> None:
    with fs.Graph().as_default() as other:
        w = fs.Variable(1.0)
    assert w.assign(2.0).graph is other


def test_a_variable_of_an_open_shape_takes_any() -> None:
    w = fs.Variable([1.0], validate_shape=False)
    with fs.Session() as sess:
        sess.run(w.initializer)
        new = fs.assign(w, [1.0, 2.0], validate_shape=False)
        assert sess.run(new).tolist() == [1.0, 2.0]


def test_variables_are_not_iterated_over_nor_copied() -> None:
    v = fs.Variable([1.0, 2.0], name="v")
    with pytest.raises(TypeError, match=r"fs\.unstack"):
        list(v)
    with pytest.raises(NotImplementedError, match="cannot be copied"):
        copy.deepcopy(v)
    assert v.ref().deref() is v and v.ref() == v.ref() and len({v.ref(), v.ref()}) == 1
    t = fs.constant(1.0)
    assert t.ref().deref() is t and t.ref() != v.ref()


def test_get_variable_and_get_local_variable_take_the_same() -> None:
    both = (fs.get_variable, fs.get_local_variable)
    names = [list(inspect.signature(f).parameters) for f in both]
    assert names[0] == names[1]
    v = fs.get_local_variable("loc", [1], collections=["k"])
    assert fs.local_variables() == fs.get_collection("k") == [v] and not v.trainable


def test_default_initializers_of_every_kind() -> None:
    kinds = [fs.float32, fs.int32, fs.uint8, fs.bool, fs.string]
    made = [fs.get_variable(d.name, [2], d) for d in kinds]
    with pytest.raises(ValueError, match="complex64 needs an initializer"):
        fs.get_variable("c", [2], fs.complex64)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        values = sess.run(made[1:])
    assert [v.tolist() for v in values] == [[0, 0], [0, 0], [False, False], [b"", b""]]


def test_an_initializer_without_arguments_gives_the_shape() -> None:
    assert fs.get_variable("foo", initializer=lambda: [2]).shape == [1]
    assert fs.get_variable("bar", initializer=lambda: 2.5).dtype is fs.float32
    with pytest.raises(ValueError, match="an initializer without arguments"):
        fs.get_variable("baz", initializer=lambda shape, dtype: None)
    wants_part = fs.get_variable(
        "p", [2], initializer=lambda shape, dtype, partition_info: fs.ones(shape, dtype)
    )
    assert wants_part.shape == [2]


def test_custom_getters_stand_outside_the_scopes_names() -> None:
    def custom(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return fs.identity(getter(*args, **kwargs), name="got")

    with fs.variable_scope("s", custom_getter=custom):
        assert fs.get_variable("v", [1]).name == "got:0"
    with pytest.raises(ValueError, match="custom_getter to be a function"):
        fs.get_variable("n", [1], custom_getter=3)
    with pytest.raises(TypeError, match="name as a string"):
        fs.get_variable(3, [1])  # type: ignore[arg-type]


def test_a_scope_without_a_name_scope_keeps_the_one_around() -> None:
    with fs.variable_scope("outer"):
        with fs.variable_scope("inner", auxiliary_name_scope=False) as inner:
            assert inner.original_name_scope == "outer/"
    with fs.variable_scope("s") as s:
        pass
    with fs.variable_scope(s, auxiliary_name_scope=False) as again:
        with fs.name_scope(again.original_name_scope):
            assert fs.constant(1, name="c").name == "s/c:0"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name_or_scope": None}, TypeError),
        ({"name_or_scope": 3}, TypeError),
        ({"name_or_scope": None, "default_name": "d", "reuse": True}, ValueError),
        ({"name_or_scope": "a", "reuse": 3}, ValueError),
        ({"name_or_scope": "a", "auxiliary_name_scope": "x"}, TypeError),
    ],
)
def test_a_scopes_arguments_are_checked(arguments: dict[str, Any], error: type) -> None:
    with pytest.raises(error), fs.variable_scope(**arguments):
        pass


def test_parts_take_the_dtype_of_the_initial_value() -> None:
    parts = fs.create_partitioned_variables([2, 2], [1, 2], fs.constant([[1, 2], [3, 4]]))
    assert [p.dtype for p in parts] == [fs.int32, fs.int32]
