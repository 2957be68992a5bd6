"""Expressions of ops: text in, a form of few kinds, text out; and facts that follow from them."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import all_ops
from flowscope.graph.values.expression import KINDS, into_buffer, number_text, parsed, python_text

PLACES = ["{0}", "{1}", "{2}"]


def declared():
    """All expressions that ops declare, with their texts."""
    for name, op in all_ops().items():
        for text, found in (
            (op.template, op.expression),
            (op.scalar_template, op.scalar_expression),
        ):
            assert (text is None) == (found is None), name
            if text is not None:
                yield name, text, found


def test_every_op_has_the_form_of_what_it_declares_and_is_printed_as_it_was_written():
    seen = [*declared()]
    assert [name for name, text, found in seen if python_text(found, PLACES) != text] == []
    assert len({name for name, *_ in seen}) > 70


def test_the_kinds_are_those_that_ops_need():
    def kinds(expression):
        return {expression.kind}.union(*map(kinds, expression.operands))

    used = set().union(*[kinds(found) for *_, found in declared()])
    assert set(KINDS) - used == {"into"}  # which is made of others


def test_ops_that_compute_numbers_give_the_same_of_pythons_own():
    names = [n for n, op in all_ops().items() if op.on_numbers]
    assert {"Add", "Maximum", "LogicalNot"} <= set(names)
    for name in names:
        op = all_ops()[name]
        form = op.scalar_expression or op.expression
        kinds = "b" if form.is_logical else "if"
        examples = [[True, False], [3, -2, 0], [1.5, -0.0, 2.0, float("nan")]]
        for numbers in (e for e in examples if np.asarray(e).dtype.kind in kinds):
            for a in numbers:
                for b in numbers:
                    got = eval(number_text(form, ["a", "b"]), {"a": a, "b": b})  # noqa: S307
                    boxed = [np.asarray(v)[()] for v in (a, b)]
                    want = op.kernel(None, np, *boxed[: 1 + ("{1}" in python_text(form, PLACES))])
                    assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), (name, a, b)


@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_ops_that_commute_do(mode, graph):
    names = [n for n, op in all_ops().items() if op.commutes]
    assert names == ["Mul"] or {"Mul"} < set(names)
    x, y = np.array([1.5, -0.0, np.inf, 3.0]), np.array([-0.0, 2.0, 0.5, -7.0])
    for name in names:
        a, b = (
            graph.add(all_ops()[name](), v).outputs[0] for v in (constants(x, y), constants(y, x))
        )
        with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
            first, second = session.run([a, b])
        assert first.tobytes() == second.tobytes()


def constants(*arrays):
    return tuple(fs.constant(a) for a in arrays)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{0} ** 2", "_0 ** 2"),
        ("xp.sum({0}, axis=0)", "axis=0"),
        ("[{0}]", "[_0]"),
        ("{0} < {1} < {2}", "_0 < _1 < _2"),
        ("scipy({0})", "scipy(_0)"),
        ("{0} +", "{0} +"),
        ("{a}", "{a}"),
    ],
)
def test_what_has_no_kind_is_refused_where_the_op_is_defined(text, where):
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected") as caught:
        type("Odd", (fs.Op,), {"__doc__": "An op.", "template": text})
    assert where in str(caught.value) and "Odd" not in all_ops()


def test_names_take_the_places_of_inputs():
    found = parsed("{1} * {0} * (1 - {0})")
    assert python_text(found, ["y", "g"]) == "g * y * (1 - y)"
    into = into_buffer(found)
    assert python_text(into, ["y", "g"], "cupy", "y") == "cupy.multiply(g * y, 1 - y, out=y)"
