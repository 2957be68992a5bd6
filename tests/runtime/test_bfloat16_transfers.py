"""`GraphOptions.enable_bfloat16_sendrecv`: float32 numbers go to other devices by 16 bits."""

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, worker
from local_clusters import wait_until

import flowscope as fs
from flowscope.ops.core.lossy_transfers import FromUpperHalf, UpperHalf

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]
VALUES = np.array([[1.00001, -0.3333333, np.inf], [-np.inf, np.nan, 3e38]], "f")


def options(is_on=True):
    return fs.GraphOptions(enable_bfloat16_sendrecv=is_on)


def cut(x):
    return FromUpperHalf().kernel(np, UpperHalf().kernel(np, x))


def crossing(first, second):
    """What is given as it is, what crosses, what crosses in a loop, and what is no float32."""
    x = fs.placeholder(fs.float32, [2, 3], name="x")
    with first:
        y = fs.negative(x, name="y")
        k = fs.cast(x > 0.0, fs.int32) * 100003
    with second:
        far, whole = fs.negative(y, name="far"), k + 1

    def body(i, a):
        with on_first():
            b = fs.identity(a * 0.999, name="b")
        with on_second():
            return i + 1, fs.abs(b)

    on_first, on_second = (lambda: fs.device(y.op.device)), (lambda: fs.device(far.op.device))
    return x, [y, far, fs.while_loop(lambda i, _: i < 2, body, [0, y])[1], whole]


def check(values):
    y, far, looped, whole = values
    assert y.tobytes() == (-VALUES).tobytes()
    assert far.tobytes() == (-cut(y)).tobytes()
    want = cut(y)
    for _ in range(2):
        want = np.abs(cut(cut(want) * np.float32(0.999)))
    assert looped.tobytes() == want.tobytes()
    assert whole.tolist() == [[100004, 1, 100004], [1, 1, 100004]]
    for got in (far, looped):
        assert np.isnan(got).tolist() == np.isnan(VALUES).tolist()
        assert np.isinf(got).tolist() == np.isinf(VALUES).tolist()


@pytest.mark.parametrize("split", ["always", "never"])
@pytest.mark.parametrize("mode", MODES)
def test_devices_of_a_process_get_half_of_the_bits(mode, split):
    x, fetches = crossing(fs.device("/cpu:0"), fs.device("/cpu:1"))
    config = {"device_count": {"CPU": 2}, "mode": mode, "split_partitions": split}
    with fs.Session(config=fs.ConfigProto(graph_options=options(), **config)) as sess:
        check(sess.run(fetches, {x: VALUES}))
        nodes = list(sess.plan(fetches, [x]).program.walk())
        told = {n.reason for n in nodes if n.op.type == "Transfer"}
        assert sum(r.endswith("as bfloat16") for r in told) >= 2
    with fs.Session(config=fs.ConfigProto(**config)) as sess:
        assert sess.run(fetches, {x: VALUES})[1].tobytes() == VALUES.tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_device_keeps_stays_whole(mode):
    x, fetches = crossing(fs.device("/cpu:0"), fs.device("/cpu:0"))
    config = fs.ConfigProto(mode=mode, graph_options=options())
    with fs.Session(config=config) as sess:
        assert sess.run(fetches, {x: VALUES})[1].tobytes() == VALUES.tobytes()


def test_memories_of_one_accelerator_are_no_other_device():
    x = fs.placeholder(fs.float32, [2, 3])
    with fs.device("/gpu:0"):
        y = -x
    config = fs.ConfigProto(fake_devices={"GPU": 1}, graph_options=options())
    with fs.Session(config=config) as sess:
        assert sess.run(y, {x: VALUES}).tobytes() == (-VALUES).tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_tasks_of_a_cluster_send_half_of_the_bytes(mode):
    large = np.linspace(-1, 1, 300_000, dtype="f").reshape(300, 1000)
    with hosts_here(2) as (cluster, hosts):
        x, fetches = crossing(on(0), on(1))
        z = fs.placeholder(fs.float32, [300, 1000])
        with on(0):
            made = -z
        with on(1):
            total = fs.reduce_sum(made)
        sent = []
        for is_on in (False, True):
            config = fs.ConfigProto(mode=mode, graph_options=options(is_on))
            with fs.Session(cluster, config=config) as sess:
                if is_on:
                    check(sess.run(fetches, {x: VALUES}))
                before = wire_bytes(hosts[0])
                value = sess.run(total, {z: large})
                # They are counted behind the write, when the receiver may have them already.
                wait_until(lambda before=before: wire_bytes(hosts[0]) - before > 100_000)
                sent.append(wire_bytes(hosts[0]) - before)
                assert value == pytest.approx(np.sum(cut(-large) if is_on else -large), abs=0.5)
    assert large.nbytes < sent[0] < large.nbytes + 20_000
    assert large.nbytes / 2 < sent[1] < large.nbytes / 2 + 20_000


def wire_bytes(host):
    """Returns how many bytes a host has sent to another worker."""
    counters = host.endpoint.counters().get(worker(1))
    return 0 if counters is None else counters.sent_bytes
