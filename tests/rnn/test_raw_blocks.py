"""Blocks of recurrent networks and tensor arrays by raw operations."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops as raw
from flowscope.errors import DTypeError, InvalidArgumentError

UNITS = 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, c, h, p, order, forget_bias, clip, peephole):
    """One step in NumPy: (i, cs, f, o, ci, co, h)."""
    parts = np.split(np.concatenate([x, h], 1) @ p["w"] + p["b"], 4, 1)
    i, f, ci, o = [parts[k] for k in order]
    wci, wcf, wco = [p[n] if peephole else 0 for n in ("wci", "wcf", "wco")]
    i, f, ci = sigmoid(i + c * wci), sigmoid(f + forget_bias + c * wcf), np.tanh(ci)
    cs = ci * i + c * f
    cs = np.clip(cs, -clip, clip) if clip > 0 else cs
    o, co = sigmoid(o + cs * wco), np.tanh(cs)
    return i, cs, f, o, ci, co, co * o


@pytest.fixture
def inputs():
    rng = np.random.RandomState(3)
    shapes = {
        "x": (5, 2, 3), "cs_prev": (2, UNITS), "h_prev": (2, UNITS), "w": (3 + UNITS, 4 * UNITS),
        "wci": (UNITS,), "wcf": (UNITS,), "wco": (UNITS,), "b": (4 * UNITS,),
    }  # fmt: skip
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("clip", [0.5, -1.0])
def test_lstm_blocks(sess, inputs, clip, peephole):
    more = {"cell_clip": clip, "use_peephole": peephole}
    one = raw.LSTMBlockCell(**{**inputs, "x": inputs["x"][0]}, forget_bias=0.5, **more)
    first = inputs["x"][0], inputs["cs_prev"], inputs["h_prev"], inputs
    wanted = lstm(*first, (0, 2, 1, 3), 0.5, clip, peephole)
    for got, value in zip(sess.run(one), wanted, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-12)
    for block, order, bias in ((raw.BlockLSTM, (0, 2, 1, 3), 1), (raw.BlockLSTMV2, range(4), 0)):
        found = sess.run(block(seq_len_max=3, **inputs, **more))
        c, h = inputs["cs_prev"], inputs["h_prev"]
        for t in range(3):
            wanted = lstm(inputs["x"][t], c, h, inputs, order, bias, clip, peephole)
            c, h = wanted[1], wanted[6]
            for got, value in zip(found, wanted, strict=True):
                np.testing.assert_allclose(got[t], value, rtol=1e-12)
        assert not np.any([got[3:] for got in found])


def test_gradients_lead_through_blocks(graph, inputs):
    tensors = {n: fs.constant(v) for n, v in inputs.items()}
    tensors["seq_len_max"] = fs.constant(5)
    out = raw.BlockLSTM(**tensors, cell_clip=0.0, use_peephole=True)
    loss = fs.reduce_sum(out.h * out.h)
    names = ["x", "w", "wci", "cs_prev", "b"]
    grads = fs.gradients(loss, [tensors[n] for n in names])
    with fs.Session() as sess:
        for name, grad in zip(names, sess.run(grads), strict=True):
            place = tuple([0] * inputs[name].ndim)
            ends = []
            for step in (1e-5, -1e-5):
                moved = inputs[name].copy()
                moved[place] += step
                ends.append(sess.run(loss, {tensors[name]: moved}))
            np.testing.assert_allclose((ends[0] - ends[1]) / 2e-5, grad[place], rtol=1e-6)


def test_gru_block(sess):
    rng = np.random.RandomState(1)
    x, h = rng.normal(size=(2, 3)), rng.normal(size=(2, UNITS))
    w_ru, w_c = rng.normal(size=(3 + UNITS, 2 * UNITS)), rng.normal(size=(3 + UNITS, UNITS))
    b_ru, b_c = rng.normal(size=2 * UNITS), rng.normal(size=UNITS)
    got = raw.GRUBlockCell(x=x, h_prev=h, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c)
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, r * h], 1) @ w_c + b_c)
    for found, wanted in zip(sess.run(got), (r, u, c, u * h + (1 - u) * c), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert got._fields == ("r", "u", "c", "h")


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_tensor_arrays(graph, mode):
    handle, flow = raw.TensorArrayV3(
        size=3, dtype=fs.float32, element_shape=[2], clear_after_read=False
    )
    flow = raw.TensorArrayWriteV3(handle=handle, index=0, value=[1.0, 2.0], flow_in=flow)
    flow = raw.TensorArrayScatterV3(
        handle=handle, indices=[2, 1], value=[[3.0, 4.0], [5.0, 6.0]], flow_in=flow
    )
    given = {"handle": handle, "flow_in": flow}
    second = raw.TensorArrayReadV3(index=1, dtype=fs.float32, **given)
    ends = raw.TensorArrayGatherV3(indices=[0, 2], dtype=fs.float32, **given)
    whole = raw.TensorArrayConcatV3(dtype=fs.float32, **given)
    other, split = raw.TensorArrayV3(size=2, dtype=fs.float32)
    split = raw.TensorArraySplitV3(
        handle=other, value=[1.0, 2.0, 3.0], lengths=[2, 1], flow_in=split
    )
    parts = raw.TensorArrayConcatV3(handle=other, flow_in=split, dtype=fs.float32)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert sess.run(second).tolist() == [5, 6]
        assert sess.run(ends).tolist() == [[1, 2], [3, 4]]
        assert sess.run(whole.value).tolist() == [1, 2, 5, 6, 3, 4]
        assert sess.run([parts.value, parts.lengths])[1].tolist() == [2, 1]
        assert sess.run(raw.TensorArraySizeV3(**given)) == 3
    with pytest.raises(DTypeError, match="expected float32, the array's, got int32"):
        raw.TensorArrayReadV3(index=1, dtype=fs.int32, **given)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_raw_arrays_in_loops_have_gradients(graph, mode):
    x = fs.placeholder(fs.float32, [])
    handle, flow = raw.TensorArrayV3(size=4, dtype=fs.float32, element_shape=[])

    def body(i, flow):
        value = x * fs.cast(i, fs.float32)
        return i + 1, raw.TensorArrayWriteV3(handle=handle, index=i, value=value, flow_in=flow)

    _, flow = fs.while_loop(lambda i, _: i < 4, body, [0, flow])
    y = raw.TensorArrayGatherV3(handle=handle, indices=fs.range(4), flow_in=flow, dtype=fs.float32)
    (grad,) = fs.gradients(fs.reduce_sum(y * y), x)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert sess.run([y, grad], {x: 2.0})[0].tolist() == [0, 2, 4, 6]
        assert sess.run(grad, {x: 2.0}) == 2 * 2 * (1 + 4 + 9)


def test_elements_that_are_read_are_gone(sess):
    handle, flow = raw.TensorArrayV3(size=1, dtype=fs.float32, element_shape=[])
    flow = raw.TensorArrayWriteV3(handle=handle, index=0, value=1.0, flow_in=flow)
    given = {"handle": handle, "index": 0, "flow_in": flow, "dtype": fs.float32}
    first = raw.TensorArrayReadV3(**given)
    with fs.control_dependencies([first]):
        second = raw.TensorArrayReadV3(**given)
    with pytest.raises(InvalidArgumentError, match="cannot read index 0 twice"):
        sess.run(second)
