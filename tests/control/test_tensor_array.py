"""Tensor arrays and what is built on them: map_fn, foldl, foldr, scan; gradients of any order."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.control.tensor_array_value import Form, Items


def test_write_read_stack_size(sess):
    a = fs.TensorArray(fs.float32, 3)
    b = a.write(0, [1.0, 2.0]).write(2, [3.0, 4.0])
    c = b.write(1, [5.0, 6.0])
    assert c.element_shape == [2]
    assert sess.run([b.read(2), c.size()])[0].tolist() == [3, 4]
    assert sess.run(c.stack()).tolist() == [[1, 2], [5, 6], [3, 4]]
    assert sess.run(c.gather([2, 0])).tolist() == [[3, 4], [1, 2]]
    assert sess.run(a.size()) == 3


def test_old_versions_stay_what_they_were(sess):
    a = fs.TensorArray(fs.int32, 2, clear_after_read=False).write(0, 1)
    b, c = a.write(1, 2), a.write(1, 3)
    assert [v.tolist() for v in sess.run([b.stack(), c.stack(), b.stack()])] == [
        [1, 2], [1, 3], [1, 2]
    ]  # fmt: skip


def test_unstack_scatter_split_concat(sess):
    x = fs.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    a = fs.TensorArray(fs.float32, 3).unstack(x)
    assert sess.run(a.read(1)).tolist() == [3, 4]
    b = fs.TensorArray(fs.float32, 3).scatter([2, 0, 1], x)
    assert sess.run(b.stack()).tolist() == [[3, 4], [5, 6], [1, 2]]
    c = fs.TensorArray(fs.float32, 2, infer_shape=False).split(x, [1, 2])
    assert sess.run(c.read(1)).tolist() == [[3, 4], [5, 6]]
    assert sess.run(c.concat()).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_errors(sess):
    i = fs.placeholder(fs.int32, [])
    a = fs.TensorArray(fs.float32, 2).write(0, 1.0)
    for array, message in (
        (a.write(i, 2.0), "index 0 was written before"),
        (
            a.write(i + 5, 2.0),
            'array "TensorArray" of size 2: expected an index from 0 below the size, got 5',
        ),
    ):
        with pytest.raises(fs.errors.InvalidArgumentError, match=message):
            sess.run(array.read(0), {i: 0})
    with pytest.raises(fs.errors.InvalidArgumentError, match="below the size, got 2"):
        sess.run(a.read(2))
    grows = fs.TensorArray(fs.float32, 0, dynamic_size=True).write(4, 1.0)
    assert sess.run(grows.size()) == 5
    with pytest.raises(TypeError, match="expected float32"):
        a.write(1, fs.constant(1))
    with pytest.raises(ValueError, match="do not fit together|of shape"):
        fs.TensorArray(fs.float32, 2, element_shape=[2]).write(0, [1.0])


def test_the_flow_of_an_array_is_fetched_as_zero_and_not_fed(sess):
    a = fs.TensorArray(fs.float32, 2, clear_after_read=False).write(0, 3.0)
    flow, value = sess.run([a.flow, a.read(0)])
    assert (flow, flow.dtype, value) == (0, np.float32, 3)
    with pytest.raises(fs.errors.InvalidArgumentError, match="below the size, got 2"):
        sess.run(a.write(2, 1.0).flow)
    with pytest.raises(ValueError, match="is no array and cannot be fed"):
        sess.run(a.size(), {a.flow: 1})


def test_arrays_in_loops_and_branches(sess):
    n = fs.placeholder(fs.int32, [])
    p = fs.placeholder(fs.bool, [])

    def body(i, a):
        return i + 1, a.write(i, fs.cast(i, fs.float32) * 2.0)

    _, a = fs.while_loop(lambda i, a: i < n, body, [0, fs.TensorArray(fs.float32, n)])
    assert a.element_shape == []
    assert sess.run(a.read(n - 1), {n: 3}) == 4
    b = fs.cond(p, lambda: a, lambda: fs.TensorArray(fs.float32, 1).write(0, 9.0))
    assert sess.run(b.stack(), {n: 3, p: True}).tolist() == [0, 2, 4]
    assert sess.run(b.stack(), {n: 3, p: False}).tolist() == [9]


def test_gradients_of_every_method(sess):
    x = fs.placeholder(fs.float64, [3, 2])
    w = fs.constant(np.arange(1.0, 7).reshape(3, 2))
    a = fs.TensorArray(fs.float64, 3, clear_after_read=False).unstack(x)
    b = (
        fs.TensorArray(fs.float64, 3, clear_after_read=False)
        .write(0, a.read(1) * a.read(1))
        .write(2, a.read(0))
    )
    c = b.write(1, a.read(1))
    d = fs.TensorArray(fs.float64, 2, infer_shape=False).split(c.stack(), [1, 2])
    y = fs.reduce_sum(d.concat() * w) + fs.reduce_sum(c.gather([1, 1]))
    (g,) = fs.gradients(y, x)
    (h,) = fs.gradients(fs.reduce_sum(g * g), x)
    v = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    want = np.array([[5, 6], [2 * 3 * 1 + 3 + 2, 2 * 4 * 2 + 4 + 2], [0, 0]])
    np.testing.assert_allclose(sess.run(g, {x: v}), want)
    np.testing.assert_allclose(sess.run(h, {x: v})[1], 2 * want[1] * [2, 4])


def test_unwritten_values_are_zeros_where_their_shape_is_known(sess):
    x = fs.placeholder(fs.float32, [None])
    a = fs.TensorArray(fs.float32, 3).write(1, x)
    assert sess.run(a.read(2), {x: [1, 2]}).tolist() == [0, 0]
    assert sess.run(a.stack(), {x: [1, 2]}).tolist() == [[0, 0], [1, 2], [0, 0]]
    assert sess.run(a.concat(), {x: [1, 2]}).tolist() == [0, 0, 1, 2, 0, 0]
    assert sess.run(fs.TensorArray(fs.string, 2).write(0, "a").stack()).tolist() == [b"a", b""]
    b = fs.TensorArray(fs.int32, 2, infer_shape=False)
    for c in (fs.TensorArray(fs.int32, 2), b, b.write(0, 1)):
        with pytest.raises(ValueError, match="index 1 has not been written, .* element_shape=..."):
            sess.run(c.read(1))
    (g,) = fs.gradients(fs.reduce_sum(a.stack() * [[1.0], [2.0], [3.0]]), x)
    assert sess.run(g, {x: [1, 2]}).tolist() == [2, 2]


def test_values_that_are_cleared_are_read_once(sess):
    a = fs.TensorArray(fs.float32, 2, name="acc").unstack([1.0, 2.0])
    assert sess.run(a.read(0)) == 1
    assert sess.run([a.read(0), a.read(1)]) == [1, 2]
    rows = fs.TensorArray(fs.float32, 2, clear_after_read=True).unstack([[1.0], [2.0]])
    for other in (rows.read(0), rows.stack(), rows.concat(), rows.gather([0])):
        with pytest.raises(ValueError, match="cannot read index . twice: it was cleared"):
            sess.run([rows.read(0), other])
    message = 'array "acc" of size 2: cannot read index 0 twice.*clear_after_read=False'
    with pytest.raises(ValueError, match=message):
        sess.run([a.read(0), a.read(0)])
    grows = fs.TensorArray(fs.int32, 0, dynamic_size=True, clear_after_read=True).write(0, 7)
    with pytest.raises(ValueError, match="cannot read"):  # whichever version it was read from
        sess.run([grows.read(0), grows.write(1, 8).read(0)])
    kept = fs.TensorArray(fs.float32, 2, clear_after_read=False).unstack([1.0, 2.0])
    assert sess.run([kept.read(0), kept.read(0), kept.stack()])[1] == 1


def test_gradients_lead_through_values_that_are_cleared(sess):
    x = fs.placeholder(fs.float32, [None])
    a = fs.TensorArray(fs.float32, 3, clear_after_read=True).unstack(x)
    out = fs.TensorArray(fs.float32, 3, clear_after_read=True)
    _, out = fs.while_loop(
        lambda i, _: i < 3, lambda i, out: (i + 1, out.write(i, a.read(i) ** 3.0)), [0, out]
    )
    (g,) = fs.gradients(out.stack(), x)
    (h,) = fs.gradients(g, x)
    for _ in range(2):
        got = sess.run([g, h], {x: [1, 2, 3]})
        np.testing.assert_allclose(got, [[3, 12, 27], [6, 12, 18]], rtol=1e-5)


def test_arrays_of_cotangents_add_up(sess):
    a = fs.TensorArray(fs.float32, 3, infer_shape=False).write(0, [3.0, 1.0]).write(1, [2.0])
    g = a.grad("mine").write(0, [4.0, 1.0]).write(0, [5.0, 2.0])
    assert "mine" in a.grad("mine").flow.name
    assert sess.run(g.read(0)).tolist() == [9, 3]
    assert sess.run(g.read(1)).tolist() == [0]
    assert sess.run(g.size()) == 3
    b = fs.TensorArray(fs.float32, 2).unstack([1.0, 2.0])
    assert sess.run(b.grad("g").scatter([1, 1], [3.0, 4.0]).stack()).tolist() == [0, 7]


def test_elements_of_different_shapes(sess):
    x = fs.placeholder(fs.float32, [None])
    a = fs.TensorArray(fs.float32, 2, infer_shape=False)
    b = a.write(0, [1.0, 2.0, 3.0]).write(1, x)
    assert b.element_shape.ndims is None
    assert sess.run(b.concat(), {x: [4]}).tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"of one shape to stack, got \[3\], \[1\]"):
        sess.run(b.stack(), {x: [4]})
    c = fs.TensorArray(fs.float32, 2).write(0, x).write(1, x[1:])
    with pytest.raises(ValueError, match=r"values of shape \[2\], got \[1\] at index 1"):
        sess.run(c.read(1), {x: [4, 5]})
    with pytest.raises(ValueError, match=r"elements of shape \[3\], got \[2\]"):
        fs.TensorArray(fs.float32, 2).write(0, [1.0, 2.0, 3.0]).write(1, [1.0, 2.0])


def test_nothing_to_stack(sess):
    n = fs.placeholder(fs.int32, [])
    a = fs.TensorArray(fs.float32, n, element_shape=[2])
    assert sess.run(a.stack(), {n: 0}).shape == (0, 2)
    assert sess.run(a.concat(), {n: 0}).shape == (0,)
    assert sess.run(a.unstack(fs.ones([n, 2])).gather(fs.zeros([0], fs.int32)), {n: 3}).size == 0
    with pytest.raises(ValueError, match="there is no element .* say element_shape="):
        sess.run(fs.TensorArray(fs.float32, n).stack(), {n: 0})


def test_what_is_known_of_shapes(graph):
    a = fs.TensorArray(fs.float32, 3, element_shape=[None, 2])
    b = a.write(0, [[1.0, 2.0]])
    assert b.stack().shape == [3, 1, 2]
    assert b.concat().shape == [3, 2]
    grows = fs.TensorArray(fs.float32, 3, dynamic_size=True)
    assert grows.unstack([1.0]).stack().shape.as_list() == [None]
    p = fs.placeholder(fs.bool, [])
    c = fs.cond(p, lambda: a.write(0, [[1.0, 2.0]]), lambda: a.write(0, fs.zeros([4, 2])))
    assert c.element_shape.as_list() == [None, 2]
    assert c.stack().shape.as_list() == [3, None, 2]
    d = fs.cond(p, lambda: b, lambda: fs.TensorArray(fs.float32, 9).write(0, [[1.0, 2.0]]))
    assert d.stack().shape.as_list() == [None, 1, 2]

    def larger(i, a):
        return i + 1, fs.TensorArray(fs.float32, 5).unstack(fs.ones([5]))

    _, e = fs.while_loop(lambda i, _: i < 2, larger, [0, fs.TensorArray(fs.float32, 1)])
    _, f = fs.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, a), [0, b])
    assert f.stack().shape == [3, 1, 2]
    assert e.read(0).shape == []
    for mode in ("compiled", "op"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            assert s.run(e.stack()).shape == (5,)


def test_arguments_that_do_not_fit_are_refused(graph):
    a = fs.TensorArray(fs.float32, 2)
    with pytest.raises(ValueError, match="expected a size of the array"):
        fs.TensorArray(fs.float32)
    with pytest.raises(TypeError, match=r"flow of an array of int32, got float32"):
        fs.TensorArray(fs.int32, flow=a.flow)
    with pytest.raises(TypeError, match="flow of an array of int32"):
        fs.TensorArray(fs.int32, flow=fs.constant(1))
    with pytest.raises(ValueError, match="got both"):
        fs.TensorArray(fs.float32, 2, flow=a.flow)
    with pytest.raises(TypeError, match="an integer scalar as index"):
        a.write(0.5, 1.0)
    with pytest.raises(TypeError, match="vector of integers as indices"):
        a.gather(1)
    with pytest.raises(ValueError, match="vector as lengths"):
        a.split([1.0], 1)
    a.mark_used()
    assert a.close().type == "NoOp"
    assert fs.TensorArray(fs.float32, flow=a.identity().flow).dtype is fs.float32


def test_lengths_of_parts(sess):
    n = fs.placeholder(fs.int32, [None])
    a = fs.TensorArray(fs.float32, 3, infer_shape=False)
    with pytest.raises(ValueError, match="as many lengths as the array .* has indices, 3, got 2"):
        sess.run(a.split(fs.ones([4]), n).concat(), {n: [1, 3]})
    with pytest.raises(ValueError, match="lengths with the sum 4, got 3"):
        sess.run(a.split(fs.ones([4]), n).concat(), {n: [1, 1, 1]})
    grows = fs.TensorArray(fs.float32, 0, dynamic_size=True, infer_shape=False)
    assert sess.run(grows.split(fs.ones([4]), n).size(), {n: [1, 3]}) == 2


def test_versions_of_a_persistent_array():
    versions = [Items.empty(3, Form("a", np.dtype(int)))]
    for i in range(3):
        versions.append(versions[-1].put(i, i * 10))
    branch = versions[1].put(1, 99)
    for _ in range(2):
        assert [v.indices() for v in versions] == [[], [0], [0, 1], [0, 1, 2]]
        assert (branch.get(1), versions[2].get(1), versions[1].get(1)) == (99, 10, None)


def test_a_handle_makes_an_array_of_another(sess):
    a = fs.TensorArray(fs.float32, 2).write(0, 3.0)
    assert sess.run(fs.TensorArray(fs.float32, handle=a.handle).read(0)) == 3
    with pytest.raises(TypeError, match="expected the handle of an array, got 1"):
        fs.TensorArray(fs.float32, handle=1)
    for name, value in {"size": 2, "tensor_array_name": "x", "element_shape": [1]}.items():
        with pytest.raises(ValueError, match=f"expected a handle or {name}, got both"):
            fs.TensorArray(fs.float32, handle=a.handle, **{name: value})


def test_what_reads_an_identity_waits_for_what_that_waits_for(sess):
    v = fs.Variable(0.0)
    a = fs.TensorArray(fs.float32, 2).unstack([1.0, 2.0])
    with fs.control_dependencies([fs.assign_add(v, 1.0)]):
        b = a.identity()
    sess.run(v.initializer)
    assert sess.run(b.stack()).tolist() == [1, 2]
    assert sess.run(v) == 1


def test_cotangents_written_by_hand_add_up(sess):
    a = fs.TensorArray(fs.float32, 3, infer_shape=False).write(0, [1.0, 2.0])
    g = a.grad("g").write(0, [1.0, 1.0]).write(0, [2.0, 2.0]).write(1, 5.0)
    assert sess.run(g.read(0)).tolist() == [3, 3] and sess.run(g.read(1)) == 5
    with sess.graph.as_default():
        assert sess.run(a.grad("h").read(0)).tolist() == [0, 0]
    with pytest.raises(ValueError, match="index 2 has not been written"):
        sess.run(g.read(2))
    x = fs.constant([1.0, 2.0])
    b = fs.TensorArray(fs.float32, 2).unstack(x)
    h = b.grad("h").write(0, x[0] * 3.0)
    y = fs.reduce_sum(h.stack() * [2.0, 7.0])
    assert sess.run([y, fs.gradients(y, x)[0]])[1].tolist() == [6, 0]


def test_their_text_says_dtype_and_shape(graph):
    a = fs.TensorArray(fs.float32, 2, element_shape=[None, 3])
    assert repr(a) == '<fs.TensorArray float32[?,3], "TensorArray:0">'
