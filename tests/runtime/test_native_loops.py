"""Loops as machine code: the bits of op mode, taken over and given back in the middle of a step."""

import threading
import time

import pytest
from late_steps import late
from random_loops import check, compiled_at_once

import flowscope as fs
from flowscope.graph.op import all_ops
from flowscope.plan.codegen import scalar_assembly
from flowscope.runtime.waits.predicates import NEXT_ITERATION

pytest.importorskip("llvmlite")

#: Programs per test.
FEW = 20


def counting(limit, dtype=fs.int64):
    """Returns the graph and the end of a loop that counts."""
    graph = fs.Graph()
    with graph.as_default():
        start = [fs.constant(0, dtype), fs.constant(1.0)]
        body = lambda i, y: (i + 1, fs.maximum(y * 0.999, 0.5))  # noqa: E731
        return graph, fs.while_loop(lambda i, y: i < limit, body, start, back_prop=False)


def iteration(step):
    """Returns the iteration that a step is held in; -1 while it runs."""
    here = step.here
    return -1 if here is None else here.where().loops[-1].iteration


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("first", range(0, 100, FEW))
def test_random_loops_give_the_bits_of_op_mode_whoever_moves_them(first):
    assert sum(check(seed) for seed in range(first, first + FEW)) > FEW // 2


def test_machine_code_takes_over_in_the_middle_of_a_run():
    graph, loop = counting(100_000)
    with fs.Session(graph=graph) as session, compiled_at_once(50) as made:
        i, _ = session.run(loop)
        assert (i, [one.state for one in made]) == (100_000, ["native"])
        assert session.plan(loop).text("native") == "while: native"


def test_an_error_stands_at_the_users_line_with_its_iteration():
    with fs.Graph().as_default():
        body = lambda i, y: (i + 1, y + 10 // (70 - i))  # noqa: E731
        loop = fs.while_loop(lambda i, y: i < 100, body, [0, 0], back_prop=False)
        errors = []
        for mode in ("op", "compiled"):
            with (
                fs.Session(config=fs.ConfigProto(mode=mode)) as session,
                compiled_at_once() as made,
            ):
                with pytest.raises(fs.errors.InvalidArgumentError, match="by zero") as raised:
                    session.run(loop)
            errors.append((raised.value.message, raised.value.iterations, raised.value.op.name))
    assert errors[0] == errors[1]
    assert made[0].state == "native"


@pytest.mark.slow
def test_a_long_loop_is_paused_looked_into_moved_and_stopped():
    graph, loop = counting(10**12)
    with fs.Session(graph=graph) as session, compiled_at_once() as made:
        ended = []

        def run():
            with pytest.raises(fs.errors.CancelledError):
                session.run(loop)
            ended.append(time.monotonic())

        thread = threading.Thread(target=run)
        thread.start()
        gate = session.gate
        seen = []
        while not made or made[0].state != "native":
            gate.look(0.01)
        gate.request("pause")
        assert gate.wait_until_held(5.0)
        (step,) = gate.held_steps()
        seen.append(step.here.where().loops[-1].iteration)
        assert seen[0] in step.here.values().values()
        gate.run_until(NEXT_ITERATION)
        gate.wait_until(lambda: iteration(step) > seen[0], 5.0)
        seen.append(iteration(step))
        gate.request("resume")
        while step.where.loops[-1].iteration < 10**6:
            gate.look(0.01)
        assert seen[1] == seen[0] + 1
        asked = time.monotonic()
        gate.request("stop")
        thread.join(10)
        assert ended[0] - asked < 1.0  # 0.1 s on a machine that has nothing else to do


def test_a_deadline_ends_a_long_loop():
    graph, loop = counting(10**12)
    with fs.Session(graph=graph) as session, compiled_at_once():
        late(session, loop)


def test_the_plan_tells_why_a_loop_stays_python():
    with fs.Graph().as_default():
        x = fs.constant([1.0, 2.0])
        start = [fs.constant(0), x]
        vectors = fs.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * x), start)
        kept = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y), [0, 2.0])[1]
        w = fs.constant(1.01)
        grown = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w), [0, 2.0])[1]
        drawn = fs.while_loop(lambda y: y < 1, lambda y: y + fs.random_uniform([]), [0.0])
        with fs.Session() as session:
            tell = lambda fetch: session.plan(fetch).text("native")  # noqa: E731
            assert "no single number" in tell(vectors)
            assert "RandomUniform" in tell(drawn)
            assert tell(x) == "no loops"
            assert "not run often enough" in tell(kept)
            assert "keeps lists" in tell(fs.gradients(grown, w))


def test_a_loop_in_a_native_one_is_native():
    with fs.Graph().as_default():
        inner = lambda s: fs.while_loop(lambda j, s: j < 9, lambda j, s: (j + 1, s * 2), [0, s])  # noqa: E731
        body = lambda i, s: (i + 1, inner(s)[1])  # noqa: E731
        loop = fs.while_loop(lambda i, s: i < 50, body, [0, 3], back_prop=False)
        with fs.Session() as session, compiled_at_once():
            assert session.run(loop) == (50, 0)
            first, second = session.plan(loop).text("native").splitlines()
    assert (first, second) == ("while: native", "while/body/while: native, in while")
    assert "loops" in fs.runtime_report(measure=False).used


def test_one_breakpoint_in_a_loop_keeps_it_python():
    graph, loop = counting(300)
    with fs.Session(graph=graph) as session, compiled_at_once() as made:
        session.debug.break_after("while/body/add", iteration=200)
        stops = []
        session.gate.listener = lambda step: stops.append(step.here.where().loops[-1].iteration)
        i, _ = session.run(loop)
    assert (i, stops, made) == (300, [200], [])


def test_loops_in_steps_of_several_threads_share_code():
    graph, loop = counting(20_000)
    with fs.Session(graph=graph) as session, compiled_at_once():
        wanted = session.run(loop)
        found = []
        threads = [threading.Thread(target=lambda: found.append(session.run(loop))) for _ in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [wanted] * 3


def test_every_form_in_machine_code_is_that_of_an_op() -> None:
    named = {op.native for op in all_ops().values()} - {""}
    assert named == set(scalar_assembly._FORMS)
