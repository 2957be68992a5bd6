"""Cached plans: what makes one stale, and what does not."""

import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_an_edit_makes_stale_only_the_plans_that_use_the_operation(sess, graph):
    x, y = fs.identity(fs.constant(1.0)), fs.identity(fs.constant(2.0))
    of_x, of_y = sess.plan(x), sess.plan(y)
    graph.edited(x.op)
    assert sess.plan(y) is of_y
    assert sess.plan(x) is not of_x
    assert sess.plan(x) is sess.plan(x)


def test_an_edit_of_what_planning_left_out_makes_a_plan_stale_too(sess, graph):
    """Folded, merged and forwarded operations, and what only control inputs need."""
    x = fs.placeholder(fs.float32, [])
    with fs.control_dependencies([fs.no_op(name="first")]):
        inner = fs.identity(fs.constant(3.0, name="three") * 2.0, name="inner")
    y = fs.identity(fs.negative(x, name="n1") + fs.negative(x, name="n2") + inner)
    for name in ("three", "inner", "n1", "n2", "first", x.op.name, y.op.name):
        before = sess.plan(y, [x])
        graph.edited(graph.get_operation_by_name(name))
        assert sess.plan(y, [x]) is not before, name


def test_adding_operations_makes_no_plan_stale(sess):
    x = fs.constant(1.0)
    before = sess.plan(x)
    fs.add(x, x)
    assert sess.plan(x) is before


def test_a_callable_plans_again_after_an_edit(sess):
    v = fs.Variable(0)
    up = v.assign_add(1)
    x = fs.placeholder(fs.float32, [])
    y = fs.identity(x)
    sess.run(v.initializer)
    call = sess.make_callable(y, [x])
    assert call(2.0) == 2.0
    y.op._add_control_input(up.op)
    assert call(3.0) == 3.0
    assert sess.run(v) == 1


def test_all_ways_to_run_follow_a_control_input_that_comes_later(sess):
    """It may come anywhere behind what is fetched, and where planning had left something out."""
    v = fs.Variable(0)
    up = v.assign_add(1)
    x = fs.placeholder(fs.float32, [], name="x")
    folded = fs.identity(fs.constant(2.0) * 3.0)
    y = fs.identity(fs.negative(x) + folded)
    sess.run(v.initializer)
    ways = {
        "run": lambda: sess.run(y, {x: 1.0}),
        "call": (call := sess.make_callable(y, [x])) and (lambda: call(1.0)),
        "options": (slow := sess.make_callable(y, [x], accept_options=True))
        and (lambda: slow(1.0, run_metadata=fs.RunMetadata())),
        "metadata": lambda: sess.run(y, {x: 1.0}, run_metadata=fs.RunMetadata()),
        "part": lambda: sess.partial_run(sess.partial_run_setup([y], [x]), y, {x: 1.0}),
    }
    for way in ways.values():
        assert way() == 5.0
    assert sess.run(v) == 0
    for op in (folded.op, folded.op.inputs[0].op, y.op.inputs[0].op):
        op._add_control_input(fs.group(v.assign_add(1)))
    for name, way in ways.items():
        sess.run(v.initializer)
        assert way() == 5.0, name
        assert sess.run(v) == 3, name
    fs.negative(x).op._add_control_input(up.op)
    assert call(1.0) == 5.0


def test_a_control_input_into_a_body_that_is_built_is_refused(graph, sess):
    v = fs.Variable(0)
    up, late = v.assign_add(1), []

    def body(i):
        late.append((i + 1).op)
        return late[-1].outputs[0]

    y = fs.while_loop(lambda i: i < 3, body, [0])
    inner = late[-1]
    with pytest.raises(fs.errors.OpError, match=r"(?s)the body of .* which is built.*AssignAdd"):
        inner._add_control_input(up.op)
    with pytest.raises(fs.errors.OpError, match=r"(?s)cannot be waited for"):
        up.op._add_control_input(inner)
    sess.run(v.initializer)
    assert sess.run([y, v]) == [3, 0]


def test_a_shape_that_is_set_later_counts_for_what_is_fed(sess):
    x = fs.placeholder(fs.float32, [None])
    y = x * 2.0
    call = sess.make_callable(y, [x])
    for run in (call, lambda value: sess.run(y, {x: value})):
        assert len(run([1.0, 2.0, 3.0])) == 3
    x.set_shape([2])
    before = sess.plan(y, [x])
    for run in (call, lambda value: sess.run(y, {x: value})):
        with pytest.raises(ValueError, match=r"shape \[2\]"):
            run([1.0, 2.0, 3.0])
        assert len(run([1.0, 2.0])) == 2
    x.set_shape([2])
    assert sess.plan(y, [x]) is before


def test_the_log_of_edits_keeps_no_operation_alive():
    graph = fs.Graph()
    with graph.as_default():
        kept, other = fs.constant(1.0), fs.Graph()
    with other.as_default():
        gone = fs.constant(1.0)
    graph.edited(gone.op)
    graph.edited(kept.op)
    del gone, other
    import gc

    gc.collect()
    assert graph.edits == 2
    assert graph.edited_since(0) == [kept.op]


# -- the cache ------------------------------------------------------------------------------------


def test_hits_and_misses_are_counted(sess):
    x, y = fs.constant(1.0), fs.constant(2.0)
    assert sess.plan_cache == (info := sess.plan_cache) and info.misses == info.hits == 0
    for _ in range(3):
        sess.run(x)
    sess.run(y)
    info = sess.plan_cache
    assert (info.hits, info.misses, info.size, info.max_size) == (2, 2, 2, 4096)


def test_the_cache_is_bounded_and_keeps_what_is_used():
    xs = [fs.constant(float(i)) for i in range(20)]
    with fs.Session(config=fs.ConfigProto(plan_cache_size=6)) as sess:
        often = sess.plan(xs[0])
        for x in xs[1:]:
            sess.run(x)
            assert sess.plan_cache.size <= 6
            assert sess.plan(xs[0]) is often
        before = sess.plan_cache.misses
        sess.run(xs[1])
        assert sess.plan_cache.misses == before + 1
        assert sess.run(xs) == [float(i) for i in range(20)]


def test_the_cache_is_bounded_by_the_size_of_plans_too(monkeypatch):
    monkeypatch.setattr("flowscope.runtime.planning.plan_cache.MOST_NODES", 200)
    x = fs.placeholder(fs.float32, [])
    ys = [x]
    for _ in range(60):
        ys.append(fs.sin(ys[-1]))
    with fs.Session() as sess:
        sizes = []
        for i in range(1, 60):
            sess.run(ys[i], {x: 1.0})
            sizes.append(sess.plan_cache.size)
        assert sizes[:10] == list(range(1, 11))
        assert 16 <= max(sizes) <= 40
        # So few are kept however large they are: steps that alternate do not plan anew.
        before = sess.plan_cache.misses
        for _ in range(3):
            for y in ys[50:]:
                sess.run(y, {x: 1.0})
        assert sess.plan_cache.misses == before + 1


@pytest.mark.slow
def test_many_lists_of_fetches_leave_a_bounded_number_of_plans_alive():
    import gc

    xs = [fs.constant(float(i)) for i in range(101)]
    with fs.Session(config=fs.ConfigProto(plan_cache_size=64)) as sess:
        held = sess.make_callable([xs[7], xs[3]])
        for n in range(2000):
            a, b = divmod(n, 100)
            assert sess.run([xs[a], xs[b], xs[100]]) == [a, b, 100.0]
        info = sess.plan_cache
        assert info.misses == 2001 and info.size <= 64
        gc.collect()
        plans = [o for o in gc.get_objects() if type(o) is fs.plan.plan.Plan]
        mine = [p for p in plans if p.request.fetches[0].graph is sess.graph]
        assert len(mine) <= 64 + 2
        assert held() == [7.0, 3.0]
        assert sess.plan_cache.misses == 2001


def test_plans_of_what_is_gone_are_let_go(graph):
    """A notebook in which one cell is edited again and again does not grow."""
    import gc
    import weakref

    x = fs.placeholder(fs.float32, [], name="x")
    other = fs.negative(x)
    with fs.Session() as sess:

        def build(k):
            with graph.cell("a"):
                y = fs.exp(x * k, name=f"y{k}")
            assert len(sess.run([y, other], {x: 0.0})) == 2
            handle = sess.partial_run_setup([y], [x])
            assert sess.partial_run(handle, y, {x: 0.0}) == 1.0
            return weakref.ref(y.op), weakref.ref(sess.latest_plan)

        sess.run(other, {x: 0.0})
        kept = sess.plan(other, [x])
        refs = [build(float(k)) for k in range(5)]
        gc.collect()
        assert [(op() is None, plan() is None) for op, plan in refs] == [(True, True)] * 4 + [
            (False, False)
        ]
        assert sess.plan_cache.size == 2
        assert sess.plan(other, [x]) is kept


def test_a_cache_too_small_is_refused():
    with pytest.raises(ValueError, match="plan_cache_size of 2 or more, got 1"):
        fs.Session(config=fs.ConfigProto(plan_cache_size=1))


def test_a_callable_outlives_the_cache():
    xs = [fs.constant(float(i)) for i in range(9)]
    with fs.Session(config=fs.ConfigProto(plan_cache_size=2)) as sess:
        call = sess.make_callable(xs[3])
        for x in xs:
            sess.run(x)
        before = sess.plan_cache.misses
        assert call() == 3
        assert sess.plan_cache.misses == before


def test_fetches_of_other_structures_are_other_calls(sess):
    x = fs.constant(1.0)
    assert sess.run(x) == 1 and sess.run([x]) == [1] and sess.run((x,)) == (1,)
    assert sess.run({"a": x}) == {"a": 1}


@pytest.mark.parametrize("bad", [{1}, 3, "ab"])
def test_feeds_that_are_no_dict_are_refused(sess, bad):
    x = fs.placeholder(fs.float32, [])
    with pytest.raises(TypeError, match="expected feed_dict to be a dict"):
        sess.run(x, bad)
    with pytest.raises(TypeError, match="expected feed_dict to be a dict"):
        sess.run(x, bad, run_metadata=fs.RunMetadata())
