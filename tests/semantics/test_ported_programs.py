"""Whole programs as people wrote them for TensorFlow 1, shortened.

The starting values are given, so that losses can be compared: the numbers are what TensorFlow 2.21
gives for the same lines; they hold to what the rounding of float32 grows to.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import flowscope as fs

pytestmark = [pytest.mark.usefixtures("graph"), pytest.mark.slow]

#: What TensorFlow's losses are, in the steps that the tests look at.
PERCEPTRON = pytest.approx([2.315836, 2.191353, 1.802287, 1.099142, 0.5617656], rel=1e-5)
CONVOLUTIONAL = pytest.approx([2.936968, 1.641336, 1.07487, 0.6369738, 0.3597972], rel=5e-3)
LANGUAGE = pytest.approx([2.721953, 2.393793, 2.353383, 2.21663], rel=1e-5)
WORDS = pytest.approx([14.90985, 3.247252, 2.981103, 2.889394, 2.685618], rel=1e-5)
ADVERSARIES = pytest.approx(
    [
        *[5.742706, 0.01533134, 2.555243, 0.3050141, 0.6322108],
        *[1.417033, 0.2490079, 2.271293, 0.1290579, 2.487177],
    ],
    rel=1e-4,
)


@pytest.fixture(scope="module")
def digits():
    """The pictures [1797, 64], between 0 and 1, and what they show."""
    found = load_digits()
    return (found.data / 16).astype(np.float32), found.target.astype(np.int64)


# -- a perceptron, with the tools of the CIFAR tutorial -------------------------------------------


def perceptron(images, rng):
    """Returns logits; each layer's weights add their decay to the collection "losses"."""
    net = images
    for i, units in enumerate((64, 32, 10)):
        with fs.variable_scope(f"layer{i + 1}"):
            shape = [int(net.get_shape()[1]), units]
            start = fs.constant_initializer(rng.normal(0, 0.1, shape))
            w = fs.get_variable("weights", shape, initializer=start, dtype=fs.float32)
            fs.add_to_collection("losses", fs.multiply(fs.nn.l2_loss(w), 1e-4))
            b = fs.get_variable("biases", [units], initializer=fs.constant_initializer(0.1))
            net = fs.nn.xw_plus_b(net, w, b)
            if units != 10:
                net = fs.nn.relu(net)
    return net


def test_a_perceptron_with_decays_averages_and_checkpoints(digits, tmp_path):
    pictures, labels = digits
    x = fs.placeholder(fs.float32, shape=(None, 64), name="images")
    y = fs.placeholder(fs.int64, shape=(None,), name="labels")
    logits = perceptron(x, np.random.RandomState(0))
    entropy = fs.nn.softmax_cross_entropy_with_logits_v2(labels=fs.one_hot(y, 10), logits=logits)
    fs.add_to_collection("losses", fs.reduce_mean(entropy))
    loss = fs.add_n(fs.get_collection("losses"), name="total_loss")
    global_step = fs.Variable(0, trainable=False, name="global_step")
    rate = fs.train.exponential_decay(0.05, global_step, 20, 0.9, staircase=True)
    averages = fs.train.ExponentialMovingAverage(0.9, global_step)
    optimizer = fs.train.MomentumOptimizer(rate, 0.9)
    gradients = [(fs.clip_by_norm(g, 5.0), v) for g, v in optimizer.compute_gradients(loss)]
    update = optimizer.apply_gradients(gradients, global_step=global_step)
    with fs.control_dependencies([update]):
        train = averages.apply(fs.trainable_variables())
    accuracy = fs.reduce_mean(fs.cast(fs.nn.in_top_k(logits, y, 1), fs.float32))
    saver = fs.train.Saver(fs.global_variables(), max_to_keep=2)
    held_out = {x: pictures[1500:], y: labels[1500:]}

    rng = np.random.RandomState(1)
    losses = []
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        for step in range(60):
            i = rng.randint(0, 1500, 64)
            _, value = sess.run([train, loss], feed_dict={x: pictures[i], y: labels[i]})
            losses.append(value)
            if step % 20 == 0:
                saver.save(sess, str(tmp_path / "model.ckpt"), global_step=global_step)
        saver.save(sess, str(tmp_path / "model.ckpt"), global_step=global_step)
        before = accuracy.eval(held_out)
        shadow = sess.run(averages.average(fs.trainable_variables()[0]))
    with fs.Session() as sess:
        found = fs.train.get_checkpoint_state(str(tmp_path))
        assert len(found.all_model_checkpoint_paths) == 2
        fs.train.Saver(averages.variables_to_restore()).restore(sess, found.model_checkpoint_path)
        after = sess.run(accuracy, held_out)
        np.testing.assert_array_equal(sess.run(fs.trainable_variables()[0]), shadow)
    assert losses[0::12] == PERCEPTRON
    assert min(before, after) > 0.8


# -- a convolutional network, with a batch normalisation by hand ----------------------------------


def batch_norm(x, depth, is_training):
    """Normalises by the batch's moments while training, by their moving averages else."""
    offset = fs.Variable(fs.constant(0.0, shape=[depth]), name="beta")
    scale = fs.Variable(fs.constant(1.0, shape=[depth]), name="gamma")
    mean, variance = fs.nn.moments(x, [0, 1, 2], name="moments")
    averages = fs.train.ExponentialMovingAverage(decay=0.5)

    def updated():
        with fs.control_dependencies([averages.apply([mean, variance])]):
            return fs.identity(mean), fs.identity(variance)

    def averaged():
        return averages.average(mean), averages.average(variance)

    m, v = fs.cond(is_training, updated, averaged)
    return fs.nn.batch_normalization(x, m, v, offset, scale, 1e-3)


def test_a_convolutional_network_with_a_batch_normalisation_by_hand(digits):
    pictures, labels = digits[0], np.eye(10, dtype=np.float32)[digits[1]]
    rng = np.random.RandomState(3)

    def weights(shape):
        return fs.Variable(fs.constant(rng.normal(0, 0.1, shape).astype(np.float32)))

    def convolved(h, filters):
        h = fs.nn.conv2d(h, weights(filters), strides=[1, 1, 1, 1], padding="SAME")
        return h + fs.Variable(fs.constant(0.1, shape=filters[3:]))

    def pooled(h):
        return fs.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")

    x = fs.placeholder("float", [None, 64])
    y_ = fs.placeholder("float", [None, 10])
    is_training = fs.placeholder(fs.bool)
    h = pooled(fs.nn.relu(convolved(fs.reshape(x, [-1, 8, 8, 1]), [3, 3, 1, 8])))
    h = pooled(fs.nn.relu(batch_norm(convolved(h, [3, 3, 8, 16]), 16, is_training)))
    y = fs.nn.softmax(fs.matmul(fs.reshape(h, [-1, 64]), weights([64, 10])))
    logs = fs.log(fs.clip_by_value(y, 1e-10, 1.0))
    entropy = fs.reduce_mean(-fs.reduce_sum(y_ * logs, reduction_indices=[1]))
    train_step = fs.train.AdamOptimizer(1e-2).minimize(entropy)
    hits = fs.equal(fs.argmax(y, 1), fs.argmax(y_, 1))
    accuracy = fs.reduce_mean(fs.cast(hits, "float"))

    rng = np.random.RandomState(0)
    losses = []
    sess = fs.InteractiveSession()
    try:
        fs.initialize_all_variables().run()
        for _ in range(40):
            i = rng.randint(0, 1500, 50)
            feed = {x: pictures[i], y_: labels[i], is_training: True}
            losses.append(sess.run([train_step, entropy], feed_dict=feed)[1])
        feed = {x: pictures[1500:], y_: labels[1500:], is_training: False}
        share = accuracy.eval(feed_dict=feed)
    finally:
        sess.close()
    assert losses[0::8] == CONVOLUTIONAL
    assert share > 0.8


# -- a language model over characters -------------------------------------------------------------


class CharRnn:
    """Two LSTM layers over characters, whose state goes from run to run."""

    def __init__(self, size, batch, length, vocabulary, rng):
        cells = fs.nn.rnn_cell
        self.inputs = fs.placeholder(fs.int32, [batch, length])
        self.targets = fs.placeholder(fs.int32, [batch, length])
        self.cell = cells.MultiRNNCell(
            [cells.BasicLSTMCell(size, state_is_tuple=True) for _ in range(2)], state_is_tuple=True
        )
        self.initial_state = self.cell.zero_state(batch, fs.float32)

        def start(shape, dtype=None, partition_info=None):
            return fs.constant(rng.uniform(-0.1, 0.1, [int(d) for d in shape]), dtype=dtype)

        with fs.variable_scope("rnnlm", initializer=start):
            w = fs.get_variable("softmax_w", [size, vocabulary])
            b = fs.get_variable("softmax_b", [vocabulary])
            embedding = fs.get_variable("embedding", [vocabulary, size])
            rows = fs.nn.embedding_lookup(embedding, self.inputs)
            outputs, self.final_state = fs.nn.dynamic_rnn(
                self.cell, rows, initial_state=self.initial_state
            )
        logits = fs.matmul(fs.reshape(outputs, [-1, size]), w) + b
        self.probabilities = fs.nn.softmax(logits)
        losses = fs.nn.sparse_softmax_cross_entropy_with_logits(
            logits=logits, labels=fs.reshape(self.targets, [-1])
        )
        self.cost = fs.reduce_sum(losses) / batch / length
        self.rate = fs.Variable(0.0, trainable=False)
        variables = fs.trainable_variables()
        gradients, _ = fs.clip_by_global_norm(fs.gradients(self.cost, variables), 5.0)
        optimizer = fs.train.AdamOptimizer(self.rate)
        self.train = optimizer.apply_gradients(zip(gradients, variables, strict=True))


def test_a_language_model_learns_a_sentence_and_recites_it(tmp_path):
    text = "to be or not to be: that is the question. " * 8
    characters = sorted(set(text))
    codes = np.array([characters.index(c) for c in text])
    xs, ys = codes.reshape(8, -1), np.roll(codes, -1).reshape(8, -1)
    model = CharRnn(32, 8, 42, len(characters), np.random.RandomState(0))
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(fs.assign(model.rate, 0.03))
        costs = []
        state = sess.run(model.initial_state)
        for _ in range(100):
            feed = {model.inputs: xs, model.targets: ys}
            for i, (c, h) in enumerate(model.initial_state):
                feed[c], feed[h] = state[i].c, state[i].h
            cost, state, _ = sess.run([model.cost, model.final_state, model.train], feed)
            costs.append(cost)
        path = fs.train.Saver().save(sess, str(tmp_path / "model.ckpt"))
    assert costs[0:20:5] == LANGUAGE
    with fs.Graph().as_default(), fs.Session() as sess:
        model = CharRnn(32, 1, 1, len(characters), np.random.RandomState(1))
        fs.train.Saver().restore(sess, path)
        state = sess.run(model.cell.zero_state(1, fs.float32))
        said = "to be or"
        for c in said[:-1]:  # the state as a whole, both layers' pairs, is one feed
            feed = {model.inputs: [[characters.index(c)]], model.initial_state: state}
            [state] = sess.run([model.final_state], feed)
        for _ in range(30):
            feed = {model.inputs: [[characters.index(said[-1])]], model.initial_state: state}
            probabilities, state = sess.run([model.probabilities, model.final_state], feed)
            said += characters[int(probabilities[0].argmax())]
    assert said == text[: len(said)]


# -- words as vectors -----------------------------------------------------------------------------


def test_words_as_vectors_by_noise_contrastive_estimation():
    text = "a king rules a land and a queen rules a land while a dog chases a cat "
    words = (20 * text).split()
    names = sorted(set(words))
    codes = np.array([names.index(w) for w in words])
    n, size = len(names), 8
    rng = np.random.RandomState(0)
    graph = fs.Graph()
    with graph.as_default():
        inputs = fs.placeholder(fs.int32, shape=[32])
        labels = fs.placeholder(fs.int32, shape=[32, 1])
        with fs.device("/cpu:0"):
            start = rng.uniform(-1, 1, (n, size)).astype(np.float32)
            embeddings = fs.Variable(fs.constant(start))
            embed = fs.nn.embedding_lookup(embeddings, inputs)
            start = rng.normal(0, size**-0.5, (n, size)).astype(np.float32)
            weights = fs.Variable(fs.constant(start))
            biases = fs.Variable(fs.zeros([n]))
        # Every word is a candidate: so what is drawn does not depend on a generator.
        sampled = (np.arange(n), fs.fill([32, 1], 0.3), fs.fill([n], 0.3))
        losses = fs.nn.nce_loss(
            weights=weights,
            biases=biases,
            labels=labels,
            inputs=embed,
            num_sampled=n,
            num_classes=n,
            sampled_values=(fs.constant(sampled[0], fs.int64), *sampled[1:]),
        )
        loss = fs.reduce_mean(losses)
        optimizer = fs.train.GradientDescentOptimizer(0.3).minimize(loss)
        norm = fs.sqrt(fs.reduce_sum(fs.square(embeddings), 1, keep_dims=True))
        similar = fs.matmul(embeddings / norm, embeddings / norm, transpose_b=True)
        init = fs.global_variables_initializer()
    curve = []
    with fs.Session(graph=graph) as session:
        init.run()
        for _ in range(100):
            i = rng.randint(1, len(codes) - 1, 16)
            feed = {
                inputs: np.concatenate([codes[i], codes[i]]),
                labels: np.concatenate([codes[i - 1], codes[i + 1]])[:, None],
            }
            curve.append(session.run([optimizer, loss], feed_dict=feed)[1])
        likeness = similar.eval()
    assert curve[0::20] == WORDS
    king, queen, dog = (names.index(w) for w in ("king", "queen", "dog"))
    assert likeness[king, queen] > likeness[king, dog]


# -- two networks against each other, fed from a queue --------------------------------------------


def linear(x, depth, scope, rng, stddev):
    with fs.variable_scope(scope):
        shape = [int(x.get_shape()[1]), depth]
        start = fs.constant_initializer(rng.normal(0, stddev, shape))
        w = fs.get_variable("w", [x.get_shape()[1], depth], initializer=start)
        b = fs.get_variable("b", [depth], initializer=fs.constant_initializer(0.0))
        return fs.matmul(x, w) + b


def judged(x, rng):
    """Returns the discriminator's belief that x is real, which looks at the batch as a whole."""
    h = fs.nn.relu(linear(x, 8, "d0", rng, 0.5))
    kernels = fs.reshape(linear(h, 15, "minibatch", rng, 0.1), (-1, 5, 3))
    apart = fs.expand_dims(kernels, 3) - fs.expand_dims(fs.transpose(kernels, [1, 2, 0]), 0)
    near = fs.reduce_sum(fs.exp(-fs.reduce_sum(fs.abs(apart), 2)), 2)
    return fs.sigmoid(linear(fs.concat([h, near], 1), 1, "d1", rng, 0.2))


def test_two_networks_against_each_other_fed_from_a_queue():
    rng = np.random.RandomState(0)
    queue = fs.FIFOQueue(capacity=4, dtypes=[fs.float32], shapes=[[16, 1]])
    item = fs.placeholder(fs.float32, [16, 1])
    enqueue, close = queue.enqueue([item]), queue.close()
    z = fs.placeholder(fs.float32, shape=(16, 1))
    with fs.variable_scope("G"):
        made = linear(fs.nn.softplus(linear(z, 4, "g0", rng, 1.0)), 1, "g1", rng, 0.3)
    x = queue.dequeue()
    with fs.variable_scope("D") as scope:
        real = judged(x, rng)
        scope.reuse_variables()
        forged = judged(made, rng)
    loss_d = fs.reduce_mean(-fs.log(real) - fs.log(1 - forged))
    loss_g = fs.reduce_mean(-fs.log(forged))
    variables = fs.trainable_variables()

    def trained(loss, prefix):
        step = fs.Variable(0, trainable=False)
        own = [v for v in variables if v.name.startswith(prefix)]
        optimizer = fs.train.AdamOptimizer(0.01, beta1=0.5)
        return optimizer.minimize(loss, global_step=step, var_list=own)

    train_d, train_g = trained(loss_d, "D/"), trained(loss_g, "G/")
    curve = []
    rng = np.random.RandomState(1)
    with fs.Session() as sess:
        fs.global_variables_initializer().run()
        for _ in range(40):
            sess.run(enqueue, {item: np.sort(rng.normal(4, 0.5, 16)).reshape(16, 1)})
            noise = {z: rng.uniform(-2, 2, (16, 1))}
            d, _ = sess.run([loss_d, train_d], noise)
            g, _ = sess.run([loss_g, train_g], noise)
            curve.append([d, g])
        sess.run(close)
        with pytest.raises(fs.errors.OutOfRangeError, match="closed and has insufficient elements"):
            sess.run(train_d, noise)
    assert np.ravel(curve[0::8]) == ADVERSARIES
