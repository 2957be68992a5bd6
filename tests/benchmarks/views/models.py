"""Twelve models as people write them, for the figures of the picture (`bench_views.py`).

Each function builds its model in the default graph and returns nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowscope as fs

FLOAT = fs.float32


def weights(*shape: int, name: str | None = None) -> Any:
    """Returns a variable with random values."""
    return fs.Variable(fs.random_normal(list(shape), stddev=0.1), name=name)


def mlp_flat() -> None:
    """A perceptron of three layers without a scope, with gradient descent."""
    x = fs.placeholder(FLOAT, [None, 784])
    y = fs.placeholder(fs.int32, [None])
    w1 = weights(784, 256)
    b1 = fs.Variable(fs.zeros([256]))
    w2 = weights(256, 128)
    b2 = fs.Variable(fs.zeros([128]))
    w3 = weights(128, 10)
    b3 = fs.Variable(fs.zeros([10]))
    h1 = fs.nn.relu(fs.matmul(x, w1) + b1)
    h2 = fs.nn.relu(fs.matmul(h1, w2) + b2)
    logits = fs.matmul(h2, w3) + b3
    loss = fs.reduce_mean(fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    fs.train.GradientDescentOptimizer(0.1).minimize(loss)
    fs.global_variables_initializer()


def dense(x: Any, units: int, scope: str, activation: Any = fs.nn.relu) -> Any:
    """Returns a dense layer in a scope of its own."""
    with fs.variable_scope(scope):
        w = fs.get_variable("w", [int(x.shape[-1]), units])
        b = fs.get_variable("b", [units], initializer=fs.zeros_initializer())
        y = fs.matmul(x, w) + b
        return y if activation is None else activation(y)


def mlp_adam() -> None:
    """A perceptron in scopes, with a loss, an accuracy, Adam and a saver."""
    x = fs.placeholder(FLOAT, [None, 784], name="images")
    y = fs.placeholder(fs.int64, [None], name="labels")
    h = x
    for i, units in enumerate((512, 256, 128)):
        h = dense(h, units, f"hidden{i + 1}")
    logits = dense(h, 10, "logits", None)
    with fs.name_scope("loss"):
        each = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = fs.reduce_mean(each)
    with fs.name_scope("accuracy"):
        fs.reduce_mean(fs.cast(fs.equal(fs.argmax(logits, 1), y), FLOAT))
    with fs.name_scope("train"):
        fs.train.AdamOptimizer(1e-3).minimize(loss)
    fs.global_variables_initializer()
    fs.train.Saver()


def conv(x: Any, filters: int, size: int = 3, stride: int = 1) -> Any:
    """Returns a convolution with bias, without a scope."""
    kernel = weights(size, size, int(x.shape[-1]), filters)
    bias = fs.Variable(fs.zeros([filters]))
    return fs.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME") + bias


def cnn() -> None:
    """A convolutional network without scopes, with momentum."""
    x = fs.placeholder(FLOAT, [32, 28, 28, 1], name="images")
    y = fs.placeholder(fs.int32, [32], name="labels")
    h = x
    for filters in (32, 64, 128):
        h = fs.nn.relu(conv(h, filters))
        h = fs.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = fs.reshape(h, [32, 4 * 4 * 128])
    w1, b1 = weights(4 * 4 * 128, 256), fs.Variable(fs.zeros([256]))
    w2, b2 = weights(256, 10), fs.Variable(fs.zeros([10]))
    hidden = fs.nn.relu(fs.matmul(flat, w1) + b1)
    logits = fs.matmul(hidden, w2) + b2
    losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = fs.reduce_mean(losses)
    fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    fs.global_variables_initializer()


def residual(h: Any, filters: int) -> Any:
    """Returns a block of two convolutions with normalisation and a short cut."""
    start = h
    for _ in range(2):
        kernel = weights(3, 3, filters, filters)
        h = fs.nn.conv2d(h, kernel, [1, 1, 1, 1], "SAME")
        mean, variance = fs.nn.moments(h, [0, 1, 2])
        scale, shift = fs.Variable(fs.ones([filters])), fs.Variable(fs.zeros([filters]))
        h = fs.nn.relu(fs.nn.batch_normalization(h, mean, variance, shift, scale, 1e-3))
    return h + start


def resnet(blocks: int = 83) -> None:
    """Residual blocks without scopes, unrolled, with gradients: about 15 000 operations."""
    x = fs.placeholder(FLOAT, [4, 16, 16, 3], name="images")
    y = fs.placeholder(fs.int32, [4], name="labels")
    h = fs.nn.relu(conv(x, 16))
    for _ in range(blocks):
        h = residual(h, 16)
    pooled = fs.reduce_mean(h, [1, 2])
    logits = fs.matmul(pooled, weights(16, 10)) + fs.Variable(fs.zeros([10]))
    losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = fs.reduce_mean(losses)
    fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    fs.global_variables_initializer()


def many_boxes() -> None:
    """5 184 operations in 144 scopes, each of a kind of its own: nothing folds."""
    kinds = (fs.tanh, fs.exp, fs.sin, fs.cos, fs.square, fs.abs, fs.sigmoid, fs.floor, fs.ceil)
    state = 1
    x = fs.placeholder(FLOAT, [4], name="x")
    for i in range(12):
        for k in range(12):
            with fs.name_scope(f"stage{i}/block{k}"):
                for _ in range(36):
                    state = (state * 1103515245 + 12345) % 2**31
                    x = kinds[(state >> 16) % len(kinds)](x)


def lstm_unrolled() -> None:
    """An LSTM of twenty steps, unrolled by Python, with a loss and Adam."""
    x = fs.placeholder(FLOAT, [32, 20, 50], name="x")
    y = fs.placeholder(FLOAT, [32, 1], name="y")
    w, b = weights(50 + 64, 4 * 64, name="w"), fs.Variable(fs.zeros([4 * 64]), name="b")
    h, c = fs.zeros([32, 64]), fs.zeros([32, 64])
    for t in range(20):
        z = fs.matmul(fs.concat([x[:, t], h], 1), w) + b
        i, j, f, o = fs.split(z, 4, axis=1)
        c = fs.sigmoid(f) * c + fs.sigmoid(i) * fs.tanh(j)
        h = fs.sigmoid(o) * fs.tanh(c)
    prediction = fs.matmul(h, weights(64, 1)) + fs.Variable(fs.zeros([1]))
    loss = fs.reduce_mean(fs.square(prediction - y))
    fs.train.AdamOptimizer(1e-3).minimize(loss)
    fs.global_variables_initializer()


def lstm_while() -> None:
    """The LSTM in a `dynamic_rnn`, with gradients."""
    x = fs.placeholder(FLOAT, [32, 20, 50], name="x")
    y = fs.placeholder(FLOAT, [32, 1], name="y")
    cell = fs.nn.rnn_cell.BasicLSTMCell(64)
    outputs, _ = fs.nn.dynamic_rnn(cell, x, dtype=FLOAT)
    prediction = dense(outputs[:, -1], 1, "prediction", None)
    loss = fs.reduce_mean(fs.square(prediction - y), name="loss")
    fs.train.AdamOptimizer(1e-3).minimize(loss)
    fs.global_variables_initializer()


def nested_loop() -> None:
    """A training run as a loop in a loop: steps of gradient descent in epochs."""
    data = fs.placeholder(FLOAT, [100, 8, 4], name="data")
    target = fs.placeholder(FLOAT, [100, 8, 1], name="target")

    def step(i: Any, w: Any, b: Any, total: Any) -> Any:
        x, y = fs.gather(data, i), fs.gather(target, i)
        error = fs.matmul(x, w) + b - y
        loss = fs.reduce_mean(fs.square(error))
        dw = fs.matmul(x, error, transpose_a=True) * 0.25
        db = fs.reduce_mean(error, 0) * 2.0
        return i + 1, w - 0.1 * dw, b - 0.1 * db, total + loss

    def epoch(e: Any, w: Any, b: Any, history: Any) -> Any:
        start = (fs.constant(0), w, b, fs.constant(0.0))
        _, w, b, total = fs.while_loop(lambda i, *_: i < 100, step, start)
        return e + 1, w, b, fs.minimum(history, total)

    start = (fs.constant(0), fs.zeros([4, 1]), fs.zeros([1]), fs.constant(1e9))
    _, w, b, best = fs.while_loop(lambda e, *_: e < 10, epoch, start)
    fs.identity(w, name="trained_w")
    fs.identity(b, name="trained_b")
    fs.identity(best, name="best")


def attention(x: Any, size: int, heads: int) -> Any:
    """Returns self-attention of several heads."""
    with fs.variable_scope("attention"):
        q, k, v = (dense(x, size, part, None) for part in ("query", "key", "value"))

        def parts(t: Any) -> Any:
            return fs.transpose(fs.reshape(t, [-1, heads, size // heads]), [1, 0, 2])

        scores = fs.matmul(parts(q), parts(k), transpose_b=True) / float(size // heads) ** 0.5
        mixed = fs.matmul(fs.nn.softmax(scores), parts(v))
        return dense(fs.reshape(fs.transpose(mixed, [1, 0, 2]), [-1, size]), size, "output", None)


def normalised(x: Any, scope: str) -> Any:
    """Returns a layer normalised over its last axis."""
    with fs.variable_scope(scope):
        size = int(x.shape[-1])
        gain = fs.get_variable("gain", [size], initializer=fs.ones_initializer())
        shift = fs.get_variable("shift", [size], initializer=fs.zeros_initializer())
        mean, variance = fs.nn.moments(x, [-1], keep_dims=True)
        return (x - mean) * fs.rsqrt(variance + 1e-6) * gain + shift


def transformer() -> None:
    """Six layers of a transformer in scopes, with a loss and Adam."""
    tokens = fs.placeholder(fs.int32, [128], name="tokens")
    targets = fs.placeholder(fs.int32, [128], name="targets")
    with fs.variable_scope("embedding"):
        table = fs.get_variable("table", [1000, 64])
        h = fs.gather(table, tokens)
    for i in range(6):
        with fs.variable_scope(f"layer_{i}"):
            h = normalised(h + attention(h, 64, 4), "norm1")
            with fs.variable_scope("mlp"):
                inner = dense(dense(h, 256, "up"), 64, "down", None)
            h = normalised(h + inner, "norm2")
    logits = dense(h, 1000, "unembed", None)
    with fs.name_scope("loss"):
        losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        loss = fs.reduce_mean(losses)
    fs.train.AdamOptimizer(1e-3).minimize(loss)
    fs.global_variables_initializer()
    fs.train.Saver()


def upsampled(h: Any) -> Any:
    """Returns an image of twice the size, by a transposed convolution."""
    batch, height, width, filters = (int(n) for n in h.shape)
    kernel = weights(3, 3, filters, filters)
    shape = [batch, 2 * height, 2 * width, filters]
    return fs.nn.conv2d_transpose(h, kernel, shape, [1, 2, 2, 1], "SAME")


def autoencoder() -> None:
    """Encoder and decoder of convolutions with a skip from each level to its mirror."""
    x = fs.placeholder(FLOAT, [8, 32, 32, 3], name="images")
    h, skips = x, []
    for filters in (16, 32, 64):
        h = fs.nn.relu(conv(h, filters, 3, 2))
        skips.append(h)
    for skip in reversed(skips[:-1]):
        h = fs.nn.relu(conv(fs.concat([upsampled(h), skip], 3), int(skip.shape[-1])))
    out = fs.nn.sigmoid(conv(upsampled(h), 3))
    loss = fs.reduce_mean(fs.square(out - x))
    fs.train.AdamOptimizer(1e-3).minimize(loss)
    fs.global_variables_initializer()


def large() -> None:
    """36 000 operations: a residual tower and an LSTM of many steps, with gradients."""
    resnet(160)
    lstm_steps(220)


def lstm_steps(steps: int) -> None:
    """An LSTM of many steps in a scope, with its loss and gradients."""
    with fs.name_scope("sequence"):
        x = fs.placeholder(FLOAT, [16, steps, 8], name="x")
        w, b = weights(8 + 16, 64), fs.Variable(fs.zeros([64]))
        h, c = fs.zeros([16, 16]), fs.zeros([16, 16])
        for t in range(steps):
            z = fs.matmul(fs.concat([x[:, t], h], 1), w) + b
            i, j, f, o = fs.split(z, 4, axis=1)
            c = fs.sigmoid(f) * c + fs.sigmoid(i) * fs.tanh(j)
            h = fs.sigmoid(o) * fs.tanh(c)
        loss = fs.reduce_mean(fs.square(h))
        fs.train.AdamOptimizer(1e-3).minimize(loss)


def flat_2000() -> None:
    """2 000 operations in one scope, wired at random with long skips."""
    state = 12345
    kinds = (fs.add, fs.multiply, fs.tanh, fs.nn.relu, fs.subtract, fs.maximum)
    with fs.name_scope("flat"):
        made = [fs.placeholder(FLOAT, [16], name="x")]
        while len(made) < 2000:
            state = (state * 1103515245 + 12345) % 2**31
            kind = kinds[(state >> 16) % len(kinds)]
            near = made[-1 - (state >> 8) % min(4, len(made))]
            far = made[-1 - (state >> 5) % min(200, len(made))]
            made.append(kind(near) if kind in (fs.tanh, fs.nn.relu) else kind(near, far))


def pipeline() -> None:
    """Files through two queues and a branch into a small model: an input pipeline."""
    names = fs.placeholder(fs.string, [None], name="filenames")
    files = fs.FIFOQueue(100, [fs.string], shapes=[[]], name="filename_queue")
    files.enqueue_many([names], name="enqueue_filenames")
    line = files.dequeue(name="next_file")
    fields = fs.decode_csv(line, [[0.0], [0.0], [0.0], [0]])
    features, label = fs.stack(fields[:3]), fields[3]
    is_training = fs.placeholder(fs.bool, [], name="is_training")
    noisy = fs.cond(
        is_training,
        lambda: features + fs.random_normal([3], stddev=0.01),
        lambda: features * 1.0,
    )
    examples = fs.FIFOQueue(1000, [FLOAT, fs.int32], shapes=[[3], []], name="example_queue")
    examples.enqueue([noisy, label], name="enqueue_example")
    examples.close(name="close_examples")
    x, y = examples.dequeue_many(32, name="batch")
    hidden = dense(x, 16, "hidden")
    logits = dense(hidden, 4, "logits", None)
    losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = fs.reduce_mean(losses, name="loss")
    step = fs.train.get_or_create_global_step()
    fs.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
    fs.global_variables_initializer()
    fs.train.Saver()


MODELS: dict[str, Callable[[], None]] = {
    "mlp_flat": mlp_flat,
    "mlp_adam": mlp_adam,
    "cnn": cnn,
    "resnet": resnet,
    "lstm_unrolled": lstm_unrolled,
    "lstm_while": lstm_while,
    "nested_loop": nested_loop,
    "transformer": transformer,
    "autoencoder": autoencoder,
    "large": large,
    "flat_2000": flat_2000,
    "pipeline": pipeline,
}
