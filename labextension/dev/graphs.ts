/** Graphs like those that people build. */
import type { Node } from "../src/wire/messages.js";
import { GraphBuilder } from "./builder.js";

interface Variable {
  readonly variable: number;
  readonly read: number;
  readonly assign: number;
}

function variable(g: GraphBuilder, name: string, shape: readonly number[]): Variable {
  const initial = g.op("TruncatedNormal", `${name}/initial_value`, { shape });
  const self = g.op("VariableV2", name, { shape, attributes: { shape: `[${shape.join(", ")}]`, dtype: "float32" } });
  const assign = g.op("Assign", `${name}/Assign`, { inputs: [self, initial], shape });
  return { variable: self, read: g.op("Identity", `${name}/read`, { inputs: [self], shape }), assign };
}

interface Layer {
  readonly w: Variable;
  readonly b: Variable;
  readonly matmul: number;
  readonly out: number;
  readonly input: number;
}

function dense(g: GraphBuilder, scope: string, input: number, n: number, m: number, last: boolean): Layer {
  const w = variable(g, `${scope}/w`, [n, m]);
  const b = variable(g, `${scope}/b`, [m]);
  const shape = [null, m];
  const matmul = g.op("MatMul", `${scope}/matmul`, {
    inputs: [input, w.read], shape, attributes: { transpose_a: "False", transpose_b: "False" },
  });
  const add = g.op("Add", `${scope}/add`, { inputs: [matmul, b.read], shape });
  const out = last ? add : g.op("Relu", `${scope}/relu`, { inputs: [add], shape });
  return { w, b, matmul, out, input };
}

/** A classifier with two layers, its gradients and gradient descent. */
export function mlp(): Node[] {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x", { shape: [null, 784] });
  const y = g.op("Placeholder", "y", { shape: [null], dtype: "int64" });
  const one = dense(g, "layer1", x, 784, 128, false);
  const two = dense(g, "layer2", one.out, 128, 10, true);
  const logp = g.op("LogSoftmax", "loss/log_softmax", { inputs: [two.out], shape: [null, 10] });
  const pick = g.op("GatherNd", "loss/picked", { inputs: [logp, y], shape: [null] });
  const axis = g.op("Const", "loss/axis", { shape: [], dtype: "int32" });
  const mean = g.op("Mean", "loss/mean", { inputs: [pick, axis], shape: [] });
  const loss = g.op("Neg", "loss/loss", { inputs: [mean], shape: [] });
  train(g, loss, logp, [one, two]);
  g.op("NoOp", "init", { control: [one.w.assign, one.b.assign, two.w.assign, two.b.assign] });
  return g.nodes;
}

function train(g: GraphBuilder, loss: number, logp: number, layers: readonly Layer[]): void {
  const fill = g.op("OnesLike", "train/gradients/ones", { inputs: [loss], shape: [] });
  let grad = g.op("LogSoftmaxGrad", "train/gradients/log_softmax_grad", { inputs: [fill, logp], shape: [null, 10] });
  const rate = g.op("Const", "train/learning_rate", { shape: [] });
  const updates: number[] = [];
  [...layers].reverse().forEach((layer, k) => {
    const scope = `train/gradients/layer${layers.length - k}_grad`;
    if (k > 0) grad = g.op("ReluGrad", `${scope}/relu_grad`, { inputs: [grad, layer.out], shape: [null, 128] });
    const db = g.op("Sum", `${scope}/b_grad`, { inputs: [grad], shape: [128] });
    const dw = g.op("MatMul", `${scope}/w_grad`, { inputs: [layer.input, grad], shape: [784, 128] });
    const before = grad;
    grad = g.op("MatMul", `${scope}/x_grad`, { inputs: [before, layer.w.read], shape: [null, 128] });
    for (const [kind, variable, gradient] of [["w", layer.w, dw], ["b", layer.b, db]] as const) {
      updates.push(g.op("ApplyGradientDescent", `train/update_layer${layers.length - k}_${kind}`, {
        inputs: [variable.variable, rate, gradient], shape: [],
      }));
    }
  });
  g.op("NoOp", "train/step", { control: updates });
}

/** Many alike blocks, about `size` operations, two devices. */
export function deep(size: number): Node[] {
  const g = new GraphBuilder();
  let flow = g.op("Placeholder", "x", { shape: [null, 64] });
  for (let block = 0; g.nodes.length < size; block++) {
    const stage = `net/stage${Math.floor(block / 40)}/block${block}`;
    const placed = block % 3 === 2 ? "/device:GPU:0" : "/device:CPU:0";
    let inner = flow;
    for (let k = 0; k < 8; k++) {
      const w = variable(g, `${stage}/dense${k}/w`, [64, 64]);
      const product = g.op("MatMul", `${stage}/dense${k}/matmul`, { inputs: [inner, w.read], shape: [null, 64], placed });
      inner = g.op("Relu", `${stage}/dense${k}/relu`, { inputs: [product], shape: [null, 64], placed });
    }
    flow = g.op("Add", `${stage}/residual`, { inputs: [inner, flow], shape: [null, 64], placed });
  }
  const assigns = g.nodes.filter((node) => node.type === "Assign").map((node) => node.id);
  g.op("NoOp", "init", { control: assigns });
  return g.nodes;
}

/** `size` operations in one scope, with few long lines. */
export function flat(size: number): Node[] {
  const g = new GraphBuilder();
  let seed = 7;
  const random = (n: number): number => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed % n;
  };
  g.op("Placeholder", "flat/op0", { shape: [null] });
  for (let i = 1; i < size; i++) {
    const near = Math.max(0, i - 1 - random(12));
    const inputs = random(10) === 0 ? [near, random(i)] : random(2) === 0 ? [near, Math.max(0, i - 1 - random(20))] : [near];
    g.op(random(3) === 0 ? "Mul" : "Add", `flat/op${i}`, { inputs: [...new Set(inputs)], shape: [null] });
  }
  return g.nodes;
}

/** One long chain. */
export function chain(size: number): Node[] {
  const g = new GraphBuilder();
  let flow = g.op("Placeholder", "op0", { shape: [] });
  for (let i = 1; i < size; i++) flow = g.op("Add", `op${i}`, { inputs: [flow], shape: [] });
  return g.nodes;
}

/** One source, `size` ops beside each other, one sink. */
export function star(size: number): Node[] {
  const g = new GraphBuilder();
  const x = g.op("Placeholder", "x", { shape: [null] });
  const middle = Array.from({ length: size }, (_, i) => g.op("Square", `square${i}`, { inputs: [x], shape: [null] }));
  g.op("AddN", "sum", { inputs: middle, shape: [null] });
  return g.nodes;
}

/** A function that is called twice, and its gradient. */
export function functions(): Node[] {
  const g = new GraphBuilder();
  const [row, matrix] = [[null, 4], [4, 4]];
  const x = g.op("Placeholder", "x", { shape: row });
  const w = variable(g, "w", [4, 4]).read;
  const inX = g.op("Parameter", "layer/x", { shape: row, body: "layer" });
  const inW = g.op("Parameter", "layer/w", { shape: matrix, body: "layer" });
  const product = g.op("MatMul", "layer/MatMul", { inputs: [inX, inW], shape: row, body: "layer" });
  g.op("Relu", "layer/Relu", { inputs: [product], shape: row, body: "layer", result: true });
  const one = g.op("Call", "layer_1", { inputs: [x, w], shape: row, calls: "layer" });
  const two = g.op("Call", "layer_2", { inputs: [one, w], shape: row, calls: "layer" });
  const ones = g.op("OnesLike", "gradients/ones", { inputs: [two], shape: row });
  const inG = g.op("Parameter", "layer_grad/g", { shape: row, body: "layer_grad" });
  g.op("ReluGrad", "layer_grad/ReluGrad", { inputs: [inG], shape: row, body: "layer_grad", result: true });
  const back = g.op("Call", "gradients/layer_grad", { inputs: [ones, two], shape: row, calls: "layer_grad" });
  g.op("Call", "gradients/layer_grad", { inputs: [back, one], shape: row, calls: "layer_grad" });
  return g.nodes;
}

/** A loop of two variables, and a branch on its result. */
export function loops(): Node[] {
  const g = new GraphBuilder();
  const [int, row] = [{ shape: [], dtype: "int32" }, { shape: [4] }];
  const x = g.op("Placeholder", "x", row);
  const n = g.op("Const", "n", int);
  const y = loop(g, x, n);
  const sum = g.op("Sum", "sum", { inputs: [[y, 1]], shape: [] });
  const isLarge = g.op("Greater", "is_large", { inputs: [sum], shape: [], dtype: "bool" });
  const then = { ...row, body: "choose/then" };
  const orelse = { ...row, body: "choose/else" };
  const y1 = g.op("Parameter", "choose/then/y", then);
  const half = g.op("Mul", "choose/then/half", { ...then, inputs: [y1], result: true });
  const y2 = g.op("Parameter", "choose/else/y", orelse);
  const x2 = g.op("Parameter", "choose/else/x", orelse);
  const less = g.op("Sub", "choose/else/less", { ...orelse, inputs: [y2, x2], result: true });
  const z = g.op("Cond", "choose/Cond", {
    ...row, inputs: [isLarge, [y, 1], [y, 1], x], runs: ["choose/then", "choose/else"], roles: ["then", "else"],
    predicate: [isLarge, 0], enters: [[y1, 1], [y2, 2], [x2, 3]], leaves: [[half, 0, 0], [less, 0, 0]],
  });
  g.op("Identity", "z", { ...row, inputs: [z] });
  return g.nodes;
}

function loop(g: GraphBuilder, x: number, n: number): number {
  const [int, row] = [{ shape: [], dtype: "int32" }, { shape: [4] }];
  const zero = g.op("Const", "while/zero", int);
  const cond = { body: "while/cond" };
  const i1 = g.op("Parameter", "while/cond/i", { ...int, ...cond });
  const y1 = g.op("Parameter", "while/cond/y", { ...row, ...cond });
  const n1 = g.op("Parameter", "while/cond/n", { ...int, ...cond });
  const less = g.op("Less", "while/cond/less", { ...cond, inputs: [i1, n1], shape: [], dtype: "bool", result: true });
  const body = { body: "while/body" };
  const i2 = g.op("Parameter", "while/body/i", { ...int, ...body });
  const y2 = g.op("Parameter", "while/body/y", { ...row, ...body });
  const x2 = g.op("Parameter", "while/body/x", { ...row, ...body });
  const i3 = g.op("Add", "while/body/next", { ...int, ...body, inputs: [i2], result: true });
  const mul = g.op("Mul", "while/body/mul", { ...row, ...body, inputs: [y2, x2] });
  const y3 = g.op("Tanh", "while/body/tanh", { ...row, ...body, inputs: [mul], result: true });
  return g.op("Loop", "while/Loop", {
    inputs: [zero, x, n, x], runs: ["while/body", "while/cond"], roles: ["body", "cond"], predicate: [less, 0],
    outputs: [{ dtype: "int32", shape: [] }, { dtype: "float32", shape: [4] }, { dtype: "int64", shape: [] }],
    carried: [
      { input: 0, parameter: i2, test: i1, result: [i3, 0], output: 0 },
      { input: 1, parameter: y2, test: y1, result: [y3, 0], output: 1 },
    ],
    enters: [[n1, 2], [x2, 3]],
  });
}

/** A loop that was made of primitives by hand: it counts from 0 up to n, in squares. */
export function byHand(): Node[] {
  const g = new GraphBuilder();
  const int = { shape: [], dtype: "int32" };
  const inside = { ...int, scope: "count" };
  const leads = { ...inside, frame: "count" };
  const zero = g.op("Const", "zero", int);
  const n = g.op("Placeholder", "n", int);
  const begin = g.op("Enter", "begin", { ...leads, inputs: [zero], attributes: { frame_name: "count", is_constant: "False", parallel_iterations: "4" } });
  const limit = g.op("Enter", "limit", { ...leads, inputs: [n], attributes: { frame_name: "count", is_constant: "True", parallel_iterations: "4" } });
  const merge = g.op("Merge", "i", { ...inside, inputs: [begin, begin] });
  const less = g.op("Less", "less", { ...inside, dtype: "bool", inputs: [merge, limit] });
  const go = g.op("LoopCond", "go", { ...inside, dtype: "bool", inputs: [less] });
  const choose = g.op("Switch", "choose", { ...inside, inputs: [merge, go] });
  const square = g.op("Square", "part/square", { ...int, scope: "count/part", inputs: [[choose, 1]] });
  const back = g.op("NextIteration", "back", { ...inside, inputs: [square] });
  g.nodes[merge] = { ...g.nodes[merge]!, inputs: [[begin, 0], [back, 0]] };
  const end = g.op("Exit", "end", { ...inside, inputs: [choose] });
  g.op("Negative", "after", { ...int, inputs: [end] });
  return g.nodes;
}
