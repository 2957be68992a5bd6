"""Lossy transfers: half of the bytes go to another device, in one process and in partitions."""

import numpy as np
import pytest
from projected_runs import Projected
from several_devices import by_letter, plan_on

import flowscope as fs
from flowscope.ops.core.lossy_transfers import FromUpperHalf, UpperHalf

pytestmark = pytest.mark.usefixtures("graph")


def crossed(x):
    return FromUpperHalf().kernel(np, UpperHalf().kernel(np, x))


def test_numbers_are_cut_to_their_upper_half():
    x = np.random.default_rng(0).standard_normal(10000).astype("f") * np.float32(2) ** np.arange(
        -100, 100, 0.02, dtype="f"
    )
    y = crossed(x)
    assert y.dtype == x.dtype and not (y.view("u4") & 0xFFFF).any()
    assert (np.abs(y) <= np.abs(x)).all(), "what is dropped is not rounded"
    assert np.max(np.abs(y - x) / np.abs(x)) < 2**-7
    assert UpperHalf().kernel(np, x).nbytes == x.nbytes // 2


def test_infinities_zeros_and_nans_stay_what_they_are():
    nans = np.array([0x7F800001, 0xFF800001, 0x7FC00000, 0x7FFFFFFF], "u4").view("f")
    assert np.isnan(crossed(nans)).all()
    assert np.signbit(crossed(nans)).tolist() == np.signbit(nans).tolist()
    same = np.array([np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5], "f")
    assert crossed(same).tobytes() == same.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3, 4)])
def test_any_shape_and_layout_crosses(shape):
    x = np.full(shape, 1.00001, "f")[()]
    assert crossed(x).shape == shape and crossed(x.T).shape == shape[::-1]
    assert type(crossed(np.float32(1.00001))) is np.float32


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_other_devices_get_half_of_the_bits_and_its_own_gets_all(mode):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.multiply(x, x, name="A1")
    cut = fs.experimental.lossy_transfer(a, name="A2")
    fetches = [fs.add(cut, 1.0, name="A3"), fs.negative(cut, name="B1"), fs.abs(a, name="B2")]
    fetches += fs.gradients(fs.reduce_sum(fetches[1]), x)
    value = np.array([1.00001, 0.3333333, np.nan], "f")
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        alone = sess.run(fetches[:3], {x: value})
        assert (-alone[1]).tobytes() == (value * value).tobytes()
        plan = plan_on(sess, fetches, [x], by_letter)
        text = plan.text("partition")
        assert "A2/half = UpperHalf(A2)   uint16[3]" in text
        assert "A2/whole = FromUpperHalf(A2/from_CPU:0)   float32[3]" in text
        found = plan.executable.function(sess.gate, (1, 2, 3), (value,), ())
        split = Projected(plan.partitions, (value,), {}, (1, 2, 3)).run()
    for got in (found, split):
        assert got[0].tobytes() == alone[0].tobytes()
        assert got[1].tobytes() == (-crossed(value * value)).tobytes()
        assert got[2].tobytes() == alone[2].tobytes()
        assert got[3].tolist()[:2] == (-2 * value).tolist()[:2]


def test_in_a_loop_and_beside_what_crosses_whole():
    x = fs.placeholder(fs.float32, [], name="x")
    body = lambda i, v: (  # noqa: E731
        fs.add(i, 1, name="A1"),
        fs.multiply(fs.experimental.lossy_transfer(fs.sin(v, name="A2"), name="A3"), x, name="B1"),
    )
    y = fs.while_loop(lambda i, v: fs.less(i, 3, name="A4"), body, [0, x], name="A5")[1]
    with fs.Session() as sess:
        plan = plan_on(sess, [y], [x], by_letter)
        value = np.float32(0.7)
        want = value
        for _ in range(3):
            want = crossed(np.sin(want)) * value
        assert plan.executable.function(sess.gate, (1, 2, 3), (value,), ())[0] == want
        assert Projected(plan.partitions, (value,), {}, (1, 2, 3)).run()[0] == want


def test_only_float32_can_be_cut():
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected float32, got int32"):
        fs.experimental.lossy_transfer(fs.constant([1, 2]))
