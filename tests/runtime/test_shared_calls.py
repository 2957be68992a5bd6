"""Blocks of a batch that oneDNN computes on several threads have the bits of one thread."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops.kernels import onednn
from flowscope.runtime.session import engine
from flowscope.runtime.threads import matrix_products

pytest.importorskip("llvmlite")
MODES = ["compiled", "op", "tokens"]
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def pool():
    """The threads of the process's engine: two at least."""
    if onednn.library() is None:
        pytest.skip("needs oneDNN")
    found = engine.current().pool
    before = found.size
    found.size = max(2, before)
    if not found.products.compile():
        pytest.skip("needs OpenBLAS")
    yield found
    found.size = before
    found.products.stop()


def step(batch):
    """Returns fetches and feeds of convolutions and pools with their gradients."""
    x = fs.placeholder(fs.float32, [batch, 28, 28, 3])
    k, d = fs.placeholder(fs.float32, [3, 3, 3, 16]), fs.placeholder(fs.float32, [3, 3, 16, 1])
    y = fs.nn.max_pool(fs.nn.conv2d(x, k, [1, 1, 1, 1], "SAME"), 3, 2, "SAME")
    y = fs.nn.avg_pool(fs.nn.depthwise_conv2d(y, d, [1, 1, 1, 1], "SAME"), 2, 2, "VALID")
    feeds = {t: RNG.standard_normal(t.shape.as_list()).astype("f4") for t in (x, k, d)}
    return [y, *fs.gradients(fs.square(y), [x, k, d])], feeds


@pytest.mark.parametrize("batch", [32, 31, 3])
@pytest.mark.parametrize("mode", MODES)
def test_the_bits_are_those_of_one_thread(graph, pool, mode, batch):
    fetches, feeds = step(batch)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        shared = [sess.run(fetches, feeds) for _ in range(4)]
        assert pool.products.threads or batch == 3, "helpers were asked"
        pool.size = 1
        alone = sess.run(fetches, feeds)
    for run in shared:
        for a, b in zip(run, alone, strict=True):
            np.testing.assert_array_equal(a, b)


def test_blocks_that_are_late_are_computed_once_more(graph, pool, monkeypatch):
    monkeypatch.setattr(matrix_products, "_CALL_PATIENCE_S", 0.0)
    late, native = [], pool.products._pool
    run = native.run

    def noted(*args):
        late.append(run(*args))
        return late[-1]

    monkeypatch.setattr(native, "run", noted)
    fetches, feeds = step(32)
    with fs.Session() as sess:
        first = sess.run(fetches, feeds)
        for _ in range(300):
            for a, b in zip(sess.run(fetches, feeds), first, strict=True):
                np.testing.assert_array_equal(a, b)
            if any(bits > 0 for bits in late):
                break
    assert any(bits > 0 for bits in late)


def test_openmp_keeps_its_threads_outside(graph):
    library = onednn.library()
    before = library.c.omp_get_max_threads()
    library.c.omp_set_num_threads(3)
    fetches, feeds = step(8)
    with fs.Session() as sess:
        sess.run(fetches, feeds)
    assert library.c.omp_get_max_threads() == 3
    library.c.omp_set_num_threads(before)


def test_a_call_that_fails_is_told():
    library = onednn.library()
    call = onednn.Calls(library, [])
    call.words.append((library.execute, 0, 0, 0, 0))
    with pytest.raises(onednn.RefusedByOneDnn, match="primitive_execute"):
        onednn.run(call)
