"""Partitions that wait for queues, and for each other, go on as one device does."""

import pytest
from cluster_hosts import hosts_here

import flowscope as fs
from flowscope.plan.executables import region_formation
from flowscope.plan.ir.memories import host_of
from flowscope.plan.partition.compiled_partitions import reconcile_back_ends
from flowscope.plan.partition.partitions import Partition
from flowscope.plan.partition.wait_order import unit_circle, waits_in_circle
from flowscope.plan.verify import verify_waits

#: Longer than any of these programs takes, and no longer than a test may hang.
DEADLINE_MS = 20_000
MODES = ("compiled", "op", "tokens")


def home_far_home(places):
    """A way there and back, twice; the second time into a branch."""
    home, far = places
    p = fs.placeholder(bool, [])
    with fs.device(home):
        queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]])
        mean = fs.get_variable("mean", [], initializer=fs.ones_initializer())
        x = queue.dequeue()
    with fs.device(far):
        h = fs.exp(x)
    with fs.device(home):
        v = fs.square(h)
    with fs.device(far):
        v = fs.sin(v)
    with fs.device(home):
        y = fs.cond(p, lambda: v * 1.0, lambda: mean.read_value()) + h
    return [y], [queue.enqueue(1.0)], {p: True}


def answer_before_question(places):
    """What is dequeued is enqueued by the same step: after a value that is sent behind it."""
    home, far = places
    given = fs.placeholder(fs.float32, [])
    with fs.device(home):
        queue = fs.FIFOQueue(5, [fs.float32], shapes=[[]])
        x = queue.dequeue()
        y = fs.square(given)
    with fs.device(far):
        shown = fs.exp(x)
        answer = fs.sin(y)
    with fs.device(home):
        return [shown + 1.0, queue.enqueue(answer)], [], {given: 2.0}


def inner_loops_ahead(places, window=1, size=1):
    """The sender's inner loops start side by side, the receiver's run one after the other."""
    home, far = places
    with fs.device(far):
        queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]])
        start = queue.dequeue()

    def inner(k):
        def body(j, x):
            with fs.device(home):
                j = j + 1
                t = fs.exp(fs.cast(j, fs.float32) - k + fs.zeros([size]))
            with fs.device(far):
                return j, x + fs.reduce_max(t) * 0.5

        return body

    def outer(i, x):
        with fs.device(home):
            i = i + 1
            k, j = fs.cast(i, fs.float32), i * 0
        with fs.device(far):
            x = x * 2.0
        loop = fs.while_loop(
            lambda j, x: j < 2 * window + 1, inner(k), [j, x], parallel_iterations=window
        )
        return i, loop[1]

    with fs.device(home):
        number = fs.placeholder(fs.int32, [])
        found = fs.while_loop(lambda i, x: i < 4, outer, [number, start])
    return [found[1]], [queue.enqueue(1.0)], {number: 0}


def group_around_a_queue(places):
    """A write of an update waits for an element that another write of it lets come."""
    home, far = places
    with fs.device(home):
        v, w = (fs.get_variable(n, [], initializer=fs.ones_initializer()) for n in "vw")
        queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]])
        first = v.assign_add(1.0)
    with fs.device(far):
        enqueue = queue.enqueue(fs.exp(first))
    with fs.device(home), fs.control_dependencies([enqueue]):
        x = queue.dequeue()
        second = w.assign(x)
    with fs.control_dependencies([fs.group(first.op, second.op)]):
        return [fs.identity(v), fs.identity(w)], [], {}


def variables_in_turns(places):
    """Variables of an inner loop that only take each other's values; one starts with a feed."""
    home, far = places
    given = fs.placeholder(fs.float32, [])
    with fs.device(far):
        queue = fs.FIFOQueue(9, [fs.float32], shapes=[[]])

    def inner(j, a, b):
        return [j + 1, b, a]

    def outer(i, x, y):
        with fs.device(far), fs.control_dependencies([x]):
            x = queue.dequeue()
        with fs.device(home):
            other = fs.exp(fs.cast(i, fs.float32))
        with fs.device(far):
            start = [fs.constant(0), given, other]
            found = fs.while_loop(lambda j, a, b: fs.logical_and(j < 1, a < 9.0), inner, start)
        return [i + 1, x, found[2]]

    with fs.device(home):
        start = [fs.constant(0), given, given]
        found = fs.while_loop(lambda i, *_: i < 3, outer, start)
    with fs.device(far):
        return [fs.abs(found[2])], [queue.enqueue_many([[1.0, 2.0, 3.0]])], {given: 0.25}


PROGRAMS = [
    home_far_home,
    answer_before_question,
    inner_loops_ahead,
    lambda places: inner_loops_ahead(places, 10, 5000),
    group_around_a_queue,
    variables_in_turns,
]
IDS = ["home-far-home", "answer-first", "inner-loops", "inner-loops-of-arrays", "group", "in-turns"]


def run(build, places, mode, target="", **config):
    """The fetched values of two steps of a program."""
    with fs.Graph().as_default():
        fetches, before, feeds = build(places)
        options = fs.ConfigProto(mode=mode, operation_timeout_in_ms=DEADLINE_MS, **config)
        with fs.Session(target, config=options) as sess:
            sess.run(fs.global_variables_initializer())
            found = []
            for _ in range(2):
                sess.run(before)
                found.append(sess.run(fetches, feeds))
            return found


@pytest.mark.parametrize("build", PROGRAMS, ids=IDS)
@pytest.mark.parametrize("mode", MODES)
def test_devices_of_a_process_wait_as_one_device_does(build, mode):
    places = ["/cpu:0", "/cpu:1"]
    want = run(build, ["/cpu:0", "/cpu:0"], mode)
    assert run(build, places, mode, device_count={"CPU": 2}) == want
    assert run(build, places, mode, device_count={"CPU": 2}, split_partitions="always") == want


@pytest.mark.parametrize("build", PROGRAMS, ids=IDS)
@pytest.mark.parametrize("mode", MODES)
def test_workers_wait_as_one_device_does(build, mode):
    want = run(build, ["/cpu:0", "/cpu:0"], mode)
    with hosts_here(2) as (cluster, _):
        tasks = ["/job:worker/task:0", "/job:worker/task:1"]
        assert run(build, tasks, mode, cluster) == want
        assert run(build, ["/job:client", tasks[1]], mode, cluster) == want


def partitions_of(build):
    """Returns the partitions of a program on two devices that run apart."""
    with fs.Graph().as_default():
        fetches, _, feeds = build(["/cpu:0", "/cpu:1"])
        options = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
        with fs.Session(config=options) as sess:
            return sess.plan(fetches, list(feeds)).partitions


def there_and_back(places):
    x = fs.placeholder(fs.float32, [])
    with fs.device(places[1]):
        y = fs.exp(x)
    with fs.device(places[0]):
        z = fs.square(y)
    with fs.device(places[1]):
        return [fs.sin(z)], [], {x: 1.0}


def test_partitions_that_would_wait_in_a_circle_do_not_wait_in_place():
    parts = partitions_of(there_and_back)
    assert not waits_in_circle([p.program for p in parts])
    assert {p.back_end for p in reconcile_back_ends(parts)} == {"python"}
    first, *others = parts
    turned = Partition(
        first.device, with_turned_nodes(first.program), first.back_end, first.fetched
    )
    found = reconcile_back_ends([turned, *others])
    assert waits_in_circle([p.program for p in found])
    assert {p.back_end for p in found} == {"regions"}


def with_turned_nodes(program):
    """Returns a program that sends after all that it receives."""
    nodes = sorted(program.nodes, key=lambda n: n.op.type == "Send")
    nodes.sort(key=lambda n: n.op.type != "Recv")
    return type(program)(tuple(nodes), program.feeds, program.fetches, program.targets)


def test_a_partition_of_another_process_is_not_waited_for():
    for part in partitions_of(there_and_back):
        assert not waits_in_circle([part.program])


def test_the_verifier_finds_regions_that_wait_for_each_other(monkeypatch):
    parts = reconcile_back_ends(partitions_of(home_far_home))
    assert {p.back_end for p in parts} == {"regions"}
    assert not unit_circle([p.program for p in parts], True)
    verify_waits(parts)
    with monkeypatch.context() as patch:
        alone = region_formation.stands_alone
        patch.setattr(region_formation, "stands_alone", lambda n: alone(n) and not is_recv(n))
        with pytest.raises(fs.errors.InternalError, match="in a circle"):
            verify_waits(parts)


def is_recv(node):
    return node.op.type == "Recv"


def test_sites_of_processes_wait_in_order_too():
    with fs.Graph().as_default():
        fetches, _, feeds = home_far_home(["/cpu:0", "/cpu:1"])
        with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
            verify_waits(reconcile_back_ends(sess.plan(fetches, list(feeds)).cut(host_of)))
