"""Ops that users define: one frozen dataclass, with kernels per device type."""

from dataclasses import dataclass

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph import op as op_module

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(autouse=True)
def registries(monkeypatch):
    """What the tests register is forgotten."""
    monkeypatch.setattr(op_module, "_registry", dict(op_module._registry))
    monkeypatch.setattr(op_module, "_kernels", dict(op_module._kernels))


def make_op():
    @dataclass(frozen=True)
    class Scaled(fs.Op):
        """The input times a factor."""

        factor: float = 2.0
        template = "{0} * 2.0"

        def infer(self, x):
            return x.like()

        def grad(self, g, y, x):
            return (g * self.factor,)

        def kernel(self, xp, x):
            return x * self.factor

    return Scaled


def add(op, x):
    return fs.get_default_graph().add(op, (x,)).outputs[0]


def test_a_users_op_runs_and_is_differentiated(sess):
    x = fs.placeholder(fs.float64, [None])
    y = add(make_op()(), x)
    assert y.op.type == "Scaled" and y.op.get_attr("factor") == 2.0
    np.testing.assert_array_equal(sess.run(y, {x: [1, 2]}), [2, 4])
    np.testing.assert_array_equal(sess.run(fs.gradients(y, x)[0], {x: [1, 2]}), [2, 2])


def test_a_kernel_for_a_device_type_replaces_kernel_and_template(sess):
    op = make_op()

    @fs.register_kernel(op, "CPU")
    def on_cpu(self, xp, x):
        return x * self.factor + 1.0

    x = fs.placeholder(fs.float64, [])
    assert sess.run(add(op(), x), {x: 1.0}) == 3.0


def test_without_a_kernel_for_any_device_the_op_cannot_be_placed(sess):
    op = make_op()
    op.devices = ("GPU",)
    with pytest.raises(ValueError, match="no device has a kernel for Scaled"):
        sess.run(add(op(), fs.constant(1.0)))


def test_an_op_needs_a_docstring_and_a_name_of_its_own():
    with pytest.raises(ValueError, match="op Silent needs a docstring"):

        class Silent(fs.Op):
            pass

    with pytest.raises(fs.errors.AlreadyExistsError, match="an op named MatMul already"):

        class MatMul(fs.Op):
            """Another one."""


def test_facts_are_keywords_of_the_class_and_unknown_ones_are_refused():
    class Still(fs.Op, is_differentiable=False, views=(0,)):
        """The input."""

    assert not Still.is_differentiable and Still.views == (0,) and fs.Op.views == ()
    with pytest.raises(TypeError, match="a fact that a base of Moving knows, got is_diferentiable"):

        class Moving(fs.Op, is_diferentiable=False):
            """The input."""
