"""Stop at the first NaN in a step over workers."""

import pytest
from cluster_hosts import hosts_here, on

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(scope="module")
def ends():
    with hosts_here(2) as found:
        yield found


@pytest.fixture
def cluster(ends):
    return ends[0]


@pytest.mark.parametrize("mode", ["compiled", "op"])
def test_the_culprit_of_a_loop_across_workers_is_held_where_it_is(cluster, mode):
    with on(0):
        start = fs.constant([4.0, 2.0])

    def body(i, x):
        with on(1):
            y = fs.subtract(x, 1.0, name="less")
        with on(0):
            return i + 1, fs.log(y, name="root")

    with on(0):
        loop = fs.while_loop(lambda i, x: i < 5, body, [fs.constant(0), start])
    found = []
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(loop)
        sess.debug.stop_at_nan()
        sess.debug.on_stop(lambda stop: found.append(stop.culprit()))
        sess.run(loop)
    culprit = found[0]
    assert (culprit.op.name, culprit.step, culprit.iterations) == ("while/body/root", 1, (1,))
    assert culprit.what == "nan" and culprit.path == (culprit.op,)
    [out] = culprit.outputs
    assert out.statistics.nan + out.statistics.inf > 0
    assert [look.name for look in culprit.inputs] == ["while/body/less:0"]
    assert "cluster" in culprit.why_not
