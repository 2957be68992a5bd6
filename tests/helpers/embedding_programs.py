"""Losses of lookups in bodies; a table that is trained on them has the values of TensorFlow 2.21.

Run with TensorFlow's Python, the script prints the data: `python embedding_programs.py > FILE`.
TensorFlow 1's branches train all rows, for the gradient of a branch that is not taken is a dense
zero there. So the value for `branch` and `nest` is that of the branch alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("trained_embeddings.json")
#: Rows 2 and 4 are never looked up; row 0 always is, which TensorFlow's loops always update.
FEEDS = [[1, 3, 0], [3, 3, 0], [1, 0, 1]]
ROWS, WIDTH = 5, 2
START = [[(WIDTH * r + c) * 2 / 9 - 1 for c in range(WIDTH)] for r in range(ROWS)]


def programs(tf: Any, has_branches: bool = True) -> dict[str, Callable[[Any, Any], Any]]:
    """Returns functions of (table, ids) that return a loss.

    Args:
        tf: The library.
        has_branches: Whether branches are branches: else what they return when they are taken.
    """

    def loop(v: Any, ids: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            a = tf.nn.embedding_lookup(v, ids[i])
            b = tf.gather(v, [0])
            return i + 1, s + tf.reduce_sum(a * a) + tf.reduce_sum(b) * tf.cast(i, tf.float32)

        return tf.while_loop(lambda i, s: i < 3, body, [0, 0.0])[1]

    def branch(v: Any, ids: Any) -> Any:
        def then() -> Any:
            return tf.reduce_sum(tf.gather(v, ids) ** 2)

        def other() -> Any:
            return tf.reduce_sum(tf.gather(v, [4]))

        return tf.cond(tf.size(ids) > 1, then, other) if has_branches else then()

    def mapped(v: Any, ids: Any) -> Any:
        cubes = tf.map_fn(lambda i: tf.reduce_sum(tf.gather(v, i) ** 3), ids, dtype=tf.float32)
        return tf.reduce_sum(cubes)

    def scanned(v: Any, ids: Any) -> Any:
        return tf.reduce_sum(
            tf.scan(lambda s, i: 0.5 * s + tf.gather(v, i) ** 2, ids, tf.zeros([WIDTH]))
        )

    def nest(v: Any, ids: Any) -> Any:
        if not has_branches:
            return branch(v, ids) + mapped(v, ids)

        def body(i: Any, s: Any) -> Any:
            return i + 1, s + tf.cond(i > 0, lambda: branch(v, ids), lambda: mapped(v, ids))

        return tf.while_loop(lambda i, s: i < 2, body, [0, 0.0])[1]

    def positions(v: Any, ids: Any) -> Any:
        return tf.reduce_sum(tf.gather_nd(v, ids[:, None]) ** 2)

    return {f.__name__: f for f in (loop, branch, mapped, scanned, nest, positions)}


def optimizers(tf: Any) -> dict[str, Any]:
    """Returns optimizers by name."""
    train = tf.train
    return {
        "GradientDescent": train.GradientDescentOptimizer(0.1),
        "Momentum": train.MomentumOptimizer(0.1, 0.9),
        "Adam": train.AdamOptimizer(0.1),
        "Adagrad": train.AdagradOptimizer(0.1),
        "RMSProp": train.RMSPropOptimizer(0.1, momentum=0.5),
        "Ftrl": train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    }


def trained(
    tf: Any, program: str, optimizer: str, has_branches: bool = True, **options: Any
) -> Any:
    """Returns a table after three steps of training, and the gradient's class.

    Args:
        tf: The library.
        program: A key of `programs`.
        optimizer: A key of `optimizers`.
        has_branches: See `programs`.
        options: Of the session.
    """
    with tf.Graph().as_default():
        start = tf.constant_initializer(START)
        v = tf.get_variable("v", [ROWS, WIDTH], initializer=start, use_resource=True)
        ids = tf.placeholder(tf.int32, [3])
        loss = programs(tf, has_branches)[program](v, ids)
        made = optimizers(tf)[optimizer]
        ((g, _),) = pairs = made.compute_gradients(loss, [v])
        step = made.apply_gradients(pairs)
        with tf.Session(**options) as session:
            session.run(tf.global_variables_initializer())
            for feed in FEEDS:
                session.run(step, {ids: feed})
            return session.run(v), type(g).__name__


def main() -> None:
    """Prints TensorFlow's tables."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    found = {
        f"{p}/{o}": trained(tf, p, o, has_branches=False)[0].round(6).tolist()
        for p in programs(tf)
        for o in optimizers(tf)
    }
    lines = [f"{json.dumps(k)}: {json.dumps([[float(f'{x:.6f}') for x in r] for r in v])}"
             for k, v in found.items()]  # fmt: skip
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
