"""Update groups of steps that run one operation at a time are whole on all workers, or put back."""

import threading
from contextlib import contextmanager

import pytest
from cluster_hosts import hosts_here, on, worker
from frozen_hosts import frozen

import flowscope as fs
from flowscope.errors import InvalidArgumentError, OpError
from flowscope.plan.analysis.updates import unsafe_positions

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def ends():
    with hosts_here(3) as found:
        yield found


class Group:
    """A variable on each of three workers, and one here; a step that counts all up as a group."""

    def __init__(self):
        self.variables = []
        for i in range(3):
            with on(i):
                self.variables.append(fs.Variable([0.0], name=f"v{i}"))
        with fs.device("/job:client/task:0"):
            self.here = fs.Variable([0.0], name="here")
        self.fed = fs.placeholder(fs.float32, [None])
        added = fs.square(self.fed)
        self.update = fs.group(*[v.assign_add(added) for v in [*self.variables, self.here]])
        self.init = fs.global_variables_initializer()

    def run(self, sess):
        sess.run(self.update, {self.fed: [1.0]})

    def values(self, sess, which=(0, 1, 2)):
        """The values of some workers' variables, and of the one here, read by a plain step."""
        found = sess.run([self.variables[i] for i in which] + [self.here])
        return [float(v[0]) for v in found]


def stepped(sess):
    """Has the session's steps that square run one operation at a time, and hold nowhere."""
    sess.debug.break_before(op_type="Square", when=lambda x: False)


class Run(threading.Thread):
    """A run whose error is kept."""

    def __init__(self, sess, fetches, feeds=None):
        super().__init__(daemon=True)
        self.sess, self.fetches, self.feeds, self.error = sess, fetches, feeds, None

    def run(self):
        try:
            self.sess.run(self.fetches, self.feeds)
        except OpError as e:
            self.error = e


def test_a_worker_that_stands_still_at_any_message_leaves_stepped_groups_whole(ends):
    cluster, hosts = ends
    model = Group()
    with fs.Session(cluster) as sess:
        sess.run(model.init)
        stepped(sess)
        model.run(sess)
        model.values(sess)
        with frozen(hosts[1]) as counter:
            model.run(sess)
        assert counter.count > 4
        ended = set()
        for at in range(counter.count + 2):
            model.run(sess)
            before = model.values(sess)[0]
            with frozen(hosts[1], at) as freezer:
                run = Run(sess, model.update, {model.fed: [1.0]})
                run.start()
                while run.is_alive() and not freezer.is_frozen.wait(0.01):
                    pass
                if run.is_alive():
                    cluster.lost(worker(1), 1, ConnectionError("it stands still"))
                run.join(10)
                assert not run.is_alive()
                others = model.values(sess, (0, 2))
                assert len(set(others)) == 1 and others[0] in (before, before + 1)
                assert run.error is not None or others[0] == before + 1
                freezer.thaw()
                ended.add(others[0] - before)
                assert model.values(sess) == [others[0]] * 4, at
                assert not any(h.steps.doubts._steps for h in hosts)
        assert ended == {0.0, 1.0}


@pytest.fixture
def named(graph):
    """What lies in a named container, here too, is dropped in the end."""
    yield
    fs.Session.reset("", ["stepped"])


@contextmanager
def in_a_group(model, sess, hosts):
    """A run that stands in its group: the last worker stands still, the first is kept."""
    stepped(sess)
    with frozen(hosts[2]) as counter:
        model.run(sess)
    states = [h.containers["stepped"].variables()[f"v{i}"] for i, h in enumerate(hosts)]
    for at in range(counter.count):
        before = float(states[2].value[0])
        with frozen(hosts[2], at) as freezer:
            run = Run(sess, model.update, {model.fed: [1.0]})
            run.start()
            assert freezer.is_frozen.wait(10)
            if states[0].undo_log is not None and states[2].value[0] == before:  # it cannot end
                yield run, freezer, states
                return
            freezer.thaw()
            run.join(10)
    raise AssertionError("no message was one of a group")


def test_a_client_that_is_lost_in_a_stepped_group_leaves_it_in_doubt(ends, named):
    cluster, hosts = ends
    with fs.container("stepped"):
        model = Group()
    with fs.Session(cluster) as sess, fs.Session(cluster) as other:
        sess.run(model.init)
        with in_a_group(model, sess, hosts) as (run, freezer, states):
            before = float(other.run(model.here)[0])
            for host in hosts[:2]:
                host.steps.client_lost(cluster.endpoint.name)
            assert states[0].doubt is not None and states[0].value is None
            cluster.lost(worker(2), 1, ConnectionError("it stands still"))
            run.join(10)
            assert isinstance(run.error, OpError)
            freezer.thaw()
        # The client is there again, and says that the step has failed.
        values = model.values(sess)
        assert values[:3] == [values[0]] * 3 and values[3] == before
        assert all(state.doubt is None for state in states)


def test_a_stepped_group_keeps_other_sessions_from_writing_until_it_ends(ends, named):
    cluster, hosts = ends
    with fs.container("stepped"):
        model = Group()
    more = [v.assign_add([10.0]) for v in model.variables]
    with fs.Session(cluster) as sess, fs.Session(cluster) as other:
        sess.run(model.init)
        other.run(more)
        with in_a_group(model, sess, hosts) as (run, freezer, _):
            before = float(hosts[1].containers["stepped"].variables()["v1"].value[0])
            late = Run(other, more[0])
            late.start()
            late.join(0.2)
            assert late.is_alive()
            freezer.thaw()
            run.join(10)
            late.join(10)
        assert run.error is None and late.error is None
        first, *rest = model.values(sess)[:3]
        assert rest[0] == rest[1] in (before, before + 1) and first == rest[0] + 10


def test_steps_that_fail_in_a_stepped_group_put_it_back_everywhere(ends):
    cluster, hosts = ends
    model = Group()
    fed = fs.placeholder(fs.float32, [None])
    failing = fs.group(*[v.assign_add(fs.square(fed)) for v in model.variables])
    with fs.Session(cluster) as sess:
        sess.run(model.init)
        stepped(sess)
        for _ in range(3):
            with pytest.raises(InvalidArgumentError):
                sess.run(failing, {fed: [1.0, 2.0]})
            assert model.values(sess) == [0.0] * 4
        sess.run(failing, {fed: [1.0]})
        assert model.values(sess) == [1.0, 1.0, 1.0, 0.0]
        assert not any(h.steps.doubts._steps for h in hosts)


def test_no_step_is_held_or_stopped_between_the_ends_of_a_group(ends):
    model = Group()
    with fs.Session(ends[0]) as sess:
        nodes = sess.plan(model.update, [model.fed]).program.nodes
    writes = [i for i, n in enumerate(nodes) if n.op.type == "AssignAddVariableOp"]
    last = max(i for i, n in enumerate(nodes) if n.op.type == "EndUpdate")
    assert sum(n.op.type == "EndUpdate" for n in nodes) == 4
    between = set(range(writes[0] + 1, last + 1))
    assert between - unsafe_positions(nodes) <= {writes[-1] + 1}
