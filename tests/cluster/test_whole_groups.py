"""Update groups of several workers are whole wherever a worker stands still, is cut off or dies."""

import threading

import pytest
from cluster_hosts import hosts_here, on, worker
from frozen_hosts import frozen

import flowscope as fs
from flowscope.errors import OpError

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture(scope="module")
def ends():
    with hosts_here(3) as found:
        yield found


def group(count=3):
    """A variable on each of some workers, and a step that counts all up."""
    made = []
    for i in range(count):
        with on(i):
            made.append(fs.Variable([0.0], name=f"v{i}"))
    return made, fs.group(*[v.assign_add([1.0]) for v in made])


def values_of(sess, variables):
    return [float(v[0]) for v in sess.run(variables)]


class Run(threading.Thread):
    """A run whose error is kept."""

    def __init__(self, sess, fetches):
        super().__init__(daemon=True)
        self.sess, self.fetches, self.error = sess, fetches, None

    def run(self):
        try:
            self.sess.run(*self.fetches)
        except OpError as e:
            self.error = e


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_that_stands_still_at_any_message_leaves_groups_whole(ends, mode):
    cluster, hosts = ends
    variables, update = group()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(update)
        values_of(sess, variables)
        with frozen(hosts[1]) as counter:
            sess.run(update)
        ended = set()
        for at in range(counter.count + 3):
            sess.run(update)
            values_of(sess, variables)
            with frozen(hosts[1], at) as freezer:
                before = values_of(sess, variables[:1])[0]
                run = Run(sess, (update,))
                run.start()
                while run.is_alive() and not freezer.is_frozen.wait(0.01):
                    pass
                if run.is_alive():
                    cluster.lost(worker(1), 1, ConnectionError("it stands still"))
                run.join(10)
                assert not run.is_alive()
                others = values_of(sess, [variables[0], variables[2]])
                assert others[0] == others[1] in (before, before + 1)
                assert run.error is not None or others[0] == before + 1
                freezer.thaw()
                ended.add(others[0] - before)
                assert values_of(sess, variables) == [others[0]] * 3, at
        assert ended == {0.0, 1.0}


def loops(count=3):
    """Variables on workers, and a step that writes two groups of them in each iteration."""
    made = []
    for i in range(count):
        with on(i):
            made.append(fs.Variable([0.0], name=f"v{i}"))
    trips = fs.placeholder(fs.int32, [])

    def body(i):
        with fs.control_dependencies([fs.group(*[v.assign_add([1.0]) for v in made])]):
            second = fs.identity(i)
        with fs.control_dependencies([second]):
            last = fs.group(*[v.assign_add([1.0]) for v in made[1:]])
        with fs.control_dependencies([last]):
            return i + 1

    loop = fs.while_loop(lambda i: i < trips, body, [fs.constant(0)], parallel_iterations=4)
    return made, loop, trips


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("victim", [0, 2])
def test_a_worker_that_stands_still_in_a_loop_leaves_groups_whole(ends, mode, victim):
    cluster, hosts = ends
    variables, loop, trips = loops()
    others = [v for i, v in enumerate(variables) if i != victim]
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(loop, {trips: 4})
        values_of(sess, variables)
        with frozen(hosts[victim]) as counter:
            sess.run(loop, {trips: 4})
        for at in range(0, counter.count, max(1, counter.count // 12)):
            sess.run(fs.global_variables_initializer())
            sess.run(loop, {trips: 1})
            values_of(sess, variables)
            with frozen(hosts[victim], at) as freezer:
                run = Run(sess, (loop, {trips: 4}))
                run.start()
                while run.is_alive() and not freezer.is_frozen.wait(0.01):
                    pass
                if run.is_alive():
                    cluster.lost(worker(victim), 1, ConnectionError("it stands still"))
                run.join(10)
                assert not run.is_alive()
                seen = values_of(sess, others)
                freezer.thaw()
                one, two, three = values_of(sess, variables)
                assert [x for i, x in enumerate((one, two, three)) if i != victim] == seen
                assert two == three and two in (2 * one, 2 * one - 1), (at, one, two, three)
