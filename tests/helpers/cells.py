"""What the cells of a notebook may build."""

import flowscope as fs


def names(graph):
    return [op.name for op in graph.get_operations()]


def model(act=fs.nn.relu, units=2, factor=2.0):
    """What a cell may build: y = act(x @ w) * factor."""
    x = fs.placeholder(fs.float32, [None, 3], name="x")
    w = fs.get_variable("w", [3, units], initializer=fs.ones_initializer())
    return x, fs.multiply(act(fs.matmul(x, w), name="act"), factor, name="y")


def training(y):
    """What a later cell may build on it."""
    loss = fs.reduce_mean(fs.square(y), name="loss")
    return loss, fs.train.AdamOptimizer(0.1).minimize(loss)
