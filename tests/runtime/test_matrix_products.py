"""Products that threads share have the bits of one thread, and leave nothing behind."""

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs
from flowscope.ops.kernels import sharing
from flowscope.runtime.session import engine
from flowscope.runtime.threads import blas, matrix_products
from flowscope.runtime.threads.matrix_products import MatrixProducts

pytest.importorskip("llvmlite")

MODES = ["compiled", "op", "tokens"]
RNG = np.random.default_rng(0)


@pytest.fixture
def shared():
    found = MatrixProducts()
    if not found.compile():
        pytest.skip("needs OpenBLAS")
    with blas.one_thread:  # as steps have it
        yield found
    found.stop()


@pytest.fixture
def process_shared():
    """The products of the process's engine, with two threads at least."""
    pool = engine.current().pool
    before = pool.size
    pool.size = max(2, before)
    if not pool.products.compile():
        pytest.skip("needs OpenBLAS")
    yield pool.products
    pool.size = before
    pool.products.stop()


def matrix(rows, columns, dtype="f4", transposed=False):
    if transposed:
        return RNG.standard_normal((columns, rows)).astype(dtype).T
    return RNG.standard_normal((rows, columns)).astype(dtype)


def on_one_thread(a, b):
    with blas.one_thread:
        return np.matmul(a, b)


def often(shared, a, b, threads=2, times=8):
    """Returns the products of several calls, those that were shared."""
    with blas.one_thread:
        found = [shared.product(a, b, threads) for _ in range(times)]
    return [f for f in found if f is not None]


LAYOUTS = [(False, False), (True, False), (False, True), (True, True)]
SIZES = [(96, 512, 384), (512, 96, 384), (128, 784, 256), (97, 211, 301), (64, 1500, 65)]


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", SIZES)
def test_the_bits_are_those_of_one_thread(shared, size, layout, dtype, threads):
    m, k, n = size
    a, b = matrix(m, k, dtype, layout[0]), matrix(k, n, dtype, layout[1])
    whole = on_one_thread(a, b)
    for found in often(shared, a, b, threads):
        np.testing.assert_array_equal(found, whole)
        assert found.flags.c_contiguous
        assert found.dtype == whole.dtype


def test_the_usual_products_are_shared(shared):
    for m, k, n in [(96, 512, 384), (256, 1024, 512), (512, 1024, 512)]:
        for layout in LAYOUTS[:3]:
            a, b = matrix(m, k, "f4", layout[0]), matrix(k, n, "f4", layout[1])
            assert len(often(shared, a, b)) > 2, (m, k, n, layout)


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(2, 400), k=st.integers(2, 400), n=st.integers(2, 400), data=st.data(),
    dtype=st.sampled_from(["f4", "f8"]), threads=st.integers(2, 4),
)  # fmt: skip
def test_random_products(m, k, n, data, dtype, threads):
    shared = _made.setdefault("shared", MatrixProducts())
    if not (_made.get("ready") or shared.compile()):
        pytest.skip("needs OpenBLAS")
    _made["ready"] = True
    a, b = (matrix(*size, dtype, data.draw(st.booleans())) for size in ((m, k), (k, n)))
    if data.draw(st.booleans()):  # part of a larger matrix
        a = np.concatenate([a, a], 1)[:, :k]
    whole = on_one_thread(a, b)
    for found in often(shared, a, b, threads, 5):
        np.testing.assert_array_equal(found, whole)


_made = {}


@pytest.mark.parametrize("mode", MODES)
def test_steps_in_all_modes(graph, process_shared, mode):
    x, w = fs.placeholder(fs.float32, [96, 512]), fs.placeholder(fs.float32, [512, 384])
    h = fs.matmul(x, w)
    fetches = [h, *fs.gradients(h * h, [x, w])]
    feeds = {x: matrix(96, 512), w: matrix(512, 384)}
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        runs = [sess.run(fetches, feeds) for _ in range(8)]
    expected = on_one_thread(feeds[x], feeds[w])
    assert process_shared.threads, "helpers were asked"
    for run in runs:
        np.testing.assert_array_equal(run[0], expected)
        for one, other in zip(run, runs[0], strict=True):
            np.testing.assert_array_equal(one, other)


def test_einsum_shares_too(graph, process_shared):
    x, w = fs.placeholder(fs.float32, [96, 512]), fs.placeholder(fs.float32, [512, 384])
    feeds = {x: matrix(96, 512), w: matrix(512, 384)}
    with fs.Session() as sess:
        runs = [sess.run(fs.einsum("ij,jk->ik", x, w), feeds) for _ in range(3)]
        y = fs.einsum("ij,jk->ik", x, w)
        runs += [sess.run(y, feeds) for _ in range(5)]
    assert process_shared.threads
    for run in runs:
        np.testing.assert_array_equal(run, runs[0])


def test_what_is_no_case_for_it_is_left_alone(shared):
    a = matrix(300, 300)
    product = a @ a.T  # BLAS has a function of its own for a matrix and its transpose
    assert often(shared, a, a.T) == []
    np.testing.assert_array_equal(product, product.T)
    spread = matrix(300, 900)[:, ::3]
    assert often(shared, spread, a) == [], "its columns are apart"
    assert often(shared, np.broadcast_to(a[0], (300, 300)), a) == []
    assert often(shared, matrix(1 << 14, 64), matrix(64, 1)) == [], "a vector"
    odd = np.zeros(4 * 90_000 + 1, np.uint8)[1:].view("f4").reshape(300, 300)
    assert often(shared, odd, a) == [], "it is not aligned"


@pytest.mark.parametrize("swapped", ["left", "right", "both"])
def test_numbers_in_the_other_order_of_bytes(graph, process_shared, swapped):
    a, b = matrix(96, 512), matrix(512, 384)
    x = a.astype(">f4") if swapped in ("left", "both") else a
    y = b.astype(">f4") if swapped in ("right", "both") else b
    whole = sharing.matrix_product(np, x, y)
    p, q = fs.placeholder(fs.float32, [96, 512]), fs.placeholder(fs.float32, [512, 384])
    c = fs.matmul(p, q)
    with fs.Session() as sess:
        for _ in range(5):
            sess.run(c, {p: a, q: b})
            np.testing.assert_allclose(sess.run(c, {p: x, q: y}), whole, rtol=1e-4, atol=1e-3)


def test_the_caller_does_not_wait_for_a_helper_that_is_late(shared):
    """Without patience every block that a helper is in the middle of counts as late."""
    a, b = matrix(256, 1024), matrix(1024, 512)
    whole = on_one_thread(a, b)
    assert often(shared, a, b)
    (cut,) = (c for c in shared._cuts.values() if type(c) is not int)
    cut.recipe[0][matrix_products.RECIPE.index("patience")] = 0
    late, run = [], shared._pool.run

    def noted(*args):
        late.append(run(*args))
        return late[-1]

    shared._pool.run = noted
    for _ in range(400):
        found = shared.product(a, b, 2)
        if found is None:  # the helper is still at the last one
            found = on_one_thread(a, b)
        np.testing.assert_array_equal(found, whole)
        if any(bits > 0 for bits in late) and -1 in late:
            break
    assert any(bits > 0 for bits in late)
    cut.recipe[0][matrix_products.RECIPE.index("patience")] = 10**8
    while shared._pool.run(cut.recipe, a, b, np.empty_like(whole), 1):
        pass
    assert not shared._pool._lent, "once the helper has left, nothing is kept"


def test_what_is_lent_is_let_go_once_the_helper_has_left(shared):
    a, b = matrix(256, 1024), matrix(1024, 512)
    assert often(shared, a, b)
    (cut,) = (c for c in shared._cuts.values() if type(c) is not int)
    cut.recipe[0][matrix_products.RECIPE.index("patience")] = 0
    while not shared._pool._lent:
        shared.product(a, b, 2)
    while shared._pool._lent:
        shared.settle()
    cut.recipe[0][matrix_products.RECIPE.index("patience")] = 10**8
    assert shared.product(a, b, 2) is not None, "no helper is at work"


def test_several_threads_may_multiply(shared):
    pairs = [(matrix(96, 512), matrix(512, 384)) for _ in range(4)]
    wholes = [on_one_thread(*pair) for pair in pairs]
    wrong = []

    def work(pair, whole):
        for _ in range(50):
            found = shared.product(*pair, 2)
            if found is not None and not np.array_equal(found, whole):
                wrong.append(pair)

    threads = [threading.Thread(target=work, args=args) for args in zip(pairs, wholes, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def native_threads():
    return [t for t in threading.enumerate() if t.name.startswith("flowscope-native")]


def test_threads_end_with_their_owner(shared):
    a, b = matrix(96, 512), matrix(512, 384)
    others = set(native_threads())
    mine = MatrixProducts()
    mine.compile()
    assert often(mine, a, b)
    begun = set(native_threads()) - others
    assert len(begun) == 1
    mine.stop()
    assert not begun & set(native_threads())
    assert often(mine, a, b), "a later product starts others"
    begun = set(native_threads()) - others
    del mine
    gc.collect()
    assert not begun & set(native_threads())


def test_a_thread_that_has_nothing_to_do_ends(monkeypatch):
    make = matrix_products.NativePool
    monkeypatch.setattr(matrix_products, "NativePool", lambda sizes: make(sizes, idle_s=0.02))
    shared = MatrixProducts()
    if not shared.compile():
        pytest.skip("needs OpenBLAS")
    a, b = matrix(96, 512), matrix(512, 384)
    for _ in range(3):
        assert often(shared, a, b)
        for thread in shared.threads:
            thread.join(30)
        assert shared.threads == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own(shared):
    a, b = matrix(96, 512), matrix(512, 384)
    whole = on_one_thread(a, b)
    for _ in range(10):  # a helper may be inside BLAS when the process is forked
        assert often(shared, a, b)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            child = os.fork()
        if not child:
            signal.alarm(120)  # ends it where a lock of BLAS was copied while it was held
            code = 1
            try:
                code = 0 if all(np.array_equal(f, whole) for f in often(shared, a, b)) else 2
                shared.stop()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


PROGRAM = """
import numpy as np, flowscope as fs
x = fs.placeholder(fs.float32, [96, 512])
w = fs.constant(np.ones((512, 384), np.float32))
y = fs.matmul(x, w)
sess = fs.Session()
pool = sess.engine.pool
pool.size = 2
{before}
for _ in range(8):
    assert (sess.run(y, {{x: np.ones((96, 512))}}) == 512).all()
print(len(pool.products.threads))
"""


def run(before):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True
    )


@pytest.mark.slow
def test_a_program_ends_while_helpers_sleep_or_look_for_work():
    done = run("pool.products.compile()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    done = run("")  # and while the code is being compiled
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_without_llvmlite_one_thread_multiplies():
    done = run("import sys; sys.modules['llvmlite'] = None; assert not pool.products.compile()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_one_thread_asked_for_is_one_thread(graph, process_shared):
    pool = engine.current().pool
    pool.size = 1
    assert pool.product(matrix(96, 512), matrix(512, 384)) is None
