"""record: the values that a tensor of a body has had; in nested loops, branches, with limits."""

import numpy as np
import pytest

import flowscope as fs


def powers(x, records, **options):
    """A loop that makes eight powers of x, and records them."""

    def body(i, a):
        b = a * x
        records.append(fs.record(b, **options))
        return i + 1, b

    return fs.while_loop(lambda i, a: i < 8, body, [0, fs.ones_like(x)])


def test_all_values_in_the_order_of_time(sess):
    x, records = fs.placeholder(fs.float64, []), []
    powers(x, records)
    values = fs.convert_to_tensor(records[0])
    assert values.shape.as_list() == [None]
    assert values.dtype is fs.float64
    assert sess.run(records[0], {x: 2}).tolist() == [2, 4, 8, 16, 32, 64, 128, 256]
    assert sess.run(fs.reduce_max(records[0]), {x: 2}) == 256
    assert repr(records[0]) == '<fs.record of "while/body/record:0", float64[] each>'


def test_its_gradients_of_any_order(sess):
    x, records = fs.placeholder(fs.float64, []), []
    powers(x, records)
    (g,) = fs.gradients(fs.reduce_sum(records[0]), x)
    (h,) = fs.gradients(g, x)
    want = [sum(k * 2 ** (k - 1) for k in range(1, 9)),
            sum(k * (k - 1) * 2 ** (k - 2) for k in range(2, 9))]  # fmt: skip
    assert sess.run([g, h], {x: 2}) == want


def test_a_limit_keeps_the_last_values(sess):
    x, records = fs.placeholder(fs.float32, [2]), []
    powers(x, records, limit=3, name="last")
    assert "the last 3" in repr(records[0])
    assert sess.run(records[0], {x: [1, 2]}).tolist() == [[1, 64], [1, 128], [1, 256]]
    with pytest.raises(LookupError, match="a record with a limit has no gradient"):
        fs.gradients(records[0], x)


def test_memory_of_a_limit_stays_constant():
    from flowscope.control.record import Last

    last = Last()
    for i in range(1000):
        last = last.put(i, 10)
        assert last.values(10) == list(range(i, max(i - 10, -1), -1))
    held, newest = 0, [last._newer, last._older]
    for values in newest:
        while values is not None:
            held, values = held + 1, values[1]
    assert held <= 20


def test_buffers_that_are_used_again_do_not_reach_a_record(sess):
    x, both = fs.placeholder(fs.float32, [None]), []

    def body(i, a):
        a = a + x
        a = a * 2.0
        both.extend([fs.record(a), fs.record(a, limit=2)])
        return i + 1, a

    fs.while_loop(lambda i, a: i < 4, body, [0, x])
    want = np.array([4, 10, 22, 46], "f")[:, None] * np.ones(3, "f")
    got = sess.run(both, {x: np.ones(3)})
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], want[-2:])


def test_nested_loops_and_branches(sess):
    n, records = fs.placeholder(fs.int32, []), {}

    def inner(i):
        def body(j, s):
            records["inner"] = fs.record(10 * i + j)
            records["last"] = fs.record(10 * i + j, limit=1)
            return j + 1, s

        return fs.while_loop(lambda j, s: j < i, body, [0, 0])

    def body(i):
        def even():
            records["even"] = fs.record(i)
            return i + 1

        inner(i)
        records["sums"] = fs.reduce_sum(records["inner"]), fs.record(fs.size(records["inner"]))
        return fs.cond(fs.equal(i % 2, 0), even, lambda: i + 1)

    fs.while_loop(lambda i: i < n, body, [0])
    assert sess.run(records["inner"], {n: 4}).tolist() == [10, 20, 21, 30, 31, 32]
    assert sess.run(records["last"], {n: 4}).tolist() == [10, 21, 32]
    assert sess.run(records["even"], {n: 4}).tolist() == [0, 2]
    assert sess.run(records["sums"][1], {n: 4}).tolist() == [0, 1, 2, 3]
    for name in ("inner", "last", "even"):
        assert sess.run(records[name], {n: 0}).shape == (0,)


def test_in_map_fn_and_in_loops_of_functions(sess):
    x, records = fs.constant([1.0, 2.0, 3.0]), []

    def part(v):
        records.append(fs.record(v * v))
        return v

    fs.map_fn(part, x)
    assert sess.run(records[0]).tolist() == [1, 4, 9]

    @fs.function
    def f(a):
        powers(a, records)
        return fs.reduce_sum(records[-1])

    assert sess.run(f(fs.constant(2.0))) == 510
    with pytest.raises(fs.errors.GraphError, match="belong to a call of .* return it from"):
        sess.run(records[-1])


def test_a_plan_that_does_not_read_it_keeps_nothing(graph):
    records = []
    _, y = powers(fs.placeholder(fs.float32, []), records)
    powers(fs.placeholder(fs.float32, []), records, limit=3)
    values = [fs.convert_to_tensor(r) for r in records]
    with fs.Session() as s:
        feeds = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
        assert "kept" in s.plan(values, feeds).text() or "List" in s.plan(values, feeds).text()
        plain = s.plan(y, feeds).text()
        assert "record" not in plain
        assert "last" not in plain


@pytest.mark.parametrize("limit", [0, -1, True, 2.0])
def test_limits_that_are_none(graph, limit):
    with pytest.raises(ValueError, match="expected a limit of 1 at least"):
        powers(fs.constant(1.0), [], limit=limit)


def test_where_there_is_nothing_to_record(graph):
    with pytest.raises(fs.errors.GraphError, match="in the body of a loop only"):
        fs.record(fs.constant(1.0))

    def early(i):
        return i + fs.size(fs.record(i))

    with pytest.raises(fs.errors.GraphError, match="when its loop has ended"):
        fs.while_loop(lambda i: i < 3, early, [0])
    with pytest.raises(TypeError, match="nothing can be recorded"):
        fs.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, fs.record(a.flow) and a),
            [0, fs.TensorArray(fs.int32, 1)],
        )
    with pytest.raises(fs.errors.GraphError, match="leave the limit away"):
        fs.while_loop(
            lambda i: i < 3,
            lambda i: fs.cond(i > 0, lambda: i + fs.size(fs.record(i, limit=1)), lambda: i),
            [0],
        )


def test_values_of_different_shapes(sess):
    records = []

    def body(i, x):
        records.append(fs.record(x))
        return i + 1, fs.concat([x, [1.0]], 0)

    fs.while_loop(lambda i, x: i < 3, body, [0, fs.zeros([0])])
    assert len(records) == 2, "the shapes change, so the body is called again"
    with pytest.raises(ValueError, match=r"one shape, got \[0\], \[1\], \[2\]"):
        sess.run(records[-1])
