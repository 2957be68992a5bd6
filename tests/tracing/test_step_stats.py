"""`RunMetadata` of traced steps: when operations could begin, what memory they take and free."""

import json
import tracemalloc

import numpy as np
import pytest
from cluster_hosts import hosts_here, on

import flowscope as fs
from flowscope.tracing import Timeline
from flowscope.tracing.allocations import allocations
from flowscope.tracing.decoding import Lanes, decoded
from flowscope.tracing.memory import memory_of
from flowscope.tracing.nodes import PlanNodes

pytestmark = pytest.mark.usefixtures("graph")

MODES = ["compiled", "op", "tokens"]
PLACES = {
    "one CPU": ({}, ("/cpu:0", "/cpu:0")),
    "two GPUs": ({"fake_devices": {"GPU": 2}}, ("/gpu:0", "/gpu:1")),
}


def random_program(x, seed, places=("", "")):
    """Returns the results of a random program of element-wise operations."""
    rng = np.random.default_rng(seed)
    known = [x]
    for _ in range(14):
        a, b = (known[i] for i in rng.integers(0, len(known), 2))
        unary = [fs.sin, fs.exp, fs.tanh, fs.sigmoid]
        with fs.device(places[int(rng.integers(2))] or None):
            if rng.integers(2):
                known.append(fs.add(a, b) * 0.25)
            else:
                known.append(unary[int(rng.integers(4))](a))
    return [known[-1], fs.reduce_sum(known[-2])]


def flow(x):
    """Returns a loop that keeps values, its gradient, and a branch."""
    y = fs.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, fs.tanh(v * x) + x), [0, x])[1]
    z = fs.cond(fs.reduce_sum(x) > 0, lambda: fs.exp(fs.sin(y)), lambda: y * 2.0)
    return [fs.reduce_sum(z), *fs.gradients(fs.reduce_sum(y), [x])]


def run(fetches, feed, mode="op", **config):
    """Runs a traced step; returns what its metadata tells, and the session's graph."""
    metadata = fs.RunMetadata()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
    with fs.Session(config=fs.ConfigProto(mode=mode, **config)) as sess:
        sess.run(fetches, feed, options=options, run_metadata=metadata)
    return metadata.step_stats


def stats_of(step_stats):
    return [s for d in step_stats.dev_stats for s in d.node_stats]


def records_of(stats):
    return [r for s in stats for m in s.memory for r in m.allocation_records]


def check_times(step_stats):
    stats = stats_of(step_stats)
    begin = min(s.scheduled_nanos for s in stats)
    for one in stats:
        assert begin <= one.scheduled_nanos <= one.all_start_nanos
        assert one.scheduled_micros <= one.all_start_micros
        assert 0 <= one.op_start_rel_micros <= one.op_end_rel_micros <= one.all_end_rel_micros
        assert 0 <= one.op_end_rel_nanos <= one.all_end_rel_nanos
    return stats


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("places", PLACES)
def test_operations_are_scheduled_when_the_last_that_they_wait_for_has_ended(mode, places):
    x = fs.placeholder(fs.float32, [8], name="x")
    config, devices = PLACES[places]
    step_stats = run(random_program(x, 1, devices), {x: np.ones(8)}, mode, **config)
    stats = {s.node_name: s for s in check_times(step_stats)}
    assert len(step_stats.dev_stats) >= len(set(devices))
    origin = min(s.scheduled_nanos for s in stats.values())
    waited = 0
    for node in step_stats.trace.plan.program.walk():
        if node.name not in stats:
            continue
        before = [v.node for v in node.inputs if v.node is not None] + list(node.control)
        inputs = [stats[n.name] for n in before if n.name in stats]
        ends = [s.all_start_nanos + s.all_end_rel_nanos for s in inputs]
        one = stats[node.name]
        assert one.scheduled_nanos == min(max([origin, *ends]), one.all_start_nanos)
        waited += one.scheduled_nanos > origin
    assert waited > 5


@pytest.mark.parametrize("mode", MODES)
def test_loops_and_branches_are_scheduled_before_they_start(mode):
    x = fs.placeholder(fs.float32, [8], name="x")
    stats = check_times(run(flow(x), {x: np.ones(8)}, mode))
    tanh = [s.scheduled_nanos for s in stats if s.timeline_label.find("= Tanh(") >= 0]
    assert len(tanh) == 4 and tanh == sorted(set(tanh))


def test_a_node_waits_for_its_control_inputs():
    x = fs.placeholder(fs.float32, [8], name="x")
    first = fs.exp(x, name="first")
    with fs.control_dependencies([first]):
        second = fs.sin(x, name="second")
    stats = {s.node_name: s for s in stats_of(run([first, second], {x: np.ones(8)}))}
    end = stats["first"].all_start_nanos + stats["first"].all_end_rel_nanos
    assert stats["second"].scheduled_nanos == end


@pytest.mark.parametrize("seed", range(6))
def test_values_are_freed_behind_the_last_that_reads_them(seed):
    x = fs.placeholder(fs.float32, [None, 16], name="x")
    fetches = random_program(x, seed)
    found = run(fetches, {x: np.ones((32, 16))}, "op")
    stats = {s.node_name: s for s in stats_of(found) if s.all_end_rel_nanos}
    fetched = {t.op.name for t in fetches}

    def end_us(name):
        return (stats[name].all_start_nanos + stats[name].all_end_rel_nanos) // 1000

    for name, one in stats.items():
        op = x.graph.get_operation_by_name(name)
        nbytes = 4 if op.type == "Sum" else 32 * 16 * 4
        told = [(r.alloc_micros, r.alloc_bytes) for r in records_of([one])]
        readers = [c.name for c in op.outputs[0].consumers() if c.name in stats]
        freed = [] if name in fetched else [(max(map(end_us, readers or [name])), -nbytes)]
        assert told == [(end_us(name), nbytes), *freed]


def matrices(x):
    a = fs.exp(x)
    b = fs.sin(a)
    c = fs.matmul(b, fs.transpose(a))
    return [fs.reduce_sum(fs.tanh(fs.matmul(c, b)))]


def arrays_nbytes():
    """Returns the bytes of all arrays that were made since tracing of memory began."""
    of_arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    return sum(t.size for t in tracemalloc.take_snapshot().filter_traces([of_arrays]).traces)


@pytest.mark.memory
@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("program", [matrices, lambda x: random_program(x, 4)])
def test_the_sum_is_what_arrays_take_before_each_operation(program, mode):
    x = fs.placeholder(fs.float32, [None, 128], name="x")
    fetches = program(x)
    feed = {x: np.full((128, 128), 0.5, "f")}
    metadata = fs.RunMetadata()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fetches, feed, options=options, run_metadata=metadata)
        seen = {}
        for kind in {op.type for op in sess.graph.get_operations()}:
            sess.debug.break_before(op_type=kind)
        sess.debug.on_stop(lambda stop: seen.setdefault(stop.op.name, arrays_nbytes()))
        tracemalloc.start()
        try:
            sess.run(fetches, feed)
        finally:
            tracemalloc.stop()
    stats = [s for s in stats_of(metadata.step_stats) if s.all_end_rel_nanos]
    records = records_of(stats)
    compared = []
    for one in stats:
        if one.node_name in seen:
            start_us = one.all_start_nanos // 1000
            told = sum(r.alloc_bytes for r in records if r.alloc_micros <= start_us)
            assert told == pytest.approx(seen[one.node_name], abs=200)  # and a few numbers
            compared.append(told)
    assert len(compared) > 5 and max(compared) >= 2 * 128 * 128 * 4


@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("program", [lambda x: random_program(x, 3), flow])
def test_the_records_add_up_to_the_curve(program, mode):
    x = fs.placeholder(fs.float32, [None, 16], name="x")
    step_stats = run(program(x), {x: np.ones((8, 16))}, mode)
    trace = step_stats.trace
    nodes = PlanNodes(trace.plan.program)
    found = decoded(trace, nodes, Lanes())
    records = [r for rows in allocations(trace, found, nodes).values() for r in rows]
    known = fs.plan.analysis.lifetimes.lifetimes(
        trace.plan.program, trace.shapes, trace.rows is not None
    )
    curve = memory_of(known, found, nodes, trace.begin)
    assert curve.nbytes.max() > 8 * 16 * 4
    latest = dict(zip(curve.time.tolist(), curve.nbytes.tolist(), strict=True))
    for time, nbytes in latest.items():
        assert sum(r.nbytes for r in records if r.time <= time) == nbytes
    told = [r.alloc_bytes for r in records_of(stats_of(step_stats))]
    assert sorted(r.nbytes for r in records) == sorted(told)


SPLITS = [{}, {"device_count": {"CPU": 2}, "split_partitions": "always"}]


def check_given_back(step_stats, fetched):
    """All that was taken is given back but what is fetched, and nothing before it was taken."""
    records = records_of(stats_of(step_stats))
    assert sum(r.alloc_bytes for r in records) == sum(v.nbytes for v in fetched)
    alive = 0
    for record in sorted(records, key=lambda r: (r.alloc_micros, -r.alloc_bytes)):
        alive += record.alloc_bytes
        assert alive >= 0
    assert sum(r.alloc_bytes < 0 for r in records) > 5


@pytest.mark.parametrize("split", SPLITS, ids=["together", "apart"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", [lambda x: random_program(x, 5, ("/cpu:0", "/cpu:1")), flow])
def test_all_but_what_is_fetched_is_given_back(program, mode, split):
    config = split or {"device_count": {"CPU": 2}, "split_partitions": "never"}
    x = fs.placeholder(fs.float32, [None, 16], name="x")
    fetches = program(x)
    feed = {x: np.ones((8, 16), "f")}
    with fs.Session(config=fs.ConfigProto(mode=mode, **config)) as sess:
        fetched = sess.run(fetches, feed)
    check_given_back(run(fetches, feed, mode, **config), fetched)


def test_steps_over_workers_tell_of_memory_too(graph):
    x = fs.placeholder(fs.float32, [None, 16], name="x")
    with on(0):
        a = fs.exp(x, name="a")
        y = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fs.tanh(v + a)), [0, a])[1]
    with on(1):
        out = fs.reduce_sum(fs.sin(fs.exp(y)), name="out")
    metadata = fs.RunMetadata()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
    with hosts_here(2) as (cluster, _), fs.Session(cluster) as sess:
        value = sess.run(out, {x: np.ones((8, 16), "f")}, options=options, run_metadata=metadata)
    check_given_back(metadata.step_stats, [value])
    devices = {d.device for d in metadata.step_stats.dev_stats if records_of(d.node_stats)}
    assert {device.partition("task:")[2][:1] for device in devices} == {"0", "1"}


@pytest.mark.parametrize("mode", MODES)
def test_who_writes_variables_tells_of_their_memory(mode):
    v = fs.Variable(np.ones((4, 8), "f"), name="v")
    metadata = fs.RunMetadata()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(v.initializer)
        sess.run(fs.assign_add(v, v * 2.0, name="w"), options=options, run_metadata=metadata)
    told = {s.node_name: s.memory_stats for s in stats_of(metadata.step_stats)}
    assert told["w"].persistent_memory_size == 4 * 8 * 4
    assert sum(m.persistent_memory_size for m in told.values()) == 4 * 8 * 4
    assert told["w"].temp_memory_size == 0


@pytest.mark.parametrize("mode", MODES)
def test_what_has_no_known_size_has_no_records(mode):
    x = fs.placeholder(fs.float32, [None], name="x")
    some = fs.boolean_mask(x, x > 1.0)
    stats = stats_of(run(fs.exp(some, name="e"), {x: np.arange(8)}, mode))
    (one,) = [s for s in stats if s.node_name == "e"]
    assert not records_of([one]) and records_of(stats)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("places", PLACES)
def test_timelines_show_what_is_taken_and_freed(mode, places):
    x = fs.placeholder(fs.float32, [8], name="x")
    config, devices = PLACES[places]
    step_stats = run(random_program(x, 2, devices), {x: np.ones(8)}, mode, **config)
    events = json.loads(Timeline(step_stats).generate_chrome_trace_format(show_memory=True))
    events = events["traceEvents"]
    made = {(e["pid"], e["id"]): e for e in events if e["ph"] == "N"}
    died = {(e["pid"], e["id"]): e for e in events if e["ph"] == "D"}
    assert len(made) > len(died) > 5 and died.keys() <= made.keys()
    assert all(made[key]["ts"] <= e["ts"] for key, e in died.items())
    counters = {}
    for e in events:
        if e["ph"] == "C":
            counters[e["pid"]] = e["args"]["numpy"]
    assert sum(counters.values()) == sum(r.alloc_bytes for r in records_of(stats_of(step_stats)))
    assert sum(counters.values()) == 8 * 4 + 4
    plain = json.loads(Timeline(step_stats).generate_chrome_trace_format())["traceEvents"]
    assert not {"N", "D", "C"} & {e["ph"] for e in plain}
