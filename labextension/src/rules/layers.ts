/** Layers: a product or a convolution with its weight, its bias and its activation becomes one box. Pure. */
import { isDefaultName, readable, type Facts, type Texts } from "./labels.js";
import type { Level, Merge, Unit } from "./level.js";

const PRODUCT = /^(MatMul|BatchMatMul|BatchMatMulV2|Conv[123]D|DepthwiseConv2dNative|Conv2DBackpropInput|Conv2DTranspose)$/;
const BIAS = /^(Add|AddV2|BiasAdd)$/;
const ACTIVATION = /^(Relu|Relu6|Elu|Selu|LeakyRelu|Tanh|Sigmoid|Softplus|Softsign|Softmax|Silu|Swish)$/;
const NORM = /^(FusedBatchNorm(V[23])?|BatchNormWithGlobalNormalization)$/;
/** Scopes that `fs.layers` and files of ONNX have for one. */
const NORM_SCOPE = /^batch_?norm/i;
/** What a loss or a metric ends in, what makes a number of many, and what else it is made of. */
const END = /^(Mean|Sum|Add|AddV2|AddN|Sub|Mul|RealDiv|Neg|Identity)$/;
const REDUCTION = /^(Mean|Sum|L2Loss)$/;
const METRIC = /^(ArgMax|Equal|NotEqual|Greater|Less|InTopK|LogicalAnd)/;
/** A scope of so few operations may be a part of it as a whole. */
const MOST_OF_LOSS = 12;
const LOSS = /CrossEntropy|^(SquaredDifference|Square|Sub|Neg|Log|Mul|Add|RealDiv|Mean|Sum|Abs|L2Loss|Cast|Reshape|Identity|Softplus|Log1p|Exp|Pow|Maximum|Minimum)/;

/** Whether a box may be what a layer or a loss is made around. */
export function isSought({ type, core }: Facts): boolean {
  return REDUCTION.test(type) || PRODUCT.test(core);
}

/** Merges the layers of a level; returns how many. */
export function foldLayers(level: Level, texts: Texts): number {
  const taken = new Set<Unit>();
  const wanted: Merge[] = [];
  for (const unit of level.units) {
    const merge = unit.item >= 0 && unit.lane === "model" && PRODUCT.test(texts(unit.item).core) ? layerOf(level, unit, texts, taken) : null;
    if (!merge) continue;
    for (const member of merge.members) taken.add(member);
    wanted.push(merge);
  }
  return level.merge(wanted).length;
}

function layerOf(level: Level, product: Unit, texts: Texts, taken: ReadonlySet<Unit>): Merge | null {
  const weight = level.into(product).find((unit) => isOwn(level, unit) && !taken.has(unit));
  if (!weight) return null;
  const members = [weight, product];
  let end = product;
  const sum = follower(level, end, texts, BIAS);
  const bias = sum && level.into(sum).find((unit) => unit !== end && isOwn(level, unit) && !taken.has(unit));
  if (sum && bias) {
    members.push(bias, sum);
    end = sum;
  }
  const norm = normOf(level, end, texts);
  if (norm) {
    members.push(...level.into(norm).filter((unit) => unit !== end && isOwn(level, unit) && !taken.has(unit)), norm);
    end = norm;
  }
  const activation = follower(level, end, texts, ACTIVATION);
  if (activation) members.push(activation);
  members.push(...fillersOf(level, members).filter((unit) => !taken.has(unit)));
  if (members.length < 2 + Number(texts(product.item).type !== "")) return null;
  const facts = texts(product.item);
  const title = `${titleOf(facts)} ${detailOf(facts, shapeOf(weight, texts))}`.trim();
  return { members, group: { kind: "layer", title, detail: [norm ? "batch norm" : "", activation ? texts(activation.item).type.toLowerCase() : ""].filter(Boolean).join(", "), count: 1, carries: null } };
}

/** Whether a unit is a variable, or an array of weights, that the model's own way takes once. */
function isOwn(level: Level, unit: Unit): boolean {
  return unit.isParameter && level.out(unit).filter(({ lane }) => lane === "model").length === 1;
}

/** The only unit of the model that takes what a unit gives, if its type fits. */
function follower(level: Level, unit: Unit, texts: Texts, pattern: RegExp): Unit | null {
  const next = level.out(unit).filter(({ lane }) => lane === "model");
  const [only] = next;
  return next.length === 1 && only && only.item >= 0 && pattern.test(texts(only.item).type) ? only : null;
}

/** What brings the values of a layer to mean 0 and variance 1, if that is the only taker of it. */
function normOf(level: Level, unit: Unit, texts: Texts): Unit | null {
  const next = level.out(unit).filter(({ lane }) => lane === "model");
  const [only] = next;
  if (next.length !== 1 || !only || only.item < 0) return null;
  const { type, name } = texts(only.item);
  return NORM.test(type) || (type === "" && NORM_SCOPE.test(name)) ? only : null;
}

/** What only fills the variables among the members. */
function fillersOf(level: Level, members: readonly Unit[]): Unit[] {
  const inside = new Set(members);
  const found: Unit[] = [];
  for (const member of members) {
    if (!member.isParameter) continue;
    for (const unit of level.into(member)) {
      if (inside.has(unit) || level.out(unit).some((to) => !inside.has(to))) continue;
      if (unit.lane === "aside") found.push(unit);
    }
  }
  return [...new Set(found)];
}

function titleOf({ core: type }: Facts): string {
  if (type.startsWith("Conv2DBackprop") || type === "Conv2DTranspose") return "Conv transposed";
  return type.startsWith("Conv") ? "Conv" : type.startsWith("Depthwise") ? "Conv depthwise" : "Dense";
}

function shapeOf(weight: Unit, texts: Texts): readonly (number | null)[] {
  return texts(weight.item).shape ?? [];
}

/** "784 -> 256" of a dense layer, "3x3, 64" of a convolution. */
function detailOf({ core: type, types }: Facts, shape: readonly (number | null)[]): string {
  const n = shape.map((size) => String(size ?? "?"));
  if (/^(MatMul|BatchMatMul)/.test(type)) return n.length === 2 ? `${n[0]} \u2192 ${n[1]}` : "";
  // Weights that are laid out anew come with their filters first.
  if (types.includes("Transpose") && n.length >= 3) return `${n.slice(2).join("\u00d7")}, ${n[0]}`;
  const filters = /Backprop|Transpose/.test(type) ? n[n.length - 2] : n[n.length - 1];
  return n.length >= 3 ? `${n.slice(0, -2).join("\u00d7")}, ${filters}` : "";
}

/** Merges what ends in a number without a taker in the model, back to where its parts come together: the losses. */
export function foldLosses(level: Level, texts: Texts, isDerived: (unit: Unit) => boolean): number {
  const wanted: Merge[] = [];
  const taken = new Set<Unit>();
  for (const unit of level.units) {
    const facts = unit.item >= 0 && unit.lane === "model" ? texts(unit.item) : null;
    if (!facts || !END.test(facts.type) || facts.shape?.length !== 0) continue;
    if (level.out(unit).some(({ lane }) => lane === "model")) continue;
    const isLoss = isDerived(unit);
    const members = backwards(level, unit, (one) => isPartOf(one, texts(one.item), isLoss), taken);
    const types = members.flatMap((one) => texts(one.item).types);
    if (members.length < 2 || !types.some((type) => REDUCTION.test(type))) continue;
    for (const member of members) taken.add(member);
    const title = !isDefaultName(facts.name, facts.type) ? facts.name : facts.variable.length > 1 ? facts.variable : isLoss ? "loss" : "metric";
    const detail = types.find((type) => /CrossEntropy/.test(type)) ?? types.find((type) => /Square/.test(type)) ?? "";
    wanted.push({ members, group: { kind: "layer", title: readable(title), detail: worded(detail), count: 1, carries: null } });
  }
  return level.merge(wanted).length;
}

/** Whether a box can be a part of a loss, or of a metric. */
function isPartOf(unit: Unit, { type, types }: Facts, isLoss: boolean): boolean {
  const isPart = (one: string): boolean => LOSS.test(one) || (!isLoss && METRIC.test(one));
  if (type !== "") return isPart(type) || type === "Const";
  return !unit.isParameter && unit.size <= MOST_OF_LOSS && types.every((one) => isPart(one) || one === "Const");
}

function backwards(level: Level, end: Unit, isPart: (unit: Unit) => boolean, taken: ReadonlySet<Unit>): Unit[] {
  const found = [end];
  const inside = new Set(found);
  for (const at of found) {
    for (const from of level.into(at)) {
      if (inside.has(from) || taken.has(from) || from.item < 0 || from.lane === "aside") continue;
      if (!isPart(from) || !level.out(from).every((to) => inside.has(to) || to.lane !== "model")) continue;
      inside.add(from);
      found.push(from);
    }
  }
  return found;
}

/** "SparseSoftmaxCrossEntropyWithLogits" -> "sparse softmax cross entropy". */
function worded(type: string): string {
  return type.replace(/WithLogits$/, "").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
