"""Models that no rule was made for: people look at their pictures and ask what they show.

Each function builds its model in the default graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowscope as fs

FLOAT = fs.float32


def weights(*shape: int) -> Any:
    """Returns a variable with random values."""
    return fs.Variable(fs.random_normal(list(shape), stddev=0.1))


def normalised(h: Any) -> Any:
    """Returns each row with mean 0 and variance 1."""
    mean, variance = fs.nn.moments(h, [-1], keep_dims=True)
    return (h - mean) * fs.rsqrt(variance + 1e-6)


def block(h: Any, size: int) -> Any:
    """Returns a transformer's block: attention and two dense layers, each with a short cut."""
    q, k, v = (fs.matmul(h, weights(size, size)) for _ in range(3))
    scores = fs.nn.softmax(fs.matmul(q, k, transpose_b=True) / float(size) ** 0.5)
    h = normalised(h + fs.matmul(fs.matmul(scores, v), weights(size, size)))
    inner = fs.nn.relu(fs.matmul(h, weights(size, 4 * size)) + fs.Variable(fs.zeros([4 * size])))
    return normalised(h + fs.matmul(inner, weights(4 * size, size)))


def transformer_flat() -> None:
    """Six blocks of a transformer without scopes, with Adam."""
    tokens = fs.placeholder(fs.int32, [64])
    targets = fs.placeholder(fs.int32, [64])
    table = weights(1000, 32)
    h = fs.gather(table, tokens)
    for _ in range(6):
        h = block(h, 32)
    logits = fs.matmul(h, table, transpose_b=True)
    losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    loss = fs.reduce_mean(losses)
    fs.train.AdamOptimizer(1e-3).minimize(loss)
    fs.global_variables_initializer()


def two_layers(x: Any, units: int, last: int, scope: str) -> Any:
    """Returns two dense layers in a scope that is used again."""
    with fs.variable_scope(scope, reuse=fs.AUTO_REUSE):
        h = fs.layers.dense(x, units, fs.nn.leaky_relu, name="hidden")
        return fs.layers.dense(h, last, name="out")


def gan() -> None:
    """A generator against a discriminator, with two losses and two optimizers."""
    images = fs.placeholder(FLOAT, [32, 784], name="images")
    noise = fs.placeholder(FLOAT, [32, 64], name="noise")
    made = fs.sigmoid(two_layers(noise, 128, 784, "generator"))
    real = two_layers(images, 128, 1, "discriminator")
    fake = two_layers(made, 128, 1, "discriminator")
    entropy = fs.nn.sigmoid_cross_entropy_with_logits
    d_loss = fs.reduce_mean(entropy(labels=fs.ones_like(real), logits=real)) + fs.reduce_mean(
        entropy(labels=fs.zeros_like(fake), logits=fake)
    )
    g_loss = fs.reduce_mean(entropy(labels=fs.ones_like(fake), logits=fake))
    for loss, scope in ((d_loss, "discriminator"), (g_loss, "generator")):
        variables = [v for v in fs.trainable_variables() if v.name.startswith(scope)]
        fs.train.AdamOptimizer(2e-4, beta1=0.5).minimize(loss, var_list=variables)
    fs.global_variables_initializer()


def seq2seq() -> None:
    """An encoder, and a decoder that attends to it in a loop."""
    source = fs.placeholder(FLOAT, [16, 12, 8], name="source")
    start = fs.placeholder(FLOAT, [16, 32], name="start")
    with fs.variable_scope("encoder"):
        cell = fs.nn.rnn_cell.BasicLSTMCell(32)
        memory, _ = fs.nn.dynamic_rnn(cell, source, dtype=FLOAT)
    w_query, w_out = weights(32, 32), weights(64, 32)

    def decode(t: Any, state: Any, total: Any) -> Any:
        query = fs.expand_dims(fs.matmul(state, w_query), 1)
        attention = fs.nn.softmax(fs.reduce_sum(memory * query, 2))
        context = fs.reduce_sum(memory * fs.expand_dims(attention, 2), 1)
        state = fs.tanh(fs.matmul(fs.concat([state, context], 1), w_out))
        return t + 1, state, total + fs.reduce_mean(fs.square(state))

    begin = (fs.constant(0), start, fs.constant(0.0))
    _, last, loss = fs.while_loop(lambda t, *_: t < 10, decode, begin, name="decoder")
    fs.identity(last, name="translation")
    fs.train.GradientDescentOptimizer(0.1).minimize(loss)
    fs.global_variables_initializer()


def convolution(h: Any, filters: int, stride: int = 1) -> Any:
    """Returns a convolution with bias."""
    kernel = weights(3, 3, int(h.shape[-1]), filters)
    h = fs.nn.conv2d(h, kernel, [1, stride, stride, 1], "SAME")
    return h + fs.Variable(fs.zeros([filters]))


def residual_cnn() -> None:
    """A stem, three stages of three residual blocks each, with the features of all joined."""
    images = fs.placeholder(FLOAT, [8, 32, 32, 3], name="images")
    labels = fs.placeholder(fs.int32, [8], name="labels")
    h = fs.nn.relu(convolution(images, 16))
    features = []
    for filters in (16, 32, 64):
        h = fs.nn.relu(convolution(h, filters, 2))
        for _ in range(3):
            h = fs.nn.relu(h + convolution(fs.nn.relu(convolution(h, filters)), filters))
        features.append(fs.reduce_mean(h, [1, 2]))
    joined = fs.concat(features, 1)
    logits = fs.matmul(joined, weights(112, 10)) + fs.Variable(fs.zeros([10]))
    losses = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = fs.reduce_mean(losses)
    accuracy = fs.reduce_mean(
        fs.cast(fs.equal(fs.argmax(logits, 1, output_type=fs.int32), labels), FLOAT)
    )
    fs.identity(accuracy, name="accuracy")
    fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    fs.global_variables_initializer()


def dqn() -> None:
    """A value network, its target network, a branch, and a copy from one to the other."""
    state = fs.placeholder(FLOAT, [None, 4], name="state")
    after = fs.placeholder(FLOAT, [None, 4], name="next_state")
    action = fs.placeholder(fs.int32, [None], name="action")
    reward = fs.placeholder(FLOAT, [None], name="reward")
    explore = fs.placeholder(fs.bool, [], name="explore")
    values, target = two_layers(state, 64, 2, "online"), two_layers(after, 64, 2, "target")
    chosen = fs.reduce_sum(values * fs.one_hot(action, 2), 1)
    wanted = fs.stop_gradient(reward + 0.99 * fs.reduce_max(target, 1))
    loss = fs.reduce_mean(fs.square(chosen - wanted), name="td_loss")
    online = [v for v in fs.trainable_variables() if v.name.startswith("online")]
    held = [v for v in fs.trainable_variables() if v.name.startswith("target")]
    fs.train.AdamOptimizer(1e-3).minimize(loss, var_list=online)
    fs.group(*[fs.assign(b, a) for a, b in zip(online, held, strict=True)], name="copy_to_target")
    fs.cond(
        explore,
        lambda: fs.random_uniform([1], 0, 2, fs.int32),
        lambda: fs.argmax(values, 1, output_type=fs.int32)[:1],
        name="act",
    )
    fs.global_variables_initializer()


UNSEEN: dict[str, Callable[[], None]] = {
    "transformer_flat": transformer_flat,
    "gan": gan,
    "seq2seq": seq2seq,
    "residual_cnn": residual_cnn,
    "dqn": dqn,
}
