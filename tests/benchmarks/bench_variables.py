"""A million additions to a variable from two threads, and the time of saving and restoring.

python tests/benchmarks/bench_variables.py [additions]
"""

import os
import sys
import tempfile
import threading
import time

import numpy as np

import flowscope as fs


def additions(count: int, shape: tuple[int, ...]) -> None:
    """Adds one `count` times, half of it from each of two threads, and checks the sum."""
    with fs.Graph().as_default(), fs.Session() as sess:
        v = fs.Variable(np.zeros(shape, np.int64))
        add = sess.make_callable(v.assign_add(np.ones(shape, np.int64)).op)
        sess.run(v.initializer)

        def half() -> None:
            for _ in range(count // 2):
                add()

        threads = [threading.Thread(target=half) for _ in range(2)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        seconds = time.perf_counter() - start
        total = sess.run(v)
    lost = count - total
    assert np.all(lost == 0), f"lost {lost}"
    print(f"assign_add {list(shape)}: {count} in {seconds:.2f} s, {seconds / count * 1e6:.2f} us")


def checkpoints(mebibytes: int) -> None:
    """Saves and restores variables of this size in all."""
    with fs.Graph().as_default(), fs.Session() as sess, tempfile.TemporaryDirectory() as folder:
        for i in range(16):
            fs.Variable(fs.ones([mebibytes // 16, 1 << 18]), name=f"v{i}")
        sess.run(fs.global_variables_initializer())
        saver = fs.train.Saver()
        start = time.perf_counter()
        path = saver.save(sess, os.path.join(folder, "model"))
        saved = time.perf_counter()
        saver.restore(sess, path)
        restored = time.perf_counter()
    print(f"{mebibytes} MiB: saved in {saved - start:.2f} s, restored in {restored - saved:.2f} s")


def many(count: int) -> None:
    """Saves and restores many small variables."""
    with fs.Graph().as_default(), fs.Session() as sess, tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            fs.Variable(0.0, name=f"v{i}")
        sess.run(fs.global_variables_initializer())
        start = time.perf_counter()
        saver = fs.train.Saver()
        built = time.perf_counter()
        path = saver.save(sess, os.path.join(folder, "model"), write_meta_graph=False)
        saved = time.perf_counter()
        saver.restore(sess, path)
        restored = time.perf_counter()
    print(
        f"{count} scalars: built in {built - start:.2f} s, saved in {saved - built:.2f} s, "
        f"restored in {restored - saved:.2f} s"
    )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    additions(count, ())
    additions(count // 10, (1000,))
    checkpoints(256)
    many(3000)
