"""Strings keep every byte, whatever way they go: NULs at the end, no UTF-8, nothing at all."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

MODES = ["compiled", "op", "tokens"]
#: What is hard to keep: NULs at the ends and alone, bytes that are no text, nothing.
HARD = [b"a\0", b"a", b"\0\0", b"", b"\xff\0", "é".encode() + b"\0", b"\0a"]


def session(mode):
    return fs.Session(config=fs.ConfigProto(mode=mode))


def objects(values):
    out = np.empty(np.shape(values)[:1], object)
    out[:] = values
    return out


def same(got, wanted):
    """Checks a fetched value: bytes for rank 0, else an array of bytes objects."""
    if isinstance(wanted, bytes):
        assert type(got) is bytes
        assert got == wanted
    else:
        assert isinstance(got, np.ndarray)
        assert got.dtype == object
        assert all(type(v) is bytes for v in got.reshape(-1))
        assert got.tolist() == list(wanted)


def lists():
    rng = np.random.RandomState(0)
    yield HARD
    for _ in range(20):
        n = rng.randint(1, 6)
        yield [bytes(rng.choice([0, 0, 97, 98, 255], rng.randint(0, 5)).tolist()) for _ in range(n)]


def _loop(x):
    return fs.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, fs.identity(s)), [0, x])[1]


def _queue(x):
    queue = fs.FIFOQueue(10, [fs.string], shapes=None if x.shape.rank else [()])
    with fs.control_dependencies([queue.enqueue(x)]):
        return queue.dequeue()


def _queue_many(x):
    queue = fs.FIFOQueue(100, [fs.string], shapes=[()])
    with fs.control_dependencies([queue.enqueue_many(x)]):
        return queue.dequeue_many(fs.size(x))


def _array(x):
    array = fs.TensorArray(fs.string, fs.size(x), element_shape=[]).unstack(x)
    return array.stack()


def _appended(x):
    array = fs.TensorArray(fs.string, 0, dynamic_size=True, infer_shape=False)
    body = lambda i, a: (i + 1, a.write(i, x[i]))  # noqa: E731
    return fs.while_loop(lambda i, a: i < fs.size(x), body, [0, array])[1].stack()


def _recorded(x):
    def body(i):
        fs.add_to_collection("recorded", fs.record(x[i]))
        return i + 1

    fs.while_loop(lambda i: i < fs.size(x), body, [0])
    return fs.get_collection("recorded")[-1]


#: Ways of a vector that give the same vector.
WAYS = {
    "identity": fs.identity,
    "py_func": lambda x: fs.py_func(lambda v: v, [x], fs.string),
    "py_func list": lambda x: fs.py_func(lambda v: [v.tolist()], [x], [fs.string])[0],
    "cond": lambda x: fs.cond(fs.size(x) > 0, lambda: fs.identity(x), lambda: x),
    "case": lambda x: fs.case([(fs.size(x) > 0, lambda: fs.identity(x))], lambda: x),
    "while": _loop,
    "queue": _queue,
    "queue many": _queue_many,
    "array": _array,
    "array in a loop": _appended,
    "reshape": lambda x: fs.reshape(fs.reshape(x, [1, -1]), [-1]),
    "expand": lambda x: fs.squeeze(fs.expand_dims(x, 0), 0),
    "concat": lambda x: fs.concat([x[:1], x[1:]], 0),
    "gather": lambda x: fs.gather(x, fs.range(fs.size(x))),
    "gather_nd": lambda x: fs.gather_nd(x, fs.range(fs.size(x))[:, None]),
    "stack": lambda x: fs.unstack(fs.stack([x, x]))[1],
    "where": lambda x: fs.where(fs.equal(x, x), x, fs.fill(fs.shape(x), "no")),
    "where_v2": lambda x: fs.where_v2(fs.equal(x, x), x, "no"),
    "boolean_mask": lambda x: fs.boolean_mask(x, fs.equal(x, x)),
    "tile": lambda x: fs.tile(x, [2])[: fs.size(x)],
    "broadcast_to": lambda x: fs.broadcast_to(x, [2, fs.size(x)])[1],
    "reverse": lambda x: fs.reverse(fs.reverse(x, [0]), [0]),
    "transpose": lambda x: fs.transpose(fs.transpose(x[None]))[0],
    "pad": lambda x: fs.pad(x, [[1, 2]], constant_values="p")[1:-2],
    "roll": lambda x: fs.roll(fs.roll(x, 1, 0), -1, 0),
    "map_fn": lambda x: fs.map_fn(fs.identity, x),
    "string_join": lambda x: fs.string_join([x, ""]),
    "string_join separator": lambda x: fs.substr(
        fs.string_join([x, "z"], "\0"), 0, fs.strings.length(x)
    ),
    "base64": lambda x: fs.decode_base64(fs.encode_base64(x)),
    "substr": lambda x: fs.substr(x, 0, fs.strings.length(x)),
    "as_string": fs.as_string,
    "add": lambda x: x + fs.constant([""]),
    "partition": lambda x: fs.dynamic_partition(x, fs.zeros_like(x, fs.int32), 2)[0],
    "stitch": lambda x: fs.dynamic_stitch([fs.range(fs.size(x))], [x]),
    "sparse": lambda x: fs.sparse_to_dense(fs.range(fs.size(x)), [fs.size(x)], x, ""),
    "print": lambda x: fs.Print(x, [], first_n=0),
    "placeholder_with_default": lambda x: fs.placeholder_with_default(x, [None]),
    "unique": lambda x: fs.gather(*fs.unique(x)),
    "reduce_join": lambda x: fs.reduce_join(x[:, None], 1),
    "regex_replace": lambda x: fs.regex_replace(x, "z", "y"),
    "record": _recorded,
    "function": lambda x: fs.function(fs.identity)(x),
    "slice": lambda x: fs.slice(x, [0], [-1]),
    "split": lambda x: fs.split(fs.concat([x, x], 0), 2)[0],
}
#: Ways of a scalar that give it as a scalar again.
SCALAR_WAYS = {
    "identity": fs.identity,
    "py_func": lambda x: fs.py_func(lambda v: v, [x], fs.string),
    "py_func np.bytes_": lambda x: fs.py_func(lambda v: np.bytes_(v), [x], fs.string),
    "cond": lambda x: fs.cond(fs.equal(x, x), lambda: fs.identity(x), lambda: x),
    "while": _loop,
    "queue": _queue,
    "stack": lambda x: fs.stack([x, "b"])[0],
    "concat": lambda x: fs.concat([[x], ["b"]], 0)[0],
    "reshape": lambda x: fs.reshape(x, [1])[0],
    "expand": lambda x: fs.squeeze(fs.expand_dims(x, 0)),
    "broadcast_to": lambda x: fs.broadcast_to(x, [2])[1],
    "fill": lambda x: fs.fill([2], x)[1],
    "where": lambda x: fs.where(fs.equal(x, x), x, "no"),
    "where false": lambda x: fs.where(fs.not_equal(x, x), "no", x),
    "where_v2": lambda x: fs.where_v2(fs.equal(x, x), x, "no"),
    "transpose": fs.transpose,
    "add": lambda x: x + "",
    "as_string": fs.as_string,
    "base64": lambda x: fs.decode_base64(fs.encode_base64(x)),
    "substr": lambda x: fs.substr(x, 0, fs.strings.length(x)),
    "string_join": lambda x: fs.string_join([x, ""]),
    "pad": lambda x: fs.pad(["b"], [[1, 0]], constant_values=x)[0],
    "one_hot": lambda x: fs.one_hot(0, 2, on_value=x, off_value="b", dtype=fs.string)[0],
    "sparse": lambda x: fs.sparse_to_dense([0], [2], ["b"], x)[1],
    "tensor array": lambda x: fs.TensorArray(fs.string, 1).write(0, x).stack()[0],
    "placeholder_with_default": lambda x: fs.placeholder_with_default(x, []),
    "strided_slice": lambda x: x[None][0],
    "ensure_shape": lambda x: fs.ensure_shape(x, []),
    "partition": lambda x: fs.dynamic_partition(x, 0, 2)[0][0],
    "stitch": lambda x: fs.dynamic_stitch([0], [x])[0],
    "tuple": lambda x: fs.tuple([x])[0],
}


@pytest.fixture(autouse=True)
def _graph(graph):
    """A graph for each test."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
def test_vectors_keep_every_byte(way, mode):
    x = fs.placeholder(fs.string, [None])
    y = WAYS[way](x)
    fixed = WAYS[way](fs.constant(HARD))
    with session(mode) as sess:
        same(sess.run(fixed), HARD)
        for values in lists():
            same(sess.run(y, {x: values}), values)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", SCALAR_WAYS)
def test_scalars_keep_every_byte(way, mode):
    x = fs.placeholder(fs.string, [])
    y = SCALAR_WAYS[way](x)
    fixed = [SCALAR_WAYS[way](fs.constant(value)) for value in HARD]
    with session(mode) as sess:
        for value, known in zip(HARD, fixed, strict=True):
            same(sess.run(y, {x: value}), value)
            same(sess.run(known), value)


@pytest.mark.parametrize("mode", MODES)
def test_strings_of_unknown_rank(mode):
    x = fs.placeholder(fs.string)
    results = [
        fs.squeeze(x),
        fs.transpose(x),
        fs.reverse(x, np.zeros(0, np.int32)),
        fs.tile(x, np.zeros(0, np.int32)),
        fs.slice(x, np.zeros(0, np.int32), np.zeros(0, np.int32)),
        fs.pad(x, np.zeros((0, 2), np.int32)),
        fs.reshape(x, np.zeros(0, np.int32)),
        x[...],
    ]
    with session(mode) as sess:
        for got in sess.run(results, {x: b"a\0"}):
            same(got, b"a\0")
        same(sess.run(fs.zeros_like(x), {x: b"a\0"}), b"")
        same(sess.run(x[None], {x: b"a\0"}), [b"a\0"])


@pytest.mark.parametrize("mode", MODES)
def test_comparisons_tell_nuls_from_nothing(mode):
    x, y, v = fs.placeholder(fs.string, []), fs.placeholder(fs.string), fs.constant(["a", "a\0"])
    found = [fs.equal(x, y), fs.not_equal(x, y), fs.equal(x, v), fs.not_equal(v, y)]
    with session(mode) as sess:
        got = sess.run(found, {x: "a\0", y: "a"})
        assert [np.asarray(g).tolist() for g in got] == [False, True, [False, True], [False, True]]
        assert [type(g) for g in got[:2]] == [np.bool_, np.bool_]
        hashes = [fs.string_to_hash_bucket, fs.string_to_hash_bucket_fast]
        for value in [h(v, 1 << 40) for h in hashes] + [fs.unique(v)[1]]:
            a, b = sess.run(value)
            assert a != b


def test_zeros_of_strings_are_empty(sess):
    x = fs.constant(["a", "b"])
    same(sess.run(fs.pad(x, [[1, 1]])), [b"", b"a", b"b", b""])
    same(sess.run(fs.dynamic_stitch([[0, 2]], [x])), [b"a", b"", b"b"])
    same(sess.run(fs.scatter_nd([[1], [3], [3]], ["a", "b", "c"], [4])), [b"", b"a", b"", b"bc"])
    same(sess.run(fs.space_to_batch_nd([x], [2], [[1, 1]]))[0], [b"", b"b"])
    array = fs.TensorArray(fs.string, 2, element_shape=[]).write(1, "a\0")
    same(sess.run(array.stack()), [b"", b"a\0"])
    for refused in (fs.matrix_diag, lambda v: fs.matrix_band_part([v], 0, 0), fs.diag):
        with pytest.raises(DTypeError, match="got string"):
            refused(x)
    with pytest.raises(DTypeError, match=r"see fs\.fill"):
        fs.ones([2], fs.string)


#: What may be fed and made constants of, and what it stands for.
FORMS = [
    ([b"a\0", "é\0"], [b"a\0", b"\xc3\xa9\0"]),
    ([np.bytes_(b"\xff\0"), np.str_("b\0")], [b"\xff\0", b"b\0"]),
    ((b"\0", ""), [b"\0", b""]),
    (objects([b"a\0", "é"]), [b"a\0", b"\xc3\xa9"]),
    (np.array(["a", "bé"]), [b"a", b"b\xc3\xa9"]),
    (np.array([b"a", b"b\xff"]), [b"a", b"b\xff"]),
    (["é", b"\xff"], [b"\xc3\xa9", b"\xff"]),
    (np.array(["a\0", "é"], np.dtypes.StringDType()), [b"a\0", b"\xc3\xa9"]),
    ([], []),
    (np.array([]), []),
]  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), FORMS)
def test_forms_of_strings(sess, given, wanted):
    x = fs.placeholder(fs.string, [None])
    same(sess.run(x, {x: given}), wanted)
    same(sess.run(fs.identity(x), {x: given}), wanted)
    same(sess.run(fs.constant(given, fs.string)), wanted)
    same(sess.run(fs.py_func(lambda: given if isinstance(given, np.ndarray) else [given],
                             [], [fs.string])[0]), wanted)  # fmt: skip


@pytest.mark.parametrize("given", [b"a\0", "a\0", np.bytes_(b"a\0"), np.str_("a\0"),
                                   np.array(b"a\0", object), np.array("a\0", object)])  # fmt: skip
def test_forms_of_a_string(sess, given):
    x = fs.placeholder(fs.string, [])
    same(sess.run(x, {x: given}), b"a\0")
    same(sess.run(fs.constant(given)), b"a\0")
    same(sess.run(fs.constant(given, shape=[2])), [b"a\0"] * 2)
    same(sess.run(fs.py_func(lambda: given, [], fs.string)), b"a\0")
    same(fs.get_static_value(fs.constant(given)), b"a\0")


REFUSED = [
    (["a", "\ud800"], r"text that UTF-8 can hold, got '\\ud800' with lone surrogates"),
    ([1, "a"], r"expected (strings|numbers, strings or tensors), got \[1, 'a'\]"),
    ([None, "a"], r"expected (strings|numbers, strings or tensors), got \[None, 'a'\]"),
    ([["a"], ["b", "c"]], "in a regular shape"),
    ([1, 2], r"got \[1, 2\]"),
    ([b"\xff", "é", 1.5], r"got \[b'\\xff', 'é', 1.5\]"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_is_no_string_is_refused(sess, given, message):
    x = fs.placeholder(fs.string, [None])
    with pytest.raises((DTypeError, InvalidArgumentError), match=message) as e:
        sess.run(x, {x: given})
    assert str(e.value).startswith('cannot feed "')
    with pytest.raises((DTypeError, InvalidArgumentError), match=message):
        fs.constant(given, fs.string)
    with pytest.raises(InvalidArgumentError, match=message):
        sess.run(fs.py_func(lambda: [given], [], [fs.string]))


@pytest.mark.parametrize("mode", MODES)
def test_variables_keep_every_byte(mode, tmp_path):
    v, s = fs.Variable(HARD, name="v"), fs.Variable(b"s\0", name="s")
    x = fs.placeholder(fs.string)
    assign, set_s = fs.assign(v, x), s.assign(x)
    put = fs.scatter_update(v, [0], ["é\0"])
    part, saver = v[1].assign(b"\xff\0"), fs.train.Saver()
    with session(mode) as sess:
        sess.run(fs.global_variables_initializer())
        same(sess.run(v), HARD)
        same(sess.run(s), b"s\0")
        path = saver.save(sess, str(tmp_path / "model"))
        for values in [[b"%d\0" % i] * len(HARD) for i in range(3)]:
            same(sess.run(assign, {x: values}), values)
        same(sess.run(set_s, {x: b"\0"}), b"\0")
        sess.run(put)
        sess.run(part)
        same(sess.run(v)[:3], ["é".encode() + b"\0", b"\xff\0", b"2\0"])
        saver.restore(sess, path)
        same(sess.run(v), HARD)
        same(sess.run(s), b"s\0")


def test_graphs_keep_every_byte():
    fs.constant(HARD, name="v")
    fs.constant(b"s\0", name="s")
    fs.strings.join(["a", "b"], "\0", name="joined")
    written = fs.get_default_graph().as_graph_def()
    forms = (fs.GraphDef.from_json(written.to_json()), fs.GraphDef.from_text(written.text()))
    read = [written, *forms]
    for one in read:
        with fs.Graph().as_default() as g, fs.Session() as sess:
            fs.import_graph_def(one, name="")
            same(sess.run("v:0"), HARD)
            same(sess.run("s:0"), b"s\0")
            same(sess.run("joined:0"), b"a\0b")
            assert [n.attr for n in g.as_graph_def().node] == [n.attr for n in written.node]


def test_traces_count_the_bytes_of_strings(sess):
    x = fs.placeholder(fs.string, [])
    metadata = fs.RunMetadata()
    sess.run(x, {x: "abc"}, fs.RunOptions(), metadata)
    assert metadata.step_stats.feeds[0].nbytes == metadata.step_stats.fetched_bytes == 3
