"""Device scopes: names merge, None clears, functions decide: rows as TensorFlow 1 has them."""

from contextlib import ExitStack

import pytest

import flowscope as fs


def job(op):
    return "/job:w/task:3"


def as_spec(op):
    return fs.DeviceSpec(job="p", device_type="GPU", device_index=2)


def empty(op):
    return ""


def by_type(op):
    return "/gpu:1" if op.type == "Const" else "/cpu:0"


def task_where_none(op):
    return op.device or "/task:7"


def added_task(op):
    return op.device + "/task:7"


SPEC = fs.DeviceSpec(job="q", task=1)
#: Scopes from the outermost, and what a constant in them asks for.
ROWS = {
    "a short name": (["/cpu:1"], "/device:CPU:1"),
    "a full name": (
        ["/job:a/replica:1/task:2/device:GPU:3"],
        "/job:a/replica:1/task:2/device:GPU:3",
    ),
    "any number": (["/gpu"], "/device:GPU:*"),
    "any number within one": (["/gpu:1", "/device:GPU:*"], "/device:GPU:1"),
    "parts add up": (["/job:a/task:1", "/gpu:1"], "/job:a/task:1/device:GPU:1"),
    "inner parts win": (["/job:a/gpu:0", "/job:b"], "/job:b/device:GPU:0"),
    "an inner type": (["/gpu:0", "/cpu:*"], "/device:CPU:0"),
    "None clears": (["/gpu:0", None], ""),
    "None clears what is outside": (["/gpu:0", None, "/task:1"], "/task:1"),
    "an empty name changes nothing": (["/gpu:0", ""], "/device:GPU:0"),
    "a spec": (
        [SPEC, fs.DeviceSpec(device_type="GPU", device_index=0)],
        "/job:q/task:1/device:GPU:0",
    ),
    "a function": ([job], "/job:w/task:3"),
    "a function in a scope": (["/gpu:0", job], "/job:w/task:3/device:GPU:0"),
    "a scope in a function": ([job, "/gpu:0"], "/job:w/task:3"),
    "a function that says nothing": (["/gpu:0", empty], "/device:GPU:0"),
    "a function with a spec": (["/task:1", as_spec], "/job:p/task:1/device:GPU:2"),
    "a function by type": ([by_type], "/device:GPU:1"),
    "an outer function": ([job, as_spec], "/job:w/task:3"),
    "the other way round": ([as_spec, job], "/job:p/device:GPU:2"),
    "None between functions": ([job, None, as_spec], "/job:p/device:GPU:2"),
    "a function asks what is asked": ([task_where_none, "/gpu:1"], "/device:GPU:1"),
    "and adds where nothing is": (["/gpu:1", task_where_none], "/task:7/device:GPU:1"),
    "or adds to it": ([added_task, "/gpu:1"], "/task:7/device:GPU:1"),
}


@pytest.mark.parametrize("row", ROWS)
def test_scopes_add_up(row, graph):
    scopes, expected = ROWS[row]
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(fs.device(scope))
        assert fs.constant(1.0).device == expected


def test_a_function_sees_the_operation(graph):
    seen = []
    with fs.device(lambda op: seen.append((op.type, len(op.inputs)))):
        fs.identity(fs.constant(1.0))
    assert seen == [("Const", 0), ("Identity", 1)]


def test_a_variable_and_what_touches_it_ask_for_one_device(graph):
    by_kind = lambda op: "/job:ps" if op.type == "VarHandleOp" else "/job:w"  # noqa: E731
    with fs.device(by_kind):
        v = fs.Variable([1.0], name="v")
        x = v + 1.0
    assert v.op.device == v.initializer.device == "/job:ps"
    assert x.device == "/job:w"
    with fs.device("/cpu:0"):
        assert v.assign_add([1.0]).op.device == "/job:ps"


def test_bodies_stand_in_the_scopes_around_them(graph):
    inner = []

    def body(i):
        inner.append(fs.add(i, 1).device)
        with fs.device("/cpu:1"):
            inner.append(fs.add(i, 1).device)
        with fs.device(None):
            inner.append(fs.add(i, 1).device)
        return i + 1

    with fs.device("/gpu:0"):
        assert fs.while_loop(lambda i: i < 3, body, [0]).device == "/device:GPU:0"
    assert inner[:3] == ["/device:GPU:0", "/device:CPU:1", ""]


@pytest.mark.parametrize("scope", ["nonsense", 3, "/job:a/gpu:0/cpu:1", lambda op: "nonsense"])
def test_what_is_no_device_is_refused(scope, graph):
    with pytest.raises(ValueError), fs.device(scope):
        fs.constant(1.0)


def test_a_function_that_returns_no_name_is_refused(graph):
    with pytest.raises(TypeError, match="expected a device name"), fs.device(lambda op: 3):
        fs.constant(1.0)
