"""A graph as text."""

from __future__ import annotations

import picture_graphs as graphs

from flowscope.live.graphs.text import LINES
from flowscope_widgets.picture import text


def test_scopes_and_operations() -> None:
    m = graphs.Maker()
    x = m.op("x", "Placeholder", (), (None, 4))
    y = m.dense("layer", x, 4, 2, activate=False)
    m.op("top", "TopK", [y], None, outputs=2)
    m.op("last", "Neg", ["top:1"], control=["x"])
    assert (
        text(m.nodes)
        == """\
graph: 13 operations
x  Placeholder  float64[?,4]
layer/  10 ops
  w/  4 ops
    initial_value  Const  float64[4,2]
    w  VarHandleOp  float64[4,2]
    Assign  Assign  <- w, initial_value
    read  ReadVariableOp  float64[4,2]  <- w
  b/  4 ops
    initial_value  Const  float64[2]
    b  VarHandleOp  float64[2]
    Assign  Assign  <- b, initial_value
    read  ReadVariableOp  float64[2]  <- b
  matmul  MatMul  float64[?,2]  <- x, layer/w/read
  add  Add  float64[?,2]  <- matmul, layer/b/read
top  TopK  float64[...], float64[...]  <- layer/add
last  Neg  float64[]  <- top:1, ^x"""
    )


def test_functions_are_named_at_their_bodies_and_calls() -> None:
    assert (
        text(graphs.functions())
        == """\
graph: 15 operations
x  Placeholder  float64[?,4]
w/  4 ops
  initial_value  Const  float64[4,4]
  w  VarHandleOp  float64[4,4]
  Assign  Assign  <- w, initial_value
  read  ReadVariableOp  float64[4,4]  <- w
ƒ layer/  4 ops, 2 calls
  x  Parameter  float64[?,4]
  w  Parameter  float64[4,4]
  MatMul  MatMul  float64[?,4]  <- x, w
  Relu  Relu  float64[?,4]  <- MatMul  -> result
layer_1  ƒ layer  float64[?,4]  <- x, w/read
layer_2  ƒ layer  float64[?,4]  <- layer_1, w/read
gradients/  2 ops
  ones  OnesLike  float64[?,4]  <- layer_2
  layer_grad  ƒ layer_grad  float64[?,4]  <- ones, layer_2
ƒ layer_grad/  2 ops, 1 call
... 2 operations more, in closed scopes or further on"""
    )


def test_bodies_of_a_loop_are_scopes_of_their_names() -> None:
    m = graphs.Maker()
    m.op("i", "Placeholder")
    m.op("loop/body/i", "Parameter", body="loop/body")
    m.op("loop/body/add", "Neg", ["loop/body/i"], body="loop/body", result=True)
    m.op("loop/Loop", "Loop", ["i"], runs=("loop/body",))
    assert (
        text(m.nodes)
        == """\
graph: 4 operations
i  Placeholder  float64[]
loop/  3 ops
  body/  2 ops
    i  Parameter  float64[]
    add  Neg  float64[]  <- i  -> result
  Loop  Loop  float64[]  <- i"""
    )


def test_repeats_are_folded() -> None:
    assert text(graphs.chain(200)).splitlines()[-1] == "... 198 more Add: Add_1 to Add_198"
    folded = text(graphs.towers(9, 3)).splitlines()
    assert folded[-1] == "... 8 scopes more like it: tower1 to tower8"


def test_it_is_never_long() -> None:
    m = graphs.Maker()
    for k in range(300):
        m.op(f"{'ab'[k % 2]}{k}", "Op")
    lines = text(m.nodes).splitlines()
    assert len(lines) == LINES
    assert lines[-1] == "... 242 operations more, in closed scopes or further on"


def test_closed_scopes_are_counted_as_hidden() -> None:
    m = graphs.Maker()
    for scope in ("left", "right"):
        for k in range(100):
            m.op(f"{scope}/{'ab'[k % 2]}{k}", "Op")
    assert text(m.nodes).splitlines() == [
        "graph: 200 operations",
        "left/  100 ops",
        "right/  100 ops",
        "... 200 operations more, in closed scopes or further on",
    ]


def test_odd_names_stay_on_their_line() -> None:
    m = graphs.Maker()
    m.op("two\nlines", "Op")
    assert text(m.nodes).splitlines()[1] == "two lines  Op  float64[]"
    assert text([]) == "graph: 0 operations"


def test_unknown_producers_are_numbered() -> None:
    m = graphs.Maker()
    m.op("x", "Placeholder")
    m.op("y", "Neg", ["x"])
    assert text(m.nodes[1:]).endswith("y  Neg  float64[]  <- #0")
