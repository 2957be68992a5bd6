"""Several values between two tasks are one message, where no frame and no wait stands between."""

import random

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, worker

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
STEPS = 10


@pytest.fixture(scope="module")
def ends():
    with hosts_here(3) as found:
        yield found


def code_of(sess, cluster, host):
    """Returns the code of what a host runs of the session's last plan."""
    plans = host.steps.session(cluster.endpoint.name, sess._remote.number).plans
    return "\n".join(p.executable.text for p in [*plans.values()][-1].parts)


def kinds(text):
    """Returns how values are sent, in order."""
    words = [w for line in text.splitlines() for w in line.split("(")]
    return [w.rpartition(".")[2] for w in words if w.endswith((".send", ".send_with_next"))]


def messages(host, to):
    return host.endpoint.counters()[worker(to)].writes


def test_five_values_are_one_message(ends):
    cluster, hosts = ends
    x = fs.placeholder(fs.float32, [])
    with on(0):
        ys = [x + float(i) for i in range(5)]
    with on(1):
        z = fs.add_n([y * 2.0 for y in ys])
    with fs.Session(cluster) as sess:
        sess.run(z, {x: 1.0})
        before = messages(hosts[0], 1)
        for i in range(STEPS):
            assert sess.run(z, {x: float(i)}) == 10 * i + 20
        assert messages(hosts[0], 1) - before == STEPS
        assert kinds(code_of(sess, cluster, hosts[0])) == ["send_with_next"] * 4 + ["send"]


def test_values_for_two_tasks_are_one_message_for_each(ends):
    cluster, hosts = ends
    x = fs.placeholder(fs.float32, [3])
    with on(0):
        ys = [x + float(i) for i in range(6)]
    sums = []
    for task in (1, 2):
        with on(task):
            sums.append(fs.add_n([y * 1.0 for y in ys[task - 1 :: 2]]))
    with fs.Session(cluster) as sess:
        sess.run(sums, {x: np.zeros(3)})
        before = [messages(hosts[0], to) for to in (1, 2)]
        for _ in range(STEPS):
            a, b = sess.run(sums, {x: np.ones(3)})
            assert a.tolist() == [9.0] * 3 and b.tolist() == [12.0] * 3
        assert [messages(hosts[0], to) for to in (1, 2)] == [n + STEPS for n in before]


def test_a_value_that_is_answered_first_is_a_message_of_its_own(ends):
    """Waiting for the second would be a circle: it needs the answer to the first."""
    cluster, hosts = ends
    x = fs.placeholder(fs.float32, [])
    with on(0):
        first = x + 1.0
    with on(1):
        answer = first * 2.0
    with on(0):
        second = answer + 1.0
    with on(1):
        end = first + second
    with fs.Session(cluster) as sess:
        assert sess.run(end, {x: 1.0}) == 7
        assert kinds(code_of(sess, cluster, hosts[0])) == ["send", "send"]


def test_a_value_does_not_wait_for_long_work(ends):
    cluster, hosts = ends
    x = fs.placeholder(fs.float32, [800, 800])
    with on(0):
        first = x[0] + 1.0
        second = fs.matmul(fs.matmul(x, x), x)[0]
    with on(1):
        end = first + second
    with fs.Session(cluster) as sess:
        assert sess.run(end, {x: np.zeros([800, 800])}).tolist() == [1.0] * 800
        sent = kinds(code_of(sess, cluster, hosts[0]))
        assert sent in (["send", "send"], ["send"])  # or what is first is sent last


def test_nothing_waits_for_a_value_behind_an_effect(ends):
    """What touches state may wait, or be wanted at once."""
    cluster, hosts = ends
    x = fs.placeholder(fs.float32, [])
    with on(0):
        first = x + 1.0
        v = fs.Variable(0.0, name="between", use_resource=True)
        with fs.control_dependencies([first]):
            written = v.assign_add(1.0)
        with fs.control_dependencies([written]):
            second = x + 2.0
    with on(1):
        end = first + second
    with fs.Session(cluster) as sess:
        sess.run(v.initializer)
        assert sess.run(end, {x: 1.0}) == 5
        assert kinds(code_of(sess, cluster, hosts[0])) == ["send", "send"]


def test_loops_send_by_iterations(ends):
    cluster, hosts = ends

    def body(i, a, b):
        with on(0):
            one, two = a + 1.0, b + 2.0
        with on(1):
            return i + 1, one * 1.0, two * 1.0

    found = fs.while_loop(lambda i, a, b: i < 5, body, [0, 0.0, 0.0])
    with fs.Session(cluster) as sess:
        assert list(sess.run(found)) == [5, 5.0, 10.0]
        for host in hosts[:2]:
            assert "send_with_next" not in kinds(code_of(sess, cluster, host))


def random_graph(rng, tasks, fed):
    """Returns a feed, fetches of a graph whose operations lie anywhere, and what they are."""
    x = fs.placeholder(fs.float32, [2])
    values = [(x, fed)]
    for _ in range(rng.randrange(8, 40)):
        name = rng.choice(("add", "maximum", "subtract"))
        (a, here), (b, other) = rng.choice(values[-6:]), rng.choice(values)
        with on(rng.randrange(tasks)):
            made = getattr(fs, name)(a, b * 0.5)
        values.append((made, getattr(np, name)(here, other * np.float32(0.5))))
    return x, *zip(*values[-4:], strict=True)


@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_give_the_same_bits_and_end(ends, seed, mode):
    cluster, _ = ends
    fed = np.float32([seed, 0.3])
    x, fetches, expected = random_graph(random.Random(seed), 3, fed)
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        for _ in range(3):
            found = sess.run(list(fetches), {x: fed}, fs.RunOptions(timeout_in_ms=20_000))
            assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]
