"""Collectives: the bits that each rank gets, the pieces of plans, and what is refused."""

import numpy as np
import pytest
from random_collectives import Collectives, differing, folded

import flowscope as fs
from flowscope.ops.collective.hubs import EXCHANGE_BYTES, AllReduce
from flowscope.ops.core.send_recv import Transfer

fc = fs.collectives
MODES = ["compiled", "op", "tokens"]
Refused = fs.errors.InvalidArgumentError


def cpus(count):
    return [f"/device:CPU:{i}" for i in range(count)]


def session(count, **config):
    return fs.Session(config=fs.ConfigProto(device_count={"CPU": count}, **config))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_random_programs_give_the_bits_of_the_ranks_in_order(count, mode):
    for seed in range(4):
        program = Collectives(seed, count, cpus(count))
        apart = "always" if seed % 2 else "never"
        with program.graph.as_default(), session(count, mode=mode, split_partitions=apart) as sess:
            for _ in range(2):
                found = sess.run(program.tensors, program.feeds)
                assert not differing(program, found), (seed, program.wanted[0].dtype)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_large_tensors_are_folded_in_blocks_to_the_same_bits(graph, how, dtype):
    draw = np.random.default_rng(3)
    arrays = [draw.standard_normal(70_001).astype(fs.as_dtype(dtype).np_dtype) for _ in range(5)]
    with fs.Session() as sess:
        for one in sess.run(fc.all_reduce([fs.constant(x) for x in arrays], how)):
            assert one.tobytes() == folded(how, arrays).tobytes()


def tasks(count):
    return [f"/job:worker/replica:0/task:{i}/device:CPU:0" for i in range(count)]


def test_many_bytes_go_in_slices_and_each_process_sends_what_it_must():
    """2K(N-1)/N bytes of K from each process; few bytes go at once, K to each other one."""
    large, small = (EXCHANGE_BYTES // 8 * 3,), (8,)
    x, y = fs.Spec(fs.float64, large), fs.Spec(fs.float64, small)
    op = AllReduce(tuple(tasks(3)), "sum")
    assert op.sent_bytes([x] * 3) == 3 * 2 * x.nbytes * 2 // 3
    assert op.sent_bytes([y] * 3) == 3 * 2 * y.nbytes
    assert AllReduce(tuple(cpus(3)), "sum").sent_bytes([x] * 3) == 0
    assert [op.facts(t)["algorithm"] for t in ([x] * 3, [y] * 3)] == [
        "reduce-scatter, then all-gather",
        "exchange: each process folds all",
    ]


def test_a_plan_has_pieces_that_know_their_collective(graph):
    with fs.name_scope("layer"):
        xs = [fs.identity(fs.placeholder(fs.float32, [4])) for _ in range(2)]
        a, b = fc.all_reduce(xs, devices=cpus(2), name="sums")
    c, _ = fc.reduce_scatter(xs, devices=cpus(2))
    with session(2) as sess:
        plan = sess.plan([a, b, c], [x.op.inputs[0] for x in xs])
        text = plan.text("collectives")
    assert "layer/sums/CollectiveFold_0 = CollectiveFold(" in text
    nodes = [n for n in plan.program.walk() if "Collective" in n.op.type]
    assert {o.name for n in nodes for o in n.origins} == {"layer/sums", c.op.name}
    assert sum(n.op.type == "CollectiveFold" for n in nodes) == 2  # one fold serves both ranks
    assert not any(isinstance(n.op, AllReduce) for n in plan.program.walk())


def test_feeds_waits_and_targets_work_as_for_other_operations(graph):
    log = []
    with fs.control_dependencies([fs.py_func(lambda: log.append("first"), [], [])]):
        a, b = fc.all_reduce([fs.constant([1.0]), fs.constant([2.0])])
    with fs.control_dependencies([a.op]):
        after = fs.py_func(lambda: log.append("after"), [], [])
    with fs.Session() as sess:
        sess.run(after)
        assert log == ["first", "after"]
        sess.run(a.op)
        assert log == ["first", "after", "first"]
        assert sess.run([a + 1.0, b], {a: [7.0]})[0] == [8.0]
        one = fc.broadcast(3.0, [None, None])[1]
        with fs.control_dependencies([after]):
            forwarded = fc.broadcast(one, [None])[0]
        assert sess.run(forwarded) == 3.0 and log[-1] == "after"


def test_gradients_go_through_loops_and_devices(graph):
    x = fs.constant(2.0, fs.float64)

    def body(i, a, b):
        a, b = fc.all_reduce([a * x, b], "mean", cpus(2))
        return i + 1, a, b * a

    _, a, b = fs.while_loop(lambda i, a, b: i < 3, body, (0, x, x + 1.0))
    (grad,) = fs.gradients(a + b, [x])

    def value(v):
        p, q = v, v + 1.0
        for _ in range(3):
            p = (p * v + q) / 2
            q = p * p
        return p + q

    with session(2) as sess:
        want = (value(2 + 1e-6) - value(2 - 1e-6)) / 2e-6
        np.testing.assert_allclose(sess.run(grad), want, rtol=1e-7)


def test_the_graph_survives_being_written(graph):
    xs = [fs.constant([1.0, 5.0]), fs.constant([2.0, 3.0])]
    fc.all_reduce(xs, "max", cpus(2), name="largest")
    definition = graph.as_graph_def()
    with fs.Graph().as_default():
        (found,) = fs.import_graph_def(definition, return_elements=["largest:1"], name="")
        with session(2) as sess:
            assert sess.run(found).tolist() == [2.0, 5.0]


def test_tensorflows_names(graph):
    nccl = fs.contrib.nccl
    xs = [fs.constant([2, 5]), fs.constant([3, 4])]
    with fs.Session() as sess:
        for function, want in [
            (nccl.all_sum, [5, 9]),
            (nccl.all_prod, [6, 20]),
            (nccl.all_min, [2, 4]),
            (nccl.all_max, [3, 5]),
        ]:
            assert [v.tolist() for v in sess.run(function(xs))] == [want, want]
        assert sess.run([nccl.reduce_sum(xs), nccl.broadcast(xs[0])])[0].tolist() == [5, 9]
    fed = fs.placeholder(fs.float32, [2])
    with fs.device("/device:CPU:1"):
        total = nccl.reduce_sum([fed, fed + 1.0])
    with session(2) as sess:
        nodes = sess.plan(total, [fed]).program.walk()
        (fold,) = [n for n in nodes if n.op.type == "CollectiveFold"]
        assert fold.device.endswith("CPU:1")


def test_a_rank_that_differs_is_named_with_both_lines(graph):
    first, other = fs.constant([1.0]), fs.constant([[1.0]])
    with pytest.raises(Refused) as info:
        fc.all_reduce([first, first, other])
    message = str(info.value)
    assert message.count("made in test_collectives.py") == 2
    assert "expected [1] as rank 0 has" in message and "got [1,1] of rank 2" in message
    with pytest.raises(fs.errors.DTypeError, match="got int32 of rank 1"):
        fc.all_gather([[1.0], [1]])


def test_a_shape_that_differs_in_the_step_is_an_error_of_the_step(graph):
    fed = [fs.placeholder(fs.float32) for _ in range(3)]
    sums, alls = fc.all_reduce(fed, devices=cpus(3)), fc.all_to_all(fed, devices=cpus(3))
    feeds = {fed[0]: [1.0], fed[1]: [1.0], fed[2]: [1.0, 2.0]}
    for mode in MODES:
        with session(3, mode=mode, split_partitions="always") as sess:
            with pytest.raises(Refused, match=r"\[1\] as of rank 0, got \[2\] of rank 2"):
                sess.run(sums, feeds)
            with pytest.raises(Refused, match="expected a multiple of 3, the ranks"):
                sess.run(alls, feeds)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fc.all_reduce([]), "expected a tensor of one rank at least"),
        (lambda: fc.all_reduce(fs.constant([1.0])), "expected a list of tensors, one per rank"),
        (lambda: fc.all_reduce([1.0], "median"), "expected a reduction of sum, mean, min, max"),
        (lambda: fc.all_reduce([1], "mean"), "floating-point dtype for a mean"),
        (lambda: fc.all_reduce(["a"]), "expected a numeric dtype"),
        (lambda: fc.all_reduce([1j, 1j], "max"), "expected a real dtype for a max"),
        (lambda: fc.all_reduce([1.0, 2.0], devices=["/cpu:0"]), "a device for each of 2 ranks"),
        (lambda: fc.broadcast(1.0, []), "a device for each of some ranks"),
        (lambda: fc.scatter(1.0, [None]), "expected rank 1 at least, to part the first axis"),
        (lambda: fc.all_gather([1.0, 2.0]), "expected rank 1 at least, to join"),
        (lambda: fc.all_to_all([[1.0], [2.0]]), "expected a multiple of 2, the ranks"),
    ],
)
def test_what_is_no_collective_is_refused(graph, call, message):
    with pytest.raises(Refused, match=message):
        call()


def test_a_pair_of_devices_gets_each_tensor_once(graph):
    with fs.device("/cpu:0"):
        x = fs.identity(fs.placeholder(fs.float32, [3]))
    a, b = fc.broadcast(x, cpus(2))
    with fs.device("/cpu:1"):
        fetched = a + b
    with session(2) as sess:
        nodes = sess.plan(fetched, [x.op.inputs[0]]).program.walk()
        assert sum(isinstance(n.op, Transfer) for n in nodes) <= 2
