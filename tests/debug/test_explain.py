"""Explanations: what an operation does, with the values of a step."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.trace.cost_learning import learn_costs

pytestmark = pytest.mark.usefixtures("graph")
FEED = np.array([[1.0, 2.0]], "f")


@pytest.fixture(params=["compiled", "op", "tokens"])
def sess(request):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def model():
    """A small regression and a loop that uses its loss."""
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    w = fs.Variable([[1.0], [2.0]], name="w")
    y = fs.matmul(x, w, name="y")
    fs.matmul(x, w, name="twin")
    loss = fs.reduce_mean(fs.square(fs.add(y, fs.constant(2.0) * 3.0, name="z")), name="loss")
    train = fs.train.GradientDescentOptimizer(0.5).minimize(loss)

    def body(i, v):
        return i + 1, fs.add(v * 2.0, loss, name="next")

    loop = fs.while_loop(lambda i, v: i < 3, body, [0, 1.0], name="loop")
    return [*loop, train, "twin:0"]


def held(sess, fetches, names):
    """Returns explanations of operations at a stop."""
    found = {}

    def look(stop):
        found.update((name, sess.explain(name)) for name in names)

    sess.debug.on_stop(look)
    sess.run(fetches, {"x:0": FEED})
    sess.debug.on_stop(None)
    sess.debug.clear()
    return found


def test_before_a_step_it_says_what_is_computed_and_what_to_do(sess):
    model()
    told = sess.explain("y")
    assert told.about("computes") == (
        '"y" has the op type MatMul: Matrix product a @ b, of the transposes if asked for.'
    )
    assert told.about("step") == "No step has run yet. Run a step to see what becomes of it."
    assert (told.became, told.device, told.seconds) == ("", "", None)
    assert [(t.role, t.name, t.type_text) for t in told.tensors] == [
        ("input", "x:0", "float32[?,2]"),
        ("input", "w/read:0", "float32[2,1]"),
        ("output", "y:0", "float32[?,1]"),
    ]
    assert told.inputs[1].why == "the variable has no value yet"
    assert "test_explain.py" in told.about("made") and "fs.matmul" in told.about("made")
    assert told.gradients[0] == "gradients/y_grad/MatMul"


def test_at_a_stop_inputs_and_the_result_are_those_of_the_step(sess):
    fetches = model()
    sess.run(fs.global_variables_initializer())
    sess.debug.break_after("z")
    told = held(sess, fetches, ["z", "loss"])
    z = told["z"]
    assert z.about("step").startswith("Step 1, which is held, computes it")
    assert [(t.source, t.statistics.mean) for t in z.outputs] == [("held", 11.0)]
    assert "11" in z.text() and z.about("values") == ""
    (out,) = told["loss"].outputs
    assert (out.source, out.statistics) == ("", None) and out.why.startswith("not yet")


def test_values_of_variables_and_of_what_was_recorded_are_told_between_steps(sess):
    fetches = model()
    sess.run(fs.global_variables_initializer())
    sess.debug.record(["y", "loop/body/next"])
    sess.run(fetches, {"x:0": FEED})
    y = sess.explain("y")
    read = y.inputs[1]
    assert (read.source, read.why) == ("variable", "as the variable is now")
    assert read.statistics.max == sess.run("w/read:0").max()
    assert (y.outputs[0].source, y.outputs[0].statistics.max) == ("recorded", 5.0)
    assert y.outputs[0].why == "as in step 1"
    assert sess.explain("loop/body/next").outputs[0].why == "as in step 1, iteration 2"
    w = sess.explain("w")
    assert w.about("step") == "The latest step uses it." and w.seconds is None
    assert w.outputs[0].statistics.shape == (2, 1)


def test_what_became_of_it_is_what_the_map_says(sess):
    fetches = model()
    fs.tan(fs.get_default_graph().get_tensor_by_name("x:0"), name="unused")
    sess.run(fs.global_variables_initializer())
    sess.run(fetches, {"x:0": FEED})
    for name in ["y", "twin", "x", "mul", "unused", "Const", "loss", "loop/body/next"]:
        tensor = sess.graph.get_tensor_by_name(f"{name}:0")
        told = sess.explain(tensor)
        (at, *_) = sess.latest_plan.locate(tensor)
        assert told.became == at.kind, name
    assert "no fetch or target" in sess.explain("unused").about("step")
    assert sess.explain("x").about("step").endswith("its value is fed.")
    assert "known before the step" in sess.explain("Const").about("step")
    if sess.config.mode == "compiled":
        assert "folded to a constant" in sess.explain("mul").about("step")
        merged = [sess.explain(n) for n in ("y", "twin")]
        assert sorted(m.became for m in merged) == ["same", "value"]
        same = next(m for m in merged if m.became == "same")
        assert "it is the same as" in same.about("step")


def test_a_loop_tells_its_variables_invariants_and_iteration(sess):
    fetches = model()
    sess.run(fs.global_variables_initializer())
    sess.debug.break_before("loop/body/next", iteration=1)
    body = sess.graph.get_operation_by_name("loop/Loop").definition.body
    names = [t.op.name for t in body.parameters]
    told = held(sess, fetches, ["loop/body/next", "loop/Loop", "loop/cond/Less", *names])
    inside = told["loop/body/next"]
    assert inside.iteration == told["loop/Loop"].iteration == 1
    assert "makes the next value of loop variable 1" in inside.about("block")
    assert "The loop is in iteration 1" in inside.about("block")
    assert "carries 2 loop variables" in told["loop/Loop"].about("block")
    assert "decides whether there is another iteration" in told["loop/cond/Less"].about("block")
    about = [told[name].about("block") for name in names]
    assert 'It is loop variable 0: it begins as "loop/Const:0"' in about[0]
    assert '"loop/body/next:0"' in about[1]
    assert 'loop invariant: the value of "loss:0"' in about[2]
    assert inside.inputs[0].statistics.max == 2 * (1.0 * 2 + 121.0)


def test_branches_and_functions_are_named(sess):
    p = fs.placeholder(fs.bool, [], name="p")
    c = fs.cond(p, lambda: fs.constant(1.0, name="one"), lambda: fs.exp(2.0, name="e"), name="c")
    sess.run(c, {p: False})
    (name,) = [o.name for o in sess.graph.get_operations() if o.type == "Exp"]
    assert 'it runs where "p:0" is false' in sess.explain(name).about("block")


def test_device_and_cost_are_those_of_the_plan_or_measured(sess):
    fetches = model()
    sess.run(fs.global_variables_initializer())
    sess.run(fetches, {"x:0": FEED})
    told = sess.explain("loss")
    node = next(n for n in sess.latest_plan.program.walk() if n.name == "loss")
    assert told.device == node.device and node.reason in told.about("device")
    assert told.seconds > 0 and not told.is_measured and "estimated" in told.about("cost")
    with fs.profile(sess) as profile:
        sess.run(fetches, {"x:0": FEED})
        sess.run(fetches, {"x:0": FEED})
    told = sess.explain("loss", profile.recording)
    row = next(i for i, n in enumerate(profile.recording.nodes) if "loss" in n.names)
    totals = profile.recording.totals
    assert told.is_measured and "2 runs" in told.about("cost")
    assert told.seconds == pytest.approx(totals.self_ns[row] * 1e-9 / totals.count[row])


def test_gradients_are_told_both_ways(sess):
    model()
    told = sess.explain("Square")
    assert told.gradients and all(
        sess.explain(name).gradient_of == "Square" for name in told.gradients
    )
    assert 'part of the gradient of "Square"' in sess.explain(told.gradients[0]).about("gradient")
    assert "and 6 more" in sess.explain("loss").about("gradient")


def test_a_step_of_the_past_is_told_as_such(sess):
    fetches = model()
    sess.run(fs.global_variables_initializer())
    sess.debug.record()
    sess.run(fetches, {"x:0": FEED})
    with sess.debug.replay() as past:
        with pytest.raises(fs.errors.FailedPreconditionError, match="of its session"):
            past.debug.explain("y")
    sess.debug.revisit(1, "Square", None)
    told = sess.explain("z")
    assert told.about("step").startswith("Step 1, computed again, computes it")
    assert told.outputs[0].statistics.mean == 11.0
    sess.debug.leave_past()


def test_its_text_is_plain_and_its_html_is_escaped(sess):
    x = fs.constant(["<b>"], name="x")
    fs.identity(x, name="y")
    told = sess.explain("y")
    assert repr(told) == told.text() == str(told)
    html = told._repr_html_()
    assert "<b>" not in html and html.count("<p>") == len(told.sentences)
    assert sess.explain("x").outputs[0].statistics.shape == (1,)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ("nothing", fs.errors.NotFoundError, "no operation is named 'nothing'"),
        ("y:7", fs.errors.NotFoundError, "there is no 'y:7'"),
        (3, TypeError, "expected a tensor or an operation of the graph or its name, got 3"),
    ],
)
def test_bad_names_are_one_clear_error(sess, given, error, said):
    model()
    with pytest.raises(error, match=said):
        sess.explain(given)


def test_explaining_sets_nothing_up_in_steps(sess):
    fetches = model()
    sess.run(fs.global_variables_initializer())
    sess.run(fetches, {"x:0": FEED})
    before = sess.latest_plan
    sess.explain("y")
    sess.run(fetches, {"x:0": FEED})
    assert sess.latest_plan is before and sess.planner.breakpoints is None


def test_values_of_open_dimensions_say_where_their_bytes_come_from():
    x = fs.placeholder(fs.float32, [None], name="x")
    found = fs.where(fs.exp(x) > 0.0, name="found")
    y = fs.identity(fs.cast(found, fs.float32) * 2.0, name="y")
    feed = {x: np.ones(1000, "f")}
    with fs.Session() as sess:
        sess.run(y, feed)
        assert "a guess, for nothing tells the open dimensions" in str(sess.explain("found"))
        assert "4,000 bytes, as follows from what was fed last" in str(sess.explain("Exp"))
        learn_costs(sess, y, feed, 1)
        assert "8,000 bytes, as was measured last" in str(sess.explain("found"))
