"""What a worker had that was started again - queues, locks, variables - is refused as lost."""

from __future__ import annotations

import os
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, restart, worker
from local_clusters import wait_until

import flowscope as fs
from flowscope.errors import FailedPreconditionError, OpError, UnavailableError

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture
def ends():
    with hosts_here(2) as found:
        yield found


class Queued:
    """A queue on worker 1, and all that is done with it; a variable here and one there."""

    def __init__(self, shared_name=None):
        with on(1):
            self.queue = fs.FIFOQueue(10, [fs.float32], [[]], shared_name=shared_name, name="q")
            self.there = fs.Variable(1.0, name="there")
        with fs.device("/job:client/task:0"):
            self.here = fs.Variable(2.0, name="here")
        self.fed = fs.placeholder(fs.float32, [])
        self.put = self.queue.enqueue([self.fed])
        self.took = self.queue.dequeue()
        self.size = self.queue.size()
        self.closed = self.queue.is_closed()
        self.close = self.queue.close()
        self.branch = fs.cond(self.fed > 0, self.queue.dequeue, lambda: fs.constant(-1.0))
        self.loop = fs.while_loop(
            lambda i, _: i < 2, lambda i, s: (i + 1, s + self.queue.dequeue()), [0, 0.0]
        )[1]
        self.init = fs.global_variables_initializer()
        self.saver = fs.train.Saver()

    def run(self, sess, what):
        needs = what in ("put", "branch")
        return sess.run(getattr(self, what), {self.fed: 5.0} if needs else {})

    def fill(self, sess, *values):
        for value in values:
            sess.run(self.put, {self.fed: value})


def refused(sess, fetch, feeds=None, name="q"):
    with pytest.raises(FailedPreconditionError, match="lost with") as found:
        sess.run(fetch, feeds)
    message = found.value.message
    for part in (f'queue "{name}"', worker(1), "Saver.restore", "new session", "initializer"):
        assert part in message
    return message


USES = ["put", "took", "size", "closed", "close", "branch", "loop"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", USES)
def test_every_use_of_a_lost_queue_is_refused_until_the_session_begins_anew(ends, mode, what):
    cluster, hosts = ends
    model = Queued()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(model.init)
        model.fill(sess, 1.0, 2.0, 3.0)
        restart(cluster, hosts, 1)
        for _ in range(2):  # a refusal makes nothing
            with pytest.raises(FailedPreconditionError, match="lost with"):
                model.run(sess, what)
        refused(sess, model.size)
        sess.run(model.init)
        assert sess.run(model.size) == 0
        model.fill(sess, 7.0, 8.0, 9.0)
        model.run(sess, what)
        assert sess.run(model.here) == 2.0


@pytest.mark.parametrize("mode", MODES)
def test_lost_tables_are_refused_until_they_are_filled_or_restored(ends, mode, tmp_path):
    """Two workers have a table each; what fills one of them anew needs nothing of the other."""
    cluster, hosts = ends
    lookup = fs.contrib.lookup
    tables, puts = [], []
    for task in (0, 1):
        with on(task):
            tables.append(lookup.MutableHashTable(fs.string, fs.int64, -1, name=f"t{task}"))
            puts.append(tables[-1].insert(["a", "b"], [10 * task, 10 * task + 1]))
    with on(1):
        words = lookup.index_table_from_tensor(["a", "b"])
        area = fs.contrib.staging.StagingArea([fs.float32], shared_name="area")
        staged, in_area = area.put([1.0]), area.size()
    weight = fs.Variable(1.0)
    found = [t.lookup(fs.constant(["b", "c"])) for t in tables]
    ids, init = words.lookup(fs.constant("b")), fs.tables_initializer()
    everything = [*found, ids]
    saver = fs.train.Saver()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run([init, fs.global_variables_initializer(), *puts, staged])
        path = saver.save(sess, tmp_path / "model")
        before = [np.asarray(x).tolist() for x in sess.run(everything)]
        assert before == [[1, -1], [11, -1], 1]
        restart(cluster, hosts, 1)
        for fetch in (*everything[1:], puts[1], tables[1].size(), tables[1].export()):
            with pytest.raises(FailedPreconditionError, match=r"table .*lost with.*tables_init"):
                sess.run(fetch)
        assert sess.run(found[0]).tolist() == [1, -1]
        with pytest.raises(FailedPreconditionError, match='staging area "area" was lost with'):
            sess.run(in_area)
        sess.run(init)
        assert sess.run(ids) == 1
        with pytest.raises(FailedPreconditionError, match='table "t1" was lost'):
            sess.run(found[1])
        saver.restore(sess, path)
        assert [np.asarray(x).tolist() for x in sess.run(everything)] == before
        assert sess.run(in_area) == 0
        assert sess.run(weight) == 1.0


@pytest.mark.parametrize("how", ["restore", "init", "new session"])
def test_what_begins_a_session_anew(ends, how, tmp_path):
    cluster, hosts = ends
    model = Queued()
    sess = fs.Session(cluster)
    sess.run(model.init)
    model.fill(sess, 1.0)
    path = model.saver.save(sess, tmp_path / "model")
    restart(cluster, hosts, 1)
    refused(sess, model.took)
    sess.run(model.here.assign_add(1.0))  # a step that is no restore changes nothing
    refused(sess, model.took)
    if how == "restore":
        model.saver.restore(sess, path)
    elif how == "init":
        sess.run(model.init)
    else:
        sess.close()
        sess = fs.Session(cluster)
    model.fill(sess, 4.0)
    assert sess.run(model.took) == 4.0
    assert sess.run(model.size) == 0
    sess.close()


def test_a_restore_that_fails_makes_nothing_anew(ends, tmp_path):
    cluster, hosts = ends
    model = Queued()
    with fs.Session(cluster) as sess:
        sess.run(model.init)
        model.fill(sess, 1.0)
        restart(cluster, hosts, 1)
        with pytest.raises(OpError):
            model.saver.restore(sess, tmp_path / "nothing")
        refused(sess, model.took)


def test_a_refused_plan_makes_none_of_its_queues(ends):
    cluster, hosts = ends
    with on(1):
        one, two = (fs.FIFOQueue(3, [fs.int32], [[]], name=n) for n in ("a", "b"))
    both = fs.group(one.enqueue([1]), two.enqueue([2]))
    with fs.Session(cluster) as sess:
        sess.run(both)
        restart(cluster, hosts, 1)
        message = refused(sess, both, name="a")
        assert 'queue "b"' in message
        refused(sess, one.size(), name="a")
        refused(sess, two.size(), name="b")
        assert [c for c in hosts[1].containers.values() if c.others()] == []


def test_a_queue_that_was_not_used_before_is_no_lost_one(ends):
    cluster, hosts = ends
    model = Queued()
    with fs.Session(cluster) as sess:
        sess.run(model.init)
        restart(cluster, hosts, 1)
        assert sess.run(model.size) == 0


def test_a_worker_that_was_only_cut_off_has_what_it_had(ends):
    cluster, _ = ends
    model = Queued()
    with fs.Session(cluster) as sess:
        sess.run(model.init)
        model.fill(sess, 6.0)
        cluster.lost(worker(1), 1, ConnectionError("the network was gone"))
        assert sess.run(model.took) == 6.0
        assert sess.run(model.there) == 1.0
        assert cluster.state_book.in_question(worker(1)) == []


def test_what_a_worker_has_dropped_of_a_silent_client_is_lost(ends):
    cluster, hosts = ends
    model = Queued()
    with fs.Session(cluster) as sess:
        sess.run(model.init)
        model.fill(sess, 6.0)
        hosts[1].containers.clear()
        cluster.lost(worker(1), 1, ConnectionError("the network was gone for 40 s"))
        assert "the network was gone for 40 s" in refused(sess, model.took)


@pytest.mark.parametrize("mode", MODES)
def test_sessions_that_share_a_queue_have_it_again_when_one_of_them_has_made_it_anew(ends, mode):
    cluster, hosts = ends
    with fs.container("shared"):
        model = Queued("common")
    config = fs.ConfigProto(mode=mode)
    first, second = fs.Session(cluster, config=config), fs.Session(cluster, config=config)
    with first, second:
        first.run(model.init)
        model.fill(first, 1.0, 2.0)
        assert second.run(model.took) == 1.0
        restart(cluster, hosts, 1)
        refused(second, model.took, name="common")
        first.run(model.init)
        refused(second, model.took, name="common")  # nobody has made it yet
        model.fill(first, 3.0)
        assert second.run(model.took) == 3.0
        restart(cluster, hosts, 1)
        with fs.Session(cluster, config=config) as third:
            model.fill(third, 4.0)
            assert first.run(model.size) == second.run(model.size) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_lock_is_lost_with_its_worker(ends, mode):
    cluster, hosts = ends
    with on(0):
        v = fs.Variable(0.0, name="v")
    with on(1):
        section = fs.CriticalSection(name="turns")
        counted = section.execute(lambda: v.assign_add(1.0).value())
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        assert sess.run(counted) == 1.0
        restart(cluster, hosts, 1)
        with pytest.raises(FailedPreconditionError, match='lock ".*" was lost with') as found:
            sess.run(counted)
        assert worker(1) in found.value.message
        sess.run(fs.global_variables_initializer())
        assert sess.run(counted) == 1.0


@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_a_lost_variable_says_so(ends, mode):
    cluster, hosts = ends
    model = Queued()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        with pytest.raises(FailedPreconditionError, match="no value yet"):
            sess.run(model.there)
        sess.run(model.init)
        restart(cluster, hosts, 1)
        for fetch in (model.there, model.there.assign_add(1.0), model.there * model.here):
            with pytest.raises(FailedPreconditionError, match='"there" was lost with') as found:
                sess.run(fetch)
            assert worker(1) in found.value.message and "Saver.restore" in found.value.message
        assert not sess.run(model.there.is_initialized())
        sess.run(model.there.initializer)
        assert sess.run(model.there) == 1.0


def test_a_variable_that_somebody_else_has_restored_is_there(ends):
    cluster, hosts = ends
    with fs.container("shared"), on(1):
        v = fs.Variable(3.0, name="v")
    with fs.Session(cluster) as first, fs.Session(cluster) as second:
        first.run(v.initializer)
        assert second.run(v) == 3.0
        restart(cluster, hosts, 1)
        with pytest.raises(FailedPreconditionError, match="lost with"):
            second.run(v)
        first.run(v.initializer)
        assert second.run(v) == 3.0


@pytest.mark.parametrize("mode", MODES)
def test_partial_runs_meet_the_loss_at_the_call_that_uses_the_queue(ends, mode):
    cluster, hosts = ends
    model = Queued()
    doubled = model.took * 2.0
    later = fs.placeholder(fs.float32, [])
    with fs.control_dependencies([fs.identity(later)]), on(1):
        again = model.queue.dequeue() + later
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(model.init)
        model.fill(sess, 1.0, 2.0, 3.0)
        handle = sess.partial_run_setup([doubled, again], [later])
        assert sess.partial_run(handle, doubled) == 2.0
        restart(cluster, hosts, 1)
        with pytest.raises(FailedPreconditionError, match="lost with"):
            sess.partial_run(handle, again, {later: 1.0})
        refused(sess, model.took)
        sess.run(model.init)
        model.fill(sess, 5.0, 6.0)
        handle = sess.partial_run_setup([doubled, again], [later])
        assert sess.partial_run(handle, doubled) == 10.0
        assert sess.partial_run(handle, again, {later: 1.0}) == 7.0


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_waits_when_its_worker_ends_is_told_and_the_next_is_refused(ends, mode):
    cluster, hosts = ends
    model = Queued()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(model.init)
        errors = []

        def wait():
            try:
                sess.run(model.took)
            except OpError as e:
                errors.append(e)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: any(q.waiters for c in hosts[1].containers.values() for q in c.others()))
        restart(cluster, hosts, 1)
        thread.join(10)
        assert isinstance(errors[0], UnavailableError)
        refused(sess, model.took)


def test_a_step_whose_plan_a_worker_does_not_know_fails_there_and_waits_for_nobody(ends):
    cluster, hosts = ends
    with on(1):
        fed = fs.placeholder(fs.float32, [])
        far = fed + 1.0
    with fs.device("/job:client/task:0"):
        here = far * 2.0
    config = fs.ConfigProto(operation_timeout_in_ms=20_000)
    with fs.Session(cluster, config=config) as sess:
        assert sess.run(here, {fed: 2.0}) == 6.0
        next(iter(hosts[1].steps._sessions.values())).plans.clear()
        with pytest.raises(UnavailableError, match="does not know this plan"):
            sess.run(here, {fed: 2.0})


def test_random_programs_of_losses(ends):
    """A model of who may use what says what each use of a random program does."""
    cluster, hosts = ends
    draw = np.random.default_rng(7)
    with fs.container("shared"):
        model = Queued("common")
    sessions = [fs.Session(cluster) for _ in range(3)]
    knows: list[bool] = [False] * 3  # whether a session has used the queue and not begun anew
    elements: list[float] | None = None  # of the queue; None where there is none
    for i in range(120):
        which = int(draw.integers(3))
        sess = sessions[which]
        match draw.choice(["put", "took", "restart", "init", "new"], p=[0.4, 0.3, 0.1, 0.1, 0.1]):
            case "restart":
                restart(cluster, hosts, 1)
                elements = None
            case "init":
                sess.run(model.init)
                knows[which] = knows[which] and elements is not None
            case "new":
                sess.close()
                sessions[which], knows[which] = fs.Session(cluster), False
            case what:
                if knows[which] and elements is None:
                    refused(sess, model.size, name="common")
                    continue
                elements = [] if elements is None else elements
                knows[which] = True
                if what == "put" and len(elements) < 10:
                    model.fill(sess, float(i))
                    elements.append(float(i))
                elif what == "took" and elements:
                    assert sess.run(model.took) == elements.pop(0)
                assert sess.run(model.size) == len(elements)
    for sess in sessions:
        sess.close()


def told_of_state(cluster, number):
    status = cluster.watch.status()
    told = next(w for w in status.workers if w.task == worker(number))
    texts = [f.text for f in status.findings if f.kind == "state"]
    return {(one.kind, one.name) for one in told.lost}, texts


@pytest.mark.parametrize("how", ["restore", "init", "one by one", "new session"])
def test_a_status_tells_what_a_worker_has_lost_until_it_is_there_again(ends, how, tmp_path):
    cluster, hosts = ends
    model = Queued()
    with on(1):
        section = fs.CriticalSection(name="turns")
        doubled = section.execute(lambda: model.there * 2.0)
    sess = fs.Session(cluster)
    sess.run(model.init)
    model.fill(sess, 1.0)
    sess.run(doubled)
    path = model.saver.save(sess, tmp_path / "model")
    assert told_of_state(cluster, 1) == (set(), [])
    restart(cluster, hosts, 1)
    lost, (text,) = told_of_state(cluster, 1)
    (lock,) = lost - {("variable", "there"), ("queue", "q")}
    assert lock[0] == "lock" and len(lost) == 3
    for part in ("worker 1", "1 variable, 1 queue and 1 lock", "there", "q", "restore"):
        assert part in text
    assert "1 variable, 1 queue and 1 lock lost" in str(cluster.watch.status())
    assert told_of_state(cluster, 0) == (set(), [text])
    refused(sess, model.took)
    assert told_of_state(cluster, 1)[0] == lost
    if how == "one by one":
        sess.run(model.there.initializer)
        assert told_of_state(cluster, 1)[0] == lost - {("variable", "there")}
        sess.run(model.init)
    elif how == "init":
        sess.run(model.init)
    elif how == "restore":
        model.saver.restore(sess, path)
    else:
        sess.close()
        sess = fs.Session(cluster)
    assert told_of_state(cluster, 1) == (set(), [])
    sess.close()


@pytest.mark.slow
def test_training_is_refilled_after_a_kill(
    cluster: fs.cluster.Cluster, graph: fs.Graph, tmp_path: Path
) -> None:
    """A monitored session makes queues anew, its runners fill theirs; a plain one is refused."""
    victim = cluster.task(worker(1))
    with fs.device(victim.name):
        queue = fs.FIFOQueue(100, [fs.int64], [[]], name="jobs")
        filled = fs.FIFOQueue(4, [fs.int64], [[]], name="filled")
        number = filled.dequeue()
    runner = fs.train.QueueRunner(filled, [filled.enqueue([fs.constant(7, fs.int64)])])
    fs.train.add_queue_runner(runner)
    step = fs.train.get_or_create_global_step()
    fed = fs.placeholder(fs.int64, [])
    put, size, took = queue.enqueue([fed]), queue.size(), queue.dequeue()
    counted = step.assign_add(1)
    plain = fs.Session(cluster)
    plain.run(put, {fed: 1})
    with fs.train.MonitoredTrainingSession(
        cluster, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, max_wait_secs=60
    ) as sess:
        sess.run(counted)
        for i in range(3):
            sess.run(put, {fed: i})
        os.kill(victim.pid, signal.SIGKILL)
        wait_until(lambda: cluster.health(victim.name)[0] == "lost")
        assert sess.run(size) == 0
        assert sess.run([number] * 2 + [counted])[0] == 7  # refilled
        sess.run(put, {fed: 9})
        assert sess.run(took) == 9
    with pytest.raises(FailedPreconditionError, match='queue "jobs" was lost with') as found:
        plain.run(size)
    # by whoever tells it first: its connection, or the scheduler
    ended = rf"{victim.name}.*(process has ended|Dask's scheduler has lost)"
    assert re.search(ended, found.value.message)
    plain.close()
