"""Programs of parameter servers and workers: each process makes the `train.Server` of its task."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed  # noqa: F401  (it sets defaults of Dask's configuration)
import pytest
from local_clusters import free_addresses
from tls_files import dask_settings

import flowscope as fs
from flowscope.cluster.membership.tasks import TaskNumbers, WorkerFacts
from flowscope.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)

#: A task as TensorFlow's tutorials write it.
BEGIN = """
import sys
import flowscope as fs

job, index, spec, folder = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
cluster = fs.train.ClusterSpec(spec)
server = fs.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with fs.device(fs.train.replica_device_setter(
    cluster=cluster, worker_device=f"/job:worker/task:{index}"
)):
    w = fs.Variable([16.0, 32.0], name="w")
    step = fs.train.get_or_create_global_step()
    loss = fs.reduce_sum(w * [1.0, 2.0])
    train = fs.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
"""
#: Every worker trains ten steps, and goes when all have done so.
TRAINING = (
    BEGIN
    + """
with fs.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as sess:
    for _ in range(10):
        sess.run(train)
    while sess.run(step) < 20:
        pass
    print(sess.run(w).tolist(), flush=True)
"""
)
#: Both workers' gradients make an update; the worker with the greater number has the greater one.
SYNCHRONOUS = (
    BEGIN.replace(
        "loss = fs.reduce_sum(w * [1.0, 2.0])", "loss = fs.reduce_sum(w) * (1.0 + index)"
    ).replace(
        "train = fs.train.GradientDescentOptimizer(0.5).minimize",
        "sync = fs.train.SyncReplicasOptimizer(fs.train.GradientDescentOptimizer(0.5), 2)\n"
        "    train = sync.minimize",
    )
    + """
hooks = [sync.make_session_run_hook(index == 0, num_tokens=0)]
with fs.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as sess:
    for _ in range(4):
        sess.run(train)
    print(sess.run([w, step])[1], sess.run(w).tolist(), flush=True)
    sys.stdin.readline()
"""
)
#: The chief trains; the others look, in sessions that are lost with the parameter server.
RECOVERING = (
    BEGIN
    + """
missing = fs.report_uninitialized_variables()

def look(sess, last):
    while sess.run(missing).size or sess.run(step) < last:
        pass

if index == 0:
    with fs.train.MonitoredTrainingSession(
        server.target, checkpoint_dir=folder, save_checkpoint_steps=1
    ) as sess:
        for last in (3, 6):
            while sess.run(step) < last:
                sess.run(train)
            print("at", sess.run(step), flush=True)
            sys.stdin.readline()
        print(sess.run(w).tolist(), flush=True)
else:
    with fs.Session(server.target) as sess:
        look(sess, 3)
        print("at 3", flush=True)
        try:
            look(sess, 10)
        except fs.errors.UnavailableError as e:
            print("/job:ps/replica:0/task:0" in str(e), flush=True)
    with fs.Session(server.target) as sess:
        look(sess, 6)
        print("at 6", flush=True)
"""
)


class Tasks:
    """Processes of a cluster on this machine."""

    def __init__(self, folder: Path, env: dict[str, str], program: str, workers: int = 2) -> None:
        ps, *others = free_addresses(1 + workers)
        self.spec = {"ps": [ps], "worker": others}
        self._folder, self._env = folder, dict(env)
        self._program = folder / "program.py"
        self._program.write_text(program)
        self._processes: list[subprocess.Popen[str]] = []

    def use(self, settings: dict[str, object]) -> None:
        """Starts further processes with a configuration of Dask's."""
        for name, value in settings.items():
            self._env[f"DASK_{name.replace('.', '__').replace('-', '_').upper()}"] = str(value)

    def start(self, job: str, index: int) -> subprocess.Popen[str]:
        arguments = [job, str(index), str(self.spec), str(self._folder / "checkpoints")]
        process = subprocess.Popen(
            [sys.executable, str(self._program), *arguments],
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def tasks(
    request: pytest.FixtureRequest, tmp_path: Path, source_env: dict[str, str]
) -> Iterator[Tasks]:
    found = Tasks(tmp_path, source_env, request.param)
    yield found
    found.close()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [TRAINING], indirect=True, ids=["training"])
def test_parameter_server_and_workers(tasks: Tasks) -> None:
    """Workers that start before their parameter server, the chief last, train one model."""
    workers = [tasks.start("worker", 1)]
    ps = tasks.start("ps", 0)
    workers.append(tasks.start("worker", 0))
    assert [line_of(w) for w in workers] == ["[6.0, 12.0]"] * 2
    assert [w.wait(60) for w in workers] == [0, 0]
    assert ps.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [SYNCHRONOUS], indirect=True, ids=["synchronous"])
def test_workers_train_by_the_means_of_their_gradients(tasks: Tasks) -> None:
    """Gradients 1 and 2, rate 0.5: each of four updates takes 0.75."""
    tasks.start("ps", 0)
    workers = [tasks.start("worker", 1), tasks.start("worker", 0)]
    assert [line_of(w) for w in workers] == ["4 [13.0, 29.0]"] * 2
    for worker in workers:
        go_on(worker)
    assert [w.wait(60) for w in workers] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [RECOVERING], indirect=True, ids=["recovering"])
def test_first_task_is_killed_and_restarted(tasks: Tasks) -> None:
    """Other sessions end with an error that names it; training goes on from the last checkpoint."""
    ps, chief, other = tasks.start("ps", 0), tasks.start("worker", 0), tasks.start("worker", 1)
    assert [line_of(chief), line_of(other)] == ["at 3", "at 3"]
    ps.kill()
    ps.wait(60)
    assert line_of(other) == "True"
    tasks.start("ps", 0)
    go_on(chief)
    assert [line_of(chief), line_of(other)] == ["at 6", "at 6"]
    go_on(chief)
    assert line_of(chief) == "[13.0, 26.0]"
    assert [chief.wait(60), other.wait(60)] == [0, 0]


@pytest.mark.slow
def test_sessions_wait_for_the_tasks_that_they_ask_for(graph: fs.Graph) -> None:
    """A missing task is named, with the address; a graph that asks for others does not wait."""
    ps, worker = free_addresses(2)
    server = fs.train.Server({"ps": [ps], "worker": [worker]}, job_name="ps")
    try:
        assert server.target == f"grpc://{ps}"
        soon = fs.ConfigProto(operation_timeout_in_ms=10)
        with fs.device("/job:ps/task:0"):
            v = fs.Variable(2.0, name="v")
        with fs.Session(server.target) as session, fs.Session(server.target) as other:
            session.run(v.initializer)
            assert other.run(v) == 2.0  # the default container is shared
        with fs.device("/job:worker/task:0"):
            fs.constant(1.0)
        missing = rf"/job:worker/replica:0/task:0 \(it has not started; it is to be at {worker}\)"
        with pytest.raises(DeadlineExceededError, match=missing):
            fs.Session(server.target, config=soon)
        with pytest.raises(UnavailableError, match=f"no task of a cluster answers at {worker}"):
            fs.Session(f"grpc://{worker}", config=soon)
        with pytest.raises(UnavailableError, match=rf"cannot listen at {ps}.*port is free"):
            fs.train.Server({"ps": [ps], "worker": [worker]}, job_name="ps")
    finally:
        for cluster in list(fs.Session(graph=graph).engine.clusters.values()):
            if getattr(cluster, "target", "").endswith(ps.partition(":")[2]):
                cluster.close()  # type: ignore[attr-defined]
        server.stop()
    server.join()


#: A server and a session, whose connections all have TLS.
SEALED = """
import sys
import flowscope as fs

server = fs.train.Server(eval(sys.argv[3]), job_name="ps")
with fs.device("/job:ps/task:0"):
    y = fs.constant(2.0) * 3.0
with fs.Session(server.target) as sess:
    found = sess.run(y)
    (cluster,) = sess.engine.clusters.values()
    workers = cluster.status().workers
    print(cluster.target[:6], found, [w.is_encrypted for w in workers], flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [SEALED], indirect=True, ids=["sealed"])
def test_servers_have_tls_where_dasks_configuration_asks_for_it(
    tasks: Tasks, graph: fs.Graph
) -> None:
    """Whoever has no certificate is told so."""
    tasks.use(dask_settings())
    server = tasks.start("ps", 0)
    assert line_of(server) == "tls:// 6.0 [True, True]"
    with pytest.raises(UnavailableError, match="without TLS, as Dask's configuration says"):
        fs.Session(
            f"grpc://{tasks.spec['ps'][0]}", config=fs.ConfigProto(operation_timeout_in_ms=10)
        )


def test_servers_whose_certificates_are_missing_are_refused(graph: fs.Graph) -> None:
    spec = dict(zip(("ps", "worker"), ([a] for a in free_addresses(2)), strict=True))
    with dask.config.set(dask_settings() | {"distributed.comm.tls.scheduler.cert": None}):
        with pytest.raises(FailedPreconditionError, match=r"comm\.tls\.scheduler\.cert to a file"):
            fs.train.Server(spec, job_name="ps")
    with dask.config.set(dask_settings(key="/no/key.pem")):
        with pytest.raises(FailedPreconditionError, match=r"No such file.*'/no/key\.pem'"):
            fs.train.Server(spec, job_name="ps")
        with pytest.raises(FailedPreconditionError, match="certificates of the client cannot"):
            fs.Session(f"grpc://{spec['ps'][0]}")


def test_addresses_of_servers() -> None:
    """An address must be found by others, and be this machine's where the task is to be."""

    def server(*addresses: str) -> None:
        fs.train.Server({"worker": list(addresses)}, task_index=0)

    with pytest.raises(InvalidArgumentError, match='expected addresses as "host:port"'):
        server("localhost:0", "localhost:20000")
    with pytest.raises(InvalidArgumentError, match='expected addresses as "host:port"'):
        server("localhost:20000", "localhost")
    with pytest.raises(
        UnavailableError, match=r"/job:worker/.* cannot listen at 192\.0\.2\.1:20000"
    ):
        server("192.0.2.1:20000", "localhost:20001")


def test_workers_named_as_tasks() -> None:
    """A Dask worker whose name is a task's is that task, whatever its job."""
    numbers = TaskNumbers()
    worker = WorkerFacts("/job:trainer/replica:0/task:7", "tcp://a:1", {})
    assert numbers.task_of(worker) == ("trainer", 7)
