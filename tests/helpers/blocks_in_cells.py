"""What the cells of a notebook may build of operations that own blocks: y = f(v), edited by k."""

import numpy as np

import flowscope as fs

X = np.linspace(-1.0, 1.0, 12).reshape(2, 3, 2)


def variable(name="v"):
    return fs.get_variable(name, [2], fs.float64, initializer=fs.ones_initializer())


def repeated(body, start, **options):
    """The value that a body makes of one in three iterations."""
    loop = fs.while_loop(
        lambda i, _: i < 3, lambda i, x: (i + 1, body(x)), [fs.constant(0), start], **options
    )
    return loop[1]


def loop(k):
    return repeated(lambda x: fs.tanh(x * variable() * k), fs.ones([2], fs.float64))


def branch(k):
    v, p = variable(), fs.placeholder_with_default(True, [])
    return fs.cond(p, lambda: fs.tanh(v * k) * fs.exp(v), lambda: v * fs.sigmoid(v))


def choice(k):
    v, p = variable(), fs.placeholder_with_default(2, [])
    return fs.switch_case(p, [lambda: v * v, lambda: fs.exp(v), lambda: fs.tanh(v) * v * k])


def calls(k):
    v = variable()

    @fs.function
    def f(x):
        return fs.tanh(x * v) * k

    return f(f(v))


def nested(k):
    v, i = variable(), fs.placeholder_with_default(2, [])

    @fs.function
    def f(x):
        return fs.sin(x) * v * k

    def inner(x):
        return repeated(lambda y: fs.cond(i > 1, lambda: f(y), lambda: fs.exp(y)), x)

    return repeated(inner, v)


def array(k):
    v, a = variable(), fs.TensorArray(fs.float64, 3)

    def body(i, a):
        return i + 1, a.write(i, fs.tanh(v * k * fs.cast(i, fs.float64)))

    return fs.while_loop(lambda i, a: i < 3, body, [0, a])[1].stack()


def mapped(k):
    v = variable()
    return fs.map_fn(lambda e: fs.tanh(e * v * k), fs.constant(X[0]))


def scanned(k):
    v = variable()
    return fs.scan(lambda a, e: fs.tanh(a * e * v * k), fs.constant(X[0]))


def rnn(k):
    cell = fs.nn.rnn_cell.DropoutWrapper(fs.nn.rnn_cell.LSTMCell(2), output_keep_prob=0.5)
    return fs.nn.dynamic_rnn(cell, fs.constant(X) * k, dtype=fs.float64)[0] * variable()


def rnn_in_function(k):
    cell = fs.nn.rnn_cell.GRUCell(2)

    @fs.function
    def f(x):
        return fs.nn.dynamic_rnn(cell, x, dtype=fs.float64)[0] * k

    return f(fs.constant(X)) * variable()


def training(k):
    v, optimizer = variable(), fs.train.AdamOptimizer(0.1)

    def body(_):
        loss = fs.reduce_sum(fs.square(v * k - 1.0))
        with fs.control_dependencies([optimizer.minimize(loss)]):
            return fs.identity(loss)

    return repeated(body, fs.constant(0.0, fs.float64))


def record(k):
    v, found = variable(), []

    def body(x):
        y = fs.cond(fs.reduce_sum(x) > 0.0, lambda: fs.tanh(x * v * k), lambda: x)
        found.append(fs.record(y))
        return y

    repeated(body, v)
    return fs.identity(found[-1])


def last_record(k):
    v, found = variable(), []

    def body(x):
        found.append(fs.record(x * v * k, limit=2))
        return fs.tanh(x * v)

    y = repeated(body, v)
    return y + fs.reduce_sum(fs.stop_gradient(found[-1]), 0)


def growing(k):
    v = variable()
    return repeated(lambda x: fs.concat([x, v * k], 0), v)


def growing_with_variable(k):
    with fs.variable_scope("s", reuse=fs.AUTO_REUSE):
        return repeated(lambda x: fs.concat([x, variable() * k], 0), fs.ones([2], fs.float64))


def gradient(k):
    return fs.gradients(loop(k), fs.trainable_variables())[0]


def gradient_of_branch(k):
    return fs.gradients(branch(k), fs.trainable_variables())[0]


def gradient_of_calls(k):
    return fs.gradients(calls(k), fs.trainable_variables())[0]


def gradient_inside(k):
    v = variable()
    return repeated(lambda x: fs.gradients(fs.reduce_sum(fs.tanh(x * v * k)), x)[0], v)


def recomputed(k):
    v = variable()
    return repeated(lambda x: fs.tanh(fs.exp(x * v * k)), v, recompute=True)


def collected(k):
    v = variable()

    def body(x):
        y = fs.tanh(x * v * k)
        fs.add_to_collection("of the body", y)
        return y

    return repeated(body, v)


def queue(k):
    v, q = variable(), fs.FIFOQueue(10, [fs.float64], [[2]])

    def body(x):
        with fs.control_dependencies([q.enqueue(x)]):
            return q.dequeue() * v * k

    return repeated(body, fs.identity(v))


def assigning(k):
    v = variable()
    w = fs.get_variable("w", [2], fs.float64, fs.zeros_initializer(), trainable=False)

    def body(x):
        with fs.control_dependencies([w.assign_add(x * 0.0 + 1.0)]):
            return fs.tanh(x * v * k)

    return repeated(body, v)


def by_hand(k):
    raw, v = fs.raw_ops, fs.identity(variable())

    def enter(x, is_constant=False):
        return raw.Enter(data=x, frame_name="loop", is_constant=is_constant)

    factor = enter(fs.multiply(v, k), True)
    i, _ = raw.Merge(inputs=[enter(fs.constant(0))] * 2)
    x, _ = raw.Merge(inputs=[enter(v)] * 2)
    go_on = raw.LoopCond(input=i < enter(fs.constant(3), True))
    _, inner = raw.Switch(data=i, pred=go_on)
    last, y = raw.Switch(data=x, pred=go_on)
    i.op._update_input(1, raw.NextIteration(data=inner + enter(fs.constant(1), True)))
    x.op._update_input(1, raw.NextIteration(data=fs.tanh(y * factor)))
    return raw.Exit(data=last)


BUILDERS = [
    loop,
    branch,
    choice,
    calls,
    nested,
    array,
    mapped,
    scanned,
    rnn,
    rnn_in_function,
    training,
    record,
    last_record,
    growing,
    growing_with_variable,
    gradient,
    gradient_of_branch,
    gradient_of_calls,
    gradient_inside,
    recomputed,
    collected,
    queue,
    assigning,
    by_hand,
]
