"""Operations of gradients know what they are the gradient of, and their errors say so (D2)."""

import inspect
import pickle

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def here():
    return inspect.currentframe().f_back.f_lineno


def test_the_forward_operation_is_known():
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.tanh(x, name="y")
    before = len(fs.get_default_graph())
    (g,) = fs.gradients(y * 2.0, x)
    made = fs.get_default_graph().operations_since(before)
    assert g.op.forward is y.op
    assert {op.forward.name for op in made if op.forward} == {"y", "mul"}
    assert x.op.forward is None and y.op.forward is None
    before = len(fs.get_default_graph())
    fs.gradients(g, x)
    second = fs.get_default_graph().operations_since(before)
    assert {op.forward.forward.name for op in second if op.forward and op.forward.forward} == {"y"}


def test_an_error_names_the_forward_operation_and_its_line(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float32, [None], name="x")
        w = fs.placeholder(fs.float32, [None], name="w")
        y = fs.multiply(x, w, name="y"); made = here()  # noqa: E702  # fmt: skip
        g, _ = fs.gradients(y, [x, w], grad_ys=fs.placeholder_with_default([1.0] * 3, [None])); by = here()  # noqa: E501, E702  # fmt: skip
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        sess.run(g, {x: [1.0, 2.0], w: [1.0, 2.0]})
    error = caught.value
    assert error.forward == "y"
    assert error.forward_origin == f"test_origins.py, line {made}"
    assert error.forward_source.startswith('y = fs.multiply(x, w, name="y")')
    assert error.origin == f"test_origins.py, line {by}"
    text = str(error)
    assert f"made in test_origins.py, line {by}\n  g, _ = fs.gradients(y" in text
    assert f'gradient of "y", made in test_origins.py, line {made}\n  y = fs.multiply' in text
    assert str(pickle.loads(pickle.dumps(error))) == text


def test_of_second_order_it_is_still_the_users_operation(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float32, [None], name="x")
        y = fs.square(x, name="y"); made = here()  # noqa: E702  # fmt: skip
        (g,) = fs.gradients(y, x)
        (g2,) = fs.gradients(g, x, grad_ys=fs.placeholder_with_default([1.0] * 3, [None]))
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        sess.run(g2, {x: [1.0, 2.0]})
    assert caught.value.op_name.startswith("gradients_1/gradients/y_grad/")
    assert caught.value.forward == "y"
    assert caught.value.forward_origin == f"test_origins.py, line {made}"


def test_an_error_while_it_is_built():
    x = fs.constant([1.0, 2.0, 3.0])
    fs.RegisterGradient("OriginsFails")(lambda op, g: fs.matmul(g, op.inputs[0]))
    with fs.get_default_graph().gradient_override_map({"Tanh": "OriginsFails"}):
        y = fs.tanh(x, name="y"); made = here()  # noqa: E702  # fmt: skip
    with pytest.raises(ValueError, match="MatMul") as caught:
        fs.gradients(y, x)
    assert caught.value.forward == "y"
    assert caught.value.op_name.startswith("gradients/y_grad/")
    assert f'gradient of "y", made in test_origins.py, line {made}' in str(caught.value)


def test_other_errors_name_no_gradient(sess):
    with sess.graph.as_default():
        x = fs.placeholder(fs.float32, [None])
        y = x * [1.0, 2.0]
    with pytest.raises(ValueError) as caught:
        sess.run(y, {x: np.ones(3)})
    assert caught.value.forward is None and "gradient of" not in str(caught.value)
