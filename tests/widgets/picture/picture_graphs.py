"""Graphs made by hand, as the views see them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from flowscope.live.protocol.schema import Carried, Node, Output


class Maker:
    """Collects operations; inputs are named, "name:1" for a second output."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._ids: dict[str, int] = {}

    def op(
        self,
        name: str,
        type: str,
        inputs: Sequence[str] = (),
        shape: tuple[int | None, ...] | None = (),
        *,
        dtype: str = "float64",
        control: Sequence[str] = (),
        outputs: int = 1,
        body: str = "",
        result: bool = False,
        calls: str = "",
        runs: tuple[str, ...] = (),
    ) -> str:
        ends = [i.partition(":") for i in inputs]
        node = Node(
            id=len(self.nodes),
            name=name,
            type=type,
            inputs=tuple((self._ids[n], int(k or 0)) for n, _, k in ends),
            control=tuple(self._ids[c] for c in control),
            outputs=tuple(Output(dtype, shape) for _ in range(outputs)),
            attributes={},
            device="",
            placed=None,
            summary="",
            origin=None,
            body=body,
            is_result=result,
            calls=calls,
            runs=runs,
        )
        self._ids[name] = node.id
        self.nodes.append(node)
        return name

    def variable(self, name: str, shape: tuple[int | None, ...]) -> str:
        self.op(f"{name}/initial_value", "Const", (), shape)
        self.op(name, "VarHandleOp", (), shape)
        self.op(f"{name}/Assign", "Assign", [name, f"{name}/initial_value"], outputs=0)
        return self.op(f"{name}/read", "ReadVariableOp", [name], shape)

    def dense(self, scope: str, x: str, m: int, n: int, *, activate: bool = True) -> str:
        w = self.variable(f"{scope}/w", (m, n))
        b = self.variable(f"{scope}/b", (n,))
        y = self.op(f"{scope}/matmul", "MatMul", [x, w], (None, n))
        y = self.op(f"{scope}/add", "Add", [y, b], (None, n))
        return self.op(f"{scope}/relu", "Relu", [y], (None, n)) if activate else y


def mlp() -> list[Node]:
    """A classifier with two layers, a loss and its training step."""
    m = Maker()
    m.op("x", "Placeholder", (), (None, 4))
    m.op("labels", "Placeholder", (), (None,), dtype="int64")
    hidden = m.dense("layer1", "x", 4, 16)
    logits = m.dense("layer2", hidden, 16, 3, activate=False)
    loss = _loss(m, logits)
    updates = _train(m, loss)
    m.op("train", "NoOp", control=updates, outputs=0)
    names = [f"layer{i}/{v}/Assign" for i in (1, 2) for v in "wb"]
    m.op("init", "NoOp", control=names, outputs=0)
    return m.nodes


def _loss(m: Maker, logits: str) -> str:
    m.op("loss/xent", "SparseXent", [logits, "labels"], (None,), outputs=2)
    m.op("loss/axis", "Const", (), (), dtype="int64")
    return m.op("loss/mean", "Mean", ["loss/xent", "loss/axis"], ())


def _train(m: Maker, loss: str) -> list[str]:
    g = "train/gradients/"
    m.op(g + "ones", "OnesLike", [loss])
    m.op(g + "loss/mul", "Mul", [g + "ones", "loss/xent:1"], (None, 3))
    m.op(g + "layer2/w", "MatMul", ["layer1/relu", g + "loss/mul"], (16, 3))
    m.op(g + "layer2/b", "Sum", [g + "loss/mul"], (3,))
    m.op(g + "layer2/x", "MatMul", [g + "loss/mul", "layer2/w/read"], (None, 16))
    m.op(g + "layer1/relu", "ReluGrad", [g + "layer2/x", "layer1/relu"], (None, 16))
    m.op(g + "layer1/w", "MatMul", ["x", g + "layer1/relu"], (4, 16))
    m.op(g + "layer1/b", "Sum", [g + "layer1/relu"], (16,))
    m.op("train/rate", "Const")
    inputs = [(f"layer{i}/{v}", g + f"layer{i}/{v}") for i in (1, 2) for v in "wb"]
    return [
        m.op(
            f"train/update_{v.replace('/', '_')}", "ApplyGradient", [v, d, "train/rate"], outputs=0
        )
        for v, d in inputs
    ]


def chain(count: int, type: str = "Add") -> list[Node]:
    """A flat graph of `count` operations in a row."""
    m = Maker()
    last = m.op("x", "Placeholder", (), (None,))
    for k in range(count - 1):
        last = m.op(f"{type}_{k}", type, [last], (None,))
    return m.nodes


def towers(towers: int, layers: int) -> list[Node]:
    """Deep and wide: towers of dense layers; 12 operations a layer, 3 a tower."""
    m = Maker()
    for t in range(towers):
        last = m.op(f"tower{t}/x", "Placeholder", (), (None, 8))
        for k in range(layers):
            last = m.dense(f"tower{t}/layer{k}", last, 8, 8)
        m.op(f"tower{t}/out", "Identity", [last], (None, 8))
    return m.nodes


def awkward() -> list[Node]:
    """Names that markup would trip over, a cycle of scopes, an op named as a scope is, no ranks."""
    m = Maker()
    m.op("a<b>&\"c'", "Pla<ce&holder", (), None)
    m.op("s & t/<script>", "Const")
    m.op("s & t/y", "Add", ["a<b>&\"c'", "s & t/<script>"], None)
    m.op("u/z", "Neg", ["s & t/y"], (1,))
    m.op("s & t/back", "Neg", ["u/z"], (2,))
    m.op("s & t", "Identity", ["s & t/back"], (3,))
    m.op(
        "a very long name that nobody can read at a glance, but somebody will make/v\u00e9\u0007",
        "Op",
    )
    m.op("alone", "Whatever", outputs=0)
    return m.nodes


def loop() -> list[Node]:
    """A while loop, as dataflow: the value goes round from NextIteration to Merge."""
    m = Maker()
    m.op("x", "Placeholder")
    m.op("while/Enter", "Enter", ["x"])
    m.op("while/Merge", "Merge", ["while/Enter"], outputs=2)
    m.op("while/cond/Less", "Less", ["while/Merge"], dtype="bool")
    m.op("while/LoopCond", "LoopCond", ["while/cond/Less"], dtype="bool")
    m.op("while/Switch", "Switch", ["while/Merge", "while/LoopCond"], outputs=2)
    m.op("while/body/Mul", "Mul", ["while/Switch:1", "while/Switch:1"])
    m.op("while/NextIteration", "NextIteration", ["while/body/Mul"])
    m.op("while/Exit", "Exit", ["while/Switch"])
    m.op("y", "Neg", ["while/Exit"])
    back = next(n.id for n in m.nodes if n.type == "NextIteration")
    return [replace(n, inputs=(*n.inputs, (back, 0))) if n.type == "Merge" else n for n in m.nodes]


def frames() -> list[Node]:
    """A loop of one variable, and a branch on its result."""
    m = Maker()
    m.op("x", "Placeholder")
    m.op("n", "Const")
    m.op("while/cond/v", "Parameter", body="while/cond")
    m.op("while/cond/n", "Parameter", body="while/cond")
    m.op("while/cond/Less", "Less", ["while/cond/v", "while/cond/n"], dtype="bool",
         body="while/cond", result=True)  # fmt: skip
    m.op("while/body/v", "Parameter", body="while/body")
    m.op("while/body/Square", "Square", ["while/body/v"], body="while/body", result=True)
    m.op("while/Loop", "Loop", ["x", "n"], outputs=2, runs=("while/body", "while/cond"))
    m.op("Greater", "Greater", ["while/Loop", "n"], dtype="bool")
    m.op("if/then/v", "Parameter", body="if/then")
    m.op("if/then/Neg", "Neg", ["if/then/v"], body="if/then", result=True)
    m.op("if/else/v", "Parameter", body="if/else")
    m.op("if/else/Exp", "Exp", ["if/else/v"], body="if/else", result=True)
    runs = ("if/then", "if/else")
    m.op("if/Cond", "Cond", ["Greater", "while/Loop", "while/Loop"], runs=runs)
    m.op("y", "Identity", ["if/Cond"])
    ids = {node.name: node.id for node in m.nodes}
    loop = replace(
        m.nodes[ids["while/Loop"]],
        roles=("body", "cond"),
        predicate=(ids["while/cond/Less"], 0),
        carried=(
            Carried(0, ids["while/body/v"], ids["while/cond/v"], (ids["while/body/Square"], 0), 0),
        ),
        enters=((ids["while/cond/n"], 1),),
    )
    branch = replace(
        m.nodes[ids["if/Cond"]],
        roles=("then", "else"),
        predicate=(ids["Greater"], 0),
        enters=((ids["if/then/v"], 1), (ids["if/else/v"], 2)),
        leaves=((ids["if/then/Neg"], 0, 0), (ids["if/else/Exp"], 0, 0)),
    )
    return [{loop.id: loop, branch.id: branch}.get(n.id, n) for n in m.nodes]


def functions() -> list[Node]:
    """A function that is called twice, and its gradient."""
    m, row = Maker(), (None, 4)
    m.op("x", "Placeholder", (), row)
    w = m.variable("w", (4, 4))
    m.op("layer/x", "Parameter", (), row, body="layer")
    m.op("layer/w", "Parameter", (), (4, 4), body="layer")
    m.op("layer/MatMul", "MatMul", ["layer/x", "layer/w"], row, body="layer")
    m.op("layer/Relu", "Relu", ["layer/MatMul"], row, body="layer", result=True)
    m.op("layer_1", "Call", ["x", w], row, calls="layer")
    m.op("layer_2", "Call", ["layer_1", w], row, calls="layer")
    m.op("gradients/ones", "OnesLike", ["layer_2"], row)
    m.op("layer_grad/g", "Parameter", (), row, body="layer_grad")
    m.op("layer_grad/mul", "ReluGrad", ["layer_grad/g"], row, body="layer_grad", result=True)
    m.op("gradients/layer_grad", "Call", ["gradients/ones", "layer_2"], row, calls="layer_grad")
    return m.nodes


def tangle(count: int, seed: int) -> list[Node]:
    """A flat graph with skips and a few control edges, by chance."""
    chance, m = random.Random(seed), Maker()
    names: list[str] = []
    for k in range(count):
        back = [int(chance.expovariate(0.15)) for _ in range(chance.choice((1, 2, 2)))]
        inputs = [names[max(0, k - 1 - b)] for b in back] if names else []
        waits = [names[chance.randrange(k)]] if k and chance.random() < 0.1 else []
        names.append(m.op(f"op{k}", "Add", inputs, (8,), control=waits))
    return m.nodes


def star(count: int) -> list[Node]:
    """One operation, `count` that use it, and one that uses them all."""
    m = Maker()
    x = m.op("x", "Placeholder", (), (None,))
    m.op("sum", "AddN", [m.op(f"slice_{k}", "Slice", [x], (1,)) for k in range(count)], (1,))
    return m.nodes


def dense(count: int) -> list[Node]:
    """Every operation uses all before it."""
    m = Maker()
    names: list[str] = []
    for k in range(count):
        names.append(m.op(f"op{k}", "AddN", list(names)))
    return m.nodes
