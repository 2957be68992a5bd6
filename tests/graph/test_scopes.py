"""Scopes: names, control inputs, devices and colocation, in one thread and in several."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flowscope as fs


@pytest.fixture(autouse=True)
def new_graph() -> Iterator[None]:
    fs.reset_default_graph()
    yield
    fs.reset_default_graph()


def in_thread(function: Callable[[], Any]) -> Any:
    """The result of the function in a thread of its own."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_name_and_variable_scopes_belong_to_a_thread() -> None:
    g = fs.get_default_graph()

    def other() -> tuple[str, str]:
        with g.as_default():
            return fs.constant(1.0, name="c").name, fs.get_variable_scope().name

    with fs.variable_scope("foo"), fs.control_dependencies([fs.no_op()]):
        assert in_thread(other) == ("c:0", "")
        assert fs.constant(1.0, name="c").name == "foo/c:0"
    assert g.get_operation_by_name("c").control_inputs == []


def test_devices_are_the_graphs_until_it_switches() -> None:
    g = fs.get_default_graph()

    def other() -> str:
        with g.as_default(), g.device("/task:1"):
            return fs.no_op().device

    with fs.device("/job:w"):
        assert in_thread(other) == "/job:w/task:1"
    g.switch_to_thread_local()
    with fs.device("/job:w"):
        assert in_thread(other) == "/task:1"
        assert fs.no_op().device == "/job:w"


def test_several_threads_build_one_graph() -> None:
    g, made = fs.get_default_graph(), 200

    def build() -> None:
        with g.as_default(), fs.name_scope("part"):
            for _ in range(made):
                fs.constant(1.0, name="c")

    threads = [threading.Thread(target=build) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ops = g.get_operations()
    assert len({op.name for op in ops}) == len({op.id for op in ops}) == len(ops) == 4 * made


def test_control_inputs_that_follow_from_inputs_are_left_out() -> None:
    a = fs.constant(1.0)
    with fs.control_dependencies([a]):
        b = fs.identity(a)
        c = fs.constant(2.0)
        d = c + 1.0
        with fs.control_dependencies([fs.no_op("n")]):
            e = fs.identity(d)
    assert b.op.control_inputs == [] and c.op.control_inputs == [a.op]
    assert d.op.control_inputs == []
    assert [op.name for op in e.op.control_inputs] == ["n"]


def test_what_is_left_out_is_waited_for_all_the_same() -> None:
    v = fs.Variable(1.0)
    with fs.control_dependencies([v.assign_add(1.0)]):
        one = fs.constant(1.0)
        seen = v.read_value() * one
    with fs.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(seen) == 2.0


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_constants_that_wait_are_not_folded_away(mode: Any) -> None:
    v = fs.Variable(0.0)
    with fs.control_dependencies([v.assign_add(1.0)]):
        c, d = fs.constant(1.0), fs.constant(2.0)
    sums, parts = c + d, fs.stack([c, d])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(v.initializer)
        assert sess.run(sums) == 3.0 and sess.run(parts).tolist() == [1.0, 2.0]
        assert sess.run(v) == 2.0


def test_control_inputs_may_be_slices_and_variables() -> None:
    slices = fs.IndexedSlices(fs.constant([1.0]), fs.constant([0]))
    v = fs.Variable(1.0)
    with fs.control_dependencies([slices, v]):
        assert fs.no_op().control_inputs == [slices.values.op, v.op]
    with pytest.raises(TypeError, match="expected a tensor or an operation"):
        with fs.control_dependencies([None]):
            pass


def test_control_inputs_are_a_list_of_the_callers_own() -> None:
    with fs.control_dependencies([fs.no_op()]):
        op = fs.no_op()
    found = op.control_inputs
    found.append(op)
    assert len(op.control_inputs) == 1


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        (["/gpu:7", "/cpu:*"], "/device:CPU:7"),
        (["/device:GPU:7", "/device:GPU:*"], "/device:GPU:7"),
        (["/job:a/gpu:7", "/task:3"], "/job:a/task:3/device:GPU:7"),
        (["/job:a", None, "/gpu:1"], "/device:GPU:1"),
        ([lambda op: "/job:f", "/gpu:0"], "/job:f"),
        (["/gpu:0", lambda op: "/job:f"], "/job:f/device:GPU:0"),
        (["/gpu:0", lambda op: op.device + "/job:x"], "/job:x/device:GPU:0"),
        ([lambda op: op.device + "/job:x", "/gpu:0"], "/job:x/device:GPU:0"),
        ([fs.DeviceSpec(job="q"), "cpu:0"], "/job:q/device:CPU:0"),
        (["/job:a/task:0/cpu:0/job:b"], "/job:b/task:0/device:CPU:0"),
    ],
)
def test_devices_merge_from_the_inside(wishes: list[Any], expected: str) -> None:
    from contextlib import ExitStack

    with ExitStack() as stack:
        for wish in wishes:
            stack.enter_context(fs.device(wish))
        assert fs.no_op().device == expected


def test_colocation_is_stronger_than_devices() -> None:
    a = fs.constant(1, name="a")
    with fs.device("/cpu:0"):
        w = fs.constant(1, name="w")
    with fs.device("/gpu:1"), fs.colocate_with(a):
        b = fs.no_op("b")
    assert (b.device, b.colocation_groups()) == ("", [b"loc:@a"])
    assert b.get_attr("_class") == [b"loc:@a"]
    with fs.colocate_with(w), fs.device("/gpu:3"):
        assert fs.no_op().device == "/device:CPU:0"
        with fs.colocate_with(a):
            both = fs.no_op()
            with fs.colocate_with(b, ignore_existing=True):
                assert fs.no_op().colocation_groups() == [b"loc:@a"]
        with fs.colocate_with(None, ignore_existing=True):
            free = fs.no_op("free")
    assert (both.device, both.colocation_groups()) == ("/device:CPU:0", [b"loc:@a", b"loc:@w"])
    assert (free.device, free.colocation_groups()) == ("", [b"loc:@free"])
    with pytest.raises(ValueError, match="ignore_existing=True"):
        with fs.colocate_with(None):
            pass


def test_nesting_is_checked() -> None:
    scopes = [
        lambda: fs.variable_scope("b"),
        lambda: fs.device("/cpu:0"),
        lambda: fs.control_dependencies([fs.no_op()]),
        lambda: fs.Graph().as_default(),
    ]

    def leave_in_order(scope: Callable[[], Any]) -> None:
        outer, inner = scope(), scope()
        outer.__enter__()
        inner.__enter__()
        with pytest.raises(RuntimeError, match="ends inside another"):
            outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        outer = scope()
        outer.__enter__()
        scope().__enter__()
        # An error of the user's own is not hidden.
        assert outer.__exit__(ZeroDivisionError, ZeroDivisionError(), None) is False

    for scope in scopes:
        copy_context().run(leave_in_order, scope)
    sess = fs.Session()
    with sess, pytest.raises(RuntimeError, match="as_default"), sess:
        pass
    with fs.Graph().as_default(), pytest.raises(AssertionError):
        fs.reset_default_graph()


def test_a_name_scope_enters_the_graph_of_its_values() -> None:
    with fs.Graph().as_default() as g0:
        a = fs.constant(1.0)
    with fs.Graph().as_default():
        b = fs.constant(1.0)
    with fs.name_scope("s", values=[a, 3.0, None]) as name:
        assert fs.get_default_graph() is g0 and name == "s/"
    with pytest.raises(ValueError, match="of one graph"):
        with fs.name_scope("s", values=[a, b]):
            pass
    with pytest.raises(ValueError, match="a name or a default_name"):
        with fs.name_scope(None, values=[a]):
            pass
    with pytest.raises(TypeError, match="values come third"):
        with fs.name_scope("s", [a]):  # type: ignore[arg-type]
            pass


def test_names_may_be_bytes() -> None:
    assert fs.constant(1.0, name=b"e").name == "e:0"  # type: ignore[arg-type]


def test_feeding_and_fetching_can_be_forbidden() -> None:
    g = fs.get_default_graph()
    a = fs.constant(1.0, name="a")
    b = a + 1.0
    g.prevent_feeding(a)
    g.prevent_fetching(b.op)
    assert (g.is_feedable(a), g.is_feedable(b)) == (False, True)
    assert (g.is_fetchable(a), g.is_fetchable(b), g.is_fetchable(b.op)) == (True, False, False)
    with fs.Session() as sess:
        assert sess.run(a, {b: 2.0}) == 1.0
        with pytest.raises(ValueError, match="may not be fed"):
            sess.run(b * 2.0, {a: 3.0})
        for fetch in (b, b.op):
            with pytest.raises(ValueError, match="may not be fetched"):
                sess.run(fetch)


def test_create_op_checks_element_types() -> None:
    g = fs.get_default_graph()
    a = fs.constant(1.0)
    op = g.create_op("Add", [a, a], [fs.float32], [fs.float32] * 2, name="sum")
    assert (op.name, op.type, op.outputs[0].dtype) == ("sum", "Add", fs.float32)
    with pytest.raises(TypeError, match=r"expected outputs of \['int32'\], got \['float32'\]"):
        g.create_op("Add", [a, a], [fs.int32])
    with pytest.raises(ValueError, match="always inferred"):
        g.create_op("Add", [a, a], compute_shapes=False)
    with fs.device("/cpu:0"):
        assert g.create_op("NoOp", [], compute_device=False).device == ""


def test_device_specs() -> None:
    spec = fs.DeviceSpec(job="w", replica=1, task="3", device_type="cpu", device_index="0")
    assert spec.to_string() == "/job:w/replica:1/task:3/device:CPU:0"
    spec.merge_from(fs.DeviceSpec(job="b", task=2))
    assert str(spec) == "/job:b/replica:1/task:2/device:CPU:0"
    assert spec.parse_from_string("/gpu:2") is spec
    assert spec == fs.DeviceSpec.from_string("/device:GPU:2")
    assert spec.replace(task=5).to_string() == "/task:5/device:GPU:2"
    spec.job, spec.device_index = "x", 3
    assert spec.make_merged_spec(fs.DeviceSpec(task=0)).to_string() == "/job:x/task:0/device:GPU:3"
    assert repr(fs.DeviceSpec(job="a")) == (
        "<DeviceSpec(job=a, replica=None, task=None, device_type=None, device_index=None)>"
    )
    assert len({fs.DeviceSpec(job="a"), fs.DeviceSpec(job="a")}) == 1
    for bad in ("/job:a/device:GPU", "/gpu:2/cpu:0", "/foo:1", "/task:b"):
        with pytest.raises(ValueError, match="device"):
            fs.DeviceSpec.from_string(bad)


def test_seeds_of_ops_follow_from_the_graphs() -> None:
    assert fs.get_seed(None) == (None, None)
    assert fs.get_seed(2**31) == (87654321, 1)
    fs.set_random_seed(0)
    assert fs.get_seed(0) == (0, 2**31 - 1)
    fs.set_random_seed(np.int64(7))  # type: ignore[arg-type]
    fs.no_op()
    assert fs.get_seed(None) == (7, 1)
    with pytest.raises(TypeError, match="expected an integer seed"):
        fs.set_random_seed("a")  # type: ignore[arg-type]


def test_a_group_stands_where_its_operations_stand() -> None:
    with fs.device("/task:0"):
        a, b = fs.no_op("a"), fs.no_op("b")
    with fs.device("/task:1"):
        c = fs.no_op("c")
    one, two = fs.group(a, b), fs.group(a, b, c, name="all")
    assert (one.device, one.control_inputs) == ("/task:0", [a, b])
    assert two.name == "all" and two.device == ""
    parts = [(op.name, op.device, op.control_inputs) for op in two.control_inputs]
    assert parts == [("all/NoOp", "/task:0", [a, b]), ("all/NoOp_1", "/task:1", [c])]


def test_arrays_of_tensors_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="is not an array"):
        np.array(fs.constant(1))


def test_sparse_tensors_are_tensors_of_a_kind() -> None:
    assert fs.is_tensor(fs.SparseTensor([[1, 2]], [3], [10, 10])) and not fs.is_tensor(3)
    assert fs.control_flow_v2_enabled()
    with pytest.raises(NotImplementedError, match="own blocks"):
        fs.disable_control_flow_v2()


def test_feeds_and_fetches_of_more_structures() -> None:
    sparse = fs.sparse_placeholder(fs.float32, [7, 9])
    found = collections.defaultdict(list)
    found["a"] = fs.constant(1)
    with fs.Session() as sess:
        assert sess.run(sparse.values, {sparse: ([[0, 1]], [5.0])}).tolist() == [5.0]
        values = sess.run(found)
        assert values == {"a": 1} and values.default_factory is list
        assert sess.run(b"Const:0") == 1


def test_objects_of_attrs_are_fetched() -> None:
    class Pair:
        """What `attrs` makes of a class with two attributes, as far as it matters here."""

        __attrs_attrs__ = (SimpleNamespace(name="x"), SimpleNamespace(name="y"))

        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    a = fs.constant(1.0)
    with fs.Session() as sess:
        pair = sess.run(Pair(a, [a + 1.0]))
    assert (pair.x, pair.y) == (1.0, [2.0])
