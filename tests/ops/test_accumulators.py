"""Accumulators: TensorFlow's rules, sums that do not depend on arrival, and random programs."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, restart

import flowscope as fs
from flowscope.errors import (
    DeadlineExceededError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from flowscope.live.answers.inputs import queue_states

MODES = ("compiled", "op", "tokens")
SHORT = fs.RunOptions(timeout_in_ms=10)
LONG = fs.RunOptions(timeout_in_ms=20_000)


def plain(value: Any) -> Any:
    return [np.asarray(v).tolist() for v in value]


@pytest.mark.parametrize("mode", MODES)
def test_sparse_gradients_are_averaged_by_row(graph: fs.Graph, mode: str) -> None:
    """The values are those of TensorFlow's kernels."""
    accumulator = fs.sparse.SparseConditionalAccumulator(fs.float32, [4, 2])
    first = accumulator.apply_grad([0, 2], [[1.0, 1], [2, 2]])
    second = accumulator.apply_grad([2], [[4.0, 4]], [4, 2])
    slices = fs.IndexedSlices(fs.constant([[1.0, 1], [2, 2], [3, 3]]), fs.constant([3, 1, 3]))
    third = accumulator.apply_indexed_slices_grad(slices)
    taken, as_slices = accumulator.take_grad(1), accumulator.take_indexed_slices_grad(1)
    anew = accumulator.set_global_step(0)
    whole = fs.SparseConditionalAccumulator(fs.float32, shape=(), reduction_type="SUM")
    sums = [whole.apply_grad([0, 2], [[1.0], [2]]), whole.apply_grad([2, 1], [[1.0], [2]])]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(first)
        sess.run(second)
        assert plain(sess.run(taken)) == [[0, 2], [[1, 1], [3, 3]], [4, 2]]
        sess.run(first)  # stale
        assert sess.run(accumulator.num_accumulated()) == 0
        sess.run(anew)
        sess.run(first)
        sess.run(third)
        found = sess.run(as_slices)
        assert found.indices.tolist() == [0, 1, 2, 3]
        assert found.values[:, 0].tolist() == [1, 2, 2, 4]
        sess.run(sums)
        assert plain(sess.run(whole.take_grad(2))) == [[0, 1, 2], [[1], [2], [3]], [-1, 1]]


def test_what_is_refused(graph: fs.Graph) -> None:
    dense, any_shape = fs.placeholder(fs.float32), fs.ConditionalAccumulator(fs.float32)
    accumulator = fs.ConditionalAccumulator(fs.float32, [2])
    sparse = fs.SparseConditionalAccumulator(fs.float32, [4, 2])
    count, rows = fs.placeholder(fs.int32, []), fs.placeholder(fs.int64, [None])
    for wrong in (
        lambda: fs.ConditionalAccumulator(fs.float32, reduction_type="MAX"),
        lambda: accumulator.apply_grad([1.0, 2, 3]),
        lambda: accumulator.take_grad(0),
        lambda: sparse.apply_grad([1], [[1.0, 2, 3]]),
    ):
        with pytest.raises(InvalidArgumentError, match="expected"):
            wrong()
    with pytest.raises(DTypeError, match="floating"):
        fs.ConditionalAccumulator(fs.int32)
    with pytest.raises(DTypeError, match="IndexedSlices"):
        sparse.apply_indexed_slices_grad([1.0])  # type: ignore[arg-type]
    with fs.Session() as sess:
        with pytest.raises(InvalidArgumentError, match=r"of shape \[2\].*got \[3\]"):
            sess.run(accumulator.apply_grad(dense), {dense: [1, 2, 3]})
        sess.run(any_shape.apply_grad(dense), {dense: [1, 2]})
        with pytest.raises(InvalidArgumentError, match=r"of shape \[2\].*got \[3\]"):
            sess.run(any_shape.apply_grad(dense), {dense: [1, 2, 3]})
        with pytest.raises(InvalidArgumentError, match="num_required of 1 or more"):
            sess.run(accumulator.take_grad(count), {count: 0})
        apply = sparse.apply_grad(rows, fs.ones([1, 2]), local_step=3)
        for row, said in (([4], "indices of 4 rows"), ([-1], "0 or more"), ([1, 2], "one per")):
            with pytest.raises(InvalidArgumentError, match=said):
                sess.run(apply, {rows: row})
        assert sess.run([accumulator.num_accumulated(), sparse.num_accumulated()]) == [0, 0]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_sums_do_not_depend_on_arrival(graph: fs.Graph, is_sparse: bool) -> None:
    """Eleven workers' gradients, and sixty of one of them, in random orders: the same bits."""
    sources = []
    fed = fs.placeholder(fs.float32, [3])
    rows, kind = [4, 0, 2], fs.SparseConditionalAccumulator if is_sparse else None
    accumulator = (kind or fs.ConditionalAccumulator)(fs.float32, [5] if is_sparse else [3])
    for i in range(11):
        with fs.device(f"/job:worker/task:{i}"):
            gradient = fed * 1.0
        with fs.device(None):
            where = (rows[: 1 + i % 3], gradient[: 1 + i % 3]) if is_sparse else (gradient,)
            sources.append(accumulator.apply_grad(*where))
    taken, anew = accumulator.take_grad(70), accumulator.set_global_step(0)
    by_task = [np.float32([10.0**e * (i + 1) for e in (-3, 0, 4)]) for i in range(11)]
    with fs.Session() as sess:
        found = []
        for seed in range(6):
            order = [*range(11), *[3] * 59]
            random.Random(seed).shuffle(order)
            count = 0
            for i in order:
                scale = np.float32(0.1) * count if i == 3 else np.float32(1)
                count += i == 3
                sess.run(sources[i], {fed: by_task[i] * scale})
            found.append([np.asarray(x).tobytes() for x in fs.nest.flatten(sess.run(taken))])
            sess.run(anew)
    assert all(one == found[0] for one in found)


class Model:
    """What is in the accumulators, and what they have dropped."""

    def __init__(self) -> None:
        self.gradients: list[list[tuple[int, float]]] = [[], []]
        self.stamps = [0, 0]
        self.total = 0.0


def program_of(place: Any) -> dict[str, Any]:
    """A dense and a sparse accumulator, what is done with them, and waits for what never comes."""
    step, value = fs.placeholder(fs.int64, []), fs.placeholder(fs.float64, [])
    count = fs.placeholder(fs.int32, [])
    both = []
    for number, cls in enumerate((fs.ConditionalAccumulator, fs.SparseConditionalAccumulator)):
        with place(number):
            both.append(cls(fs.float64, [] if number == 0 else [3, 1], name=f"a{number}"))
    dense, sparse = both
    with place(0):
        never = fs.FIFOQueue(1, [fs.float64], [[]])
    with place(1):
        total = fs.get_variable("total", [], fs.float64, fs.zeros_initializer())
        gradient = value * 1.0
    # The gradient of a loop, added in a branch: rows 1, of value.
    doubled = fs.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 1.0), [0, gradient])[1]
    row = fs.reshape(doubled, [1, 1])
    index = fs.cast(fs.fill([1], 1), fs.int64)
    do = fs.placeholder(fs.bool, [])
    moves: dict[str, Any] = {
        "apply 0": fs.cond(
            do, lambda: fs.group(dense.apply_grad(doubled, step)), lambda: fs.no_op()
        ),
        "apply 1": sparse.apply_grad(index, row, [3, 1], step),
        "take 0": dense.take_grad(count),
        "take 1": sparse.take_grad(count).values[0, 0],
        "stamp 0": dense.set_global_step(step),
        "stamp 1": sparse.set_global_step(step),
    }
    with fs.control_dependencies([moves["take 0"], moves["take 1"]]):
        stuck_both = never.dequeue()
    with fs.control_dependencies([moves["take 0"]]):
        stuck = {"take 0": never.dequeue(), "both": stuck_both}
    added = total.assign_add(dense.take_grad(count))
    sizes = [dense.num_accumulated(), sparse.num_accumulated()]
    return {
        "moves": moves, "stuck": stuck, "added": added, "sizes": sizes, "total": total,
        "feeds": (step, value, count, do), "stuck apply": _stuck_after(never, moves["apply 1"]),
    }  # fmt: skip


def _stuck_after(never: Any, move: Any) -> Any:
    with fs.control_dependencies([move]):
        return never.dequeue()


def check_random_program(sess: fs.Session, p: dict[str, Any], seed: str, count: int) -> None:
    rng, model = random.Random(seed), Model()
    sess.run(p["total"].initializer)
    step, value, needed, do = p["feeds"]
    met = set()
    for i in range(count):
        which = rng.randint(0, 1)
        there, stamp = model.gradients[which], model.stamps[which]
        x, local = float(rng.randint(-99, 99)), stamp + rng.randint(-2, 2)
        feeds = {step: local, value: x, needed: rng.randint(1, 4), do: True}
        way = rng.choice(["apply"] * 5 + ["take"] * 3 + ["stamp", "stuck", "stuck apply", "added"])
        enough = len(there) >= feeds[needed]
        met.add((way, enough, local < stamp))
        if way == "apply":
            feeds[do] = rng.random() < 0.9
            sess.run(p["moves"][f"apply {which}"], feeds, LONG)
            if local >= stamp and (feeds[do] or which):
                there.append((local, x))
        elif way == "stamp":
            sess.run(p["moves"][f"stamp {which}"], feeds, LONG)
            model.stamps[which] = local
        elif way == "stuck apply":
            if not p.get("leaves"):  # a worker's part that has ended leaves what it has applied
                with pytest.raises(DeadlineExceededError):
                    sess.run(p["stuck apply"], feeds, SHORT)
        elif way == "stuck":
            with pytest.raises(DeadlineExceededError):
                sess.run(p["stuck"][rng.choice(["take 0", "both"])], feeds, SHORT)
        elif way == "added":
            if len(model.gradients[0]) >= feeds[needed]:
                mean = sum(x for _, x in model.gradients[0]) / len(model.gradients[0])
                model.total += mean
                assert abs(sess.run(p["added"], feeds, LONG) - model.total) < 1e-9
                model.gradients[0], model.stamps[0] = [], model.stamps[0] + 1
        elif enough:
            found = sess.run(p["moves"][f"take {which}"], feeds, LONG)
            assert abs(found - sum(x for _, x in there) / len(there)) < 1e-9
            model.gradients[which], model.stamps[which] = [], stamp + 1
        else:
            with pytest.raises(DeadlineExceededError):
                sess.run(p["moves"][f"take {which}"], feeds, SHORT)
        assert sess.run(p["sizes"]) == list(map(len, model.gradients)), (i, way)
    assert len(met) > 15


@pytest.mark.parametrize(
    ("mode", "split"), [*[(mode, "never") for mode in MODES], ("compiled", "always")]
)
def test_random_programs_on_two_devices(graph: fs.Graph, mode: str, split: str) -> None:
    program = program_of(lambda i: fs.device(f"/device:CPU:{i}"))
    config = fs.ConfigProto(mode=mode, device_count={"CPU": 2}, split_partitions=split)
    with fs.Session(config=config) as sess:
        check_random_program(sess, program, f"{mode} {split}", 150)


@pytest.mark.parametrize("mode", ["compiled", "tokens"])
def test_random_programs_on_two_workers(graph: fs.Graph, mode: str) -> None:
    with hosts_here(2) as (cluster, _):
        program = program_of(on) | {"leaves": True}
        with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
            check_random_program(sess, program, f"workers {mode}", 80)


def test_clients_share_an_accumulator_and_one_that_ends_loses_nothing(graph: fs.Graph) -> None:
    """Two sessions; one is closed while it waits, and what it would have taken the other gets."""
    with hosts_here(1) as (cluster, hosts), fs.container("all"):
        with on(0):
            accumulator = fs.ConditionalAccumulator(fs.float32, [], shared_name="g")
        apply, take = accumulator.apply_grad(4.0), accumulator.take_grad(2)
        with fs.Session(cluster) as other:
            ending = fs.Session(cluster)
            failed: list[Exception] = []

            def wait() -> None:
                try:
                    ending.run(take)
                except Exception as e:
                    failed.append(e)

            waiting = threading.Thread(target=wait)
            waiting.start()
            state = None
            while state is None or state.waiting != (0, 1):
                state = hosts[0].container("", 0, "all").find("accumulator", "g")
            other.run(apply)
            ending.close()
            waiting.join(10)
            assert failed and state.waiting == (0, 0)
            other.run(apply)
            assert other.run(take, options=LONG) == 4.0


@pytest.mark.parametrize("mode", MODES)
def test_an_accumulator_that_was_lost_with_its_worker_says_so(graph: fs.Graph, mode: str) -> None:
    with hosts_here(2) as (cluster, hosts):
        with on(1):
            accumulator = fs.ConditionalAccumulator(fs.float32, [], name="acc")
        with fs.device("/job:client/task:0"):
            weight = fs.Variable(1.0)
        apply, init = accumulator.apply_grad(weight), fs.global_variables_initializer()
        with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
            sess.run(init)
            sess.run(apply)
            restart(cluster, hosts, 1)
            for fetch in (apply, accumulator.take_grad(1), accumulator.num_accumulated()):
                with pytest.raises(FailedPreconditionError, match='accumulator "acc" was lost'):
                    sess.run(fetch)
            sess.run(init)
            assert sess.run(accumulator.num_accumulated()) == 0


def test_views_are_told_the_count_what_is_needed_the_stamp_and_the_dropped(graph: fs.Graph) -> None:
    accumulator = fs.ConditionalAccumulator(fs.float32, [])
    apply, take = accumulator.apply_grad(1.0), accumulator.take_grad(3)
    anew = accumulator.set_global_step(5)
    with fs.Session() as sess:
        sess.run(apply)
        sess.run(anew)
        sess.run(apply)
        waits = fs.RunOptions(timeout_in_ms=1000)  # so long that it waits by then
        with pytest.raises(DeadlineExceededError, match="1 of 3 gradients, time stamp 5"):
            sess.run(take, options=waits)
        (told,) = queue_states(sess, None)
        assert (told.size, told.capacity, told.stamp, told.dropped) == (1, 3, 5, 1)
        assert told.op == accumulator.accumulator_ref.op.id
