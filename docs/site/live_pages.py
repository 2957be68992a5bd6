"""Makes the pages that are embedded in docs/live.md: recorded steps, and the picture of a graph.

Recordings are explored without a kernel: see `fs.save_html`. They need the built front end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel
from flowscope_widgets.saved import saved_picture


def write_live_pages(folder: Path) -> None:
    """Writes the recordings and the picture into a folder."""
    folder.mkdir(parents=True)
    for name, title, record in (
        ("training", "A training step", training),
        ("loop", "A loop with its gradient", loop),
    ):
        with fs.Graph().as_default():
            fs.save_html(record(), folder / f"{name}.html", title)
    with fs.Graph().as_default() as graph:
        training()
        saved = saved_picture(LiveChannel(graph).describe())
        (folder / "picture.svg").write_text(saved["image/svg+xml"], "utf-8")


def training() -> fs.profile:
    """Records three steps of a classifier's training."""
    fs.set_random_seed(0)
    x = fs.placeholder(fs.float32, [None, 64], name="x")
    labels = fs.placeholder(fs.int64, [None], name="labels")
    hidden = fs.layers.dense(x, 48, fs.nn.relu, name="hidden")
    logits = fs.layers.dense(hidden, 10, name="output")
    loss = fs.losses.sparse_softmax_cross_entropy(labels, logits)
    train = fs.train.AdamOptimizer(0.01).minimize(loss, name="train")
    rng = np.random.default_rng(0)
    feed = {x: rng.normal(size=(32, 64)), labels: rng.integers(0, 10, 32)}
    with fs.Session() as session:
        session.run(fs.global_variables_initializer())
        session.debug.record([hidden, logits, loss])
        session.run([train, loss], feed)  # makes the plan
        with fs.profile(session) as profiled:
            for _ in range(3):
                session.run([train, loss], feed)
    return profiled


def loop() -> fs.profile:
    """Records a recurrent network in a loop, and its gradient."""
    fs.set_random_seed(0)
    x = fs.placeholder(fs.float32, [4, 10, 8], name="x")
    outputs, _ = fs.nn.dynamic_rnn(fs.nn.rnn_cell.GRUCell(8), x, dtype=fs.float32)
    loss = fs.reduce_mean(fs.square(outputs), name="loss")
    train = fs.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    feed = {x: np.random.default_rng(0).normal(size=(4, 10, 8))}
    with fs.Session() as session:
        session.run(fs.global_variables_initializer())
        session.debug.record([loss])
        session.run([train, loss], feed)  # makes the plan
        with fs.profile(session) as profiled:
            session.run([train, loss], feed)
    return profiled
