"""Inputs of recurrent blocks that do not fit: one error that names the input and its sizes."""

import re

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops as raw

LSTM = {
    "x": (2, 3), "cs_prev": (2, 4), "h_prev": (2, 4), "w": (7, 16), "wci": (4,), "wcf": (4,),
    "wco": (4,), "b": (16,),
}  # fmt: skip
GRU = {"x": (2, 3), "h_prev": (2, 4), "w_ru": (7, 8), "w_c": (7, 4), "b_ru": (8,), "b_c": (4,)}
BLOCKS = {
    "LSTMBlockCell": (lambda **a: raw.LSTMBlockCell(use_peephole=True, **a), LSTM),
    "BlockLSTM": (
        lambda **a: raw.BlockLSTM(seq_len_max=3, use_peephole=True, **a),
        {**LSTM, "x": (3, 2, 3)},
    ),
    "BlockLSTMV2": (
        lambda **a: raw.BlockLSTMV2(seq_len_max=3, use_peephole=True, **a),
        {**LSTM, "x": (3, 2, 3)},
    ),
    "GRUBlockCell": (lambda **a: raw.GRUBlockCell(**a), GRU),
}
MODES = ["compiled", "op", "tokens"]


def output(block, shapes, is_static, mode="compiled"):
    """Returns the output of a block for ones of these shapes, known from the start or fed."""
    make, _ = BLOCKS[block]
    values = {k: np.ones(shape, np.float32) for k, shape in shapes.items()}
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        if is_static:
            return s.run(make(**{k: fs.constant(v) for k, v in values.items()}).h)
        inputs = {k: fs.placeholder(fs.float32, name=k) for k in values}
        return s.run(make(**inputs).h, {inputs[k]: v for k, v in values.items()})


def wrong_shapes(shape):
    """Yields shapes of another rank, and with each of the sizes another one."""
    yield (1, *shape)
    yield shape[1:]
    for axis in range(len(shape)):
        yield (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block", BLOCKS)
def test_fed_inputs_give_what_known_ones_do(block, mode):
    shapes = BLOCKS[block][1]
    known, fed = [output(block, shapes, is_static, mode) for is_static in (True, False)]
    assert known.tobytes() == fed.tobytes()


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("block", BLOCKS)
def test_what_does_not_fit_is_named(block, is_static):
    shapes = BLOCKS[block][1]
    for name, shape in shapes.items():
        for wrong in wrong_shapes(shape):
            if name == "x" and len(shape) == len(wrong) == 3 and wrong[1:] == shape[1:]:
                continue  # more steps than are computed
            with pytest.raises(fs.errors.InvalidArgumentError) as e:
                output(block, {**shapes, name: wrong}, is_static)
            assert re.search(r": expected \w+ of shape \[.*\], got \[", str(e.value)), e.value


def test_gradients_lead_through_the_check(graph):
    inputs = {k: fs.placeholder(fs.float32, name=k) for k in GRU}
    out = raw.GRUBlockCell(**inputs).h
    found = fs.gradients(out, list(inputs.values()))
    feeds = {inputs[k]: np.ones(shape, np.float32) for k, shape in GRU.items()}
    with fs.Session() as s:
        assert [np.shape(g) for g in s.run(found, feeds)] == list(GRU.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_fed", [True, False])
@pytest.mark.parametrize("steps", [4, -1])
def test_steps_beyond_the_time_axis_are_named(steps, is_fed, mode):
    values = {k: np.ones(v, np.float32) for k, v in {**LSTM, "x": (3, 2, 3)}.items()}

    def run(sess):
        x = fs.placeholder(fs.float32, [None, 2, 3] if is_fed else [3, 2, 3])
        most = fs.placeholder(fs.int64, []) if is_fed else steps
        block = raw.BlockLSTM(seq_len_max=most, **{**values, "x": x})
        sess.run(block.h, {x: values["x"], **({most: steps} if is_fed else {})})

    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        with pytest.raises(
            fs.errors.InvalidArgumentError, match="from 0 to the length of the time"
        ):
            run(sess)


@pytest.mark.parametrize("scan", [fs.cumsum, fs.cumprod])
@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_fed_and_out_of_range_is_named(scan, axis):
    with fs.Graph().as_default(), fs.Session() as sess:
        x, at = fs.placeholder(fs.float32, [None, None]), fs.placeholder(fs.int32, [], name="axis")
        with pytest.raises(
            fs.errors.InvalidArgumentError, match=rf'axis in \[-2, 2\), got {axis}\n.*"axis:0"'
        ):
            sess.run(scan(x, at), {x: np.ones((2, 3)), at: axis})
