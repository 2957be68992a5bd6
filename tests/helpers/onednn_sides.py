"""A step's values with oneDNN, where it is installed, and without."""

import flowscope as fs
from flowscope.ops.kernels import onednn, onednn_norms, onednn_pools

THRESHOLDS = [
    (onednn, "WORTH_FLOPS"),
    (onednn_norms, "WORTH_ELEMENTS"),
    (onednn_pools, "WORTH_ELEMENTS"),
]


def both(monkeypatch, function, *arrays):
    """A step's results with oneDNN, where it is installed, and without."""

    def run():
        with fs.Graph().as_default() as graph, fs.Session(graph=graph) as sess:
            return sess.run(function(*[fs.constant(a) for a in arrays]))

    first = run()
    for module, name in THRESHOLDS:
        monkeypatch.setattr(module, name, float("inf"))
    return first, run()
