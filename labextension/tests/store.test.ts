/** What is chosen: shared by the views of a graph, told to the kernel, taken from it, kept over a reload. */
import assert from "node:assert/strict";
import test from "node:test";
import { snapshotOf } from "../dev/builder.js";
import { loops } from "../dev/graphs.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, type BoxId } from "../src/model/ids.js";
import { OpenScopes } from "../src/model/open_scopes.js";
import { boxOf, nameOf, Selection } from "../src/model/selection.js";
import { Store } from "../src/model/store.js";
import { storeOf } from "../src/view/store_sync.js";
import type { Choose } from "../src/wire/messages.js";

/** The widget's state, and a kernel that takes over what it is sent once it gets to it. */
class State {
  readonly values = new Map<string, unknown>();
  readonly sent: Choose[] = [];
  readonly #listeners = new Map<string, Set<() => void>>();

  get(name: string): unknown {
    return this.values.get(name) ?? null;
  }

  /** What the kernel sets, for Python or because it was sent. */
  set(name: string, value: unknown): void {
    if (JSON.stringify(this.get(name)) === JSON.stringify(value)) return;
    this.values.set(name, value);
    for (const listener of this.#listeners.get(`change:${name}`) ?? []) listener();
  }

  send(message: Choose): void {
    this.sent.push(message);
  }

  /** The kernel gets to what it was sent. */
  settle(): void {
    for (const { what, value } of this.sent.splice(0)) this.set(what, value);
  }

  on(event: string, listener: () => void): void {
    this.#listeners.set(event, (this.#listeners.get(event) ?? new Set()).add(listener));
  }

  off(event: string, listener: () => void): void {
    this.#listeners.get(event)?.delete(listener);
  }
}

const ends: AbortController[] = [];
test.afterEach(() => ends.splice(0).forEach((end) => end.abort()));

class View {
  readonly model = new GraphModel();
  readonly end = new AbortController();
  readonly store: Store;
  readonly selection: Selection;
  readonly scopes: OpenScopes;

  constructor(state: State) {
    ends.push(this.end);
    this.store = storeOf(state, this.end.signal);
    this.selection = new Selection(this.model, this.store, this);
    this.scopes = new OpenScopes(this.store, this);
  }

  show(nodes = loops()): this {
    this.model.applySnapshot(snapshotOf(nodes));
    this.selection.settle();
    return this;
  }

  box(name: string): BoxId {
    return opBox(this.model.tree.idOf(name) ?? -1);
  }
}

const ofGraph = (key: string): State => {
  const state = new State();
  state.values.set("graph_key", key);
  return state;
};

test("what the user chooses is told by name", () => {
  const state = new State();
  const view = new View(state).show();
  view.selection.select(view.box("while/body/mul"));
  view.selection.select("s:while");
  view.store.chooseIteration({ frame: "while", number: 3 }, view);
  view.scopes.setOpen("while", true);
  view.store.setHover(nameOf(view.model, view.box("sum")), view);
  view.selection.select("s:");
  assert.deepEqual(state.sent.map(({ what, value }) => [what, value]), [
    ["selection", "while/body/mul"], ["selection", "while/"], ["iteration", ["while", 3]], ["open_scopes", { while: true }],
    ["selection", null],
  ]);
});

test("what comes back late does not undo what was chosen since", () => {
  const state = new State();
  const view = new View(state).show();
  view.selection.select(view.box("x"));
  view.selection.select(view.box("sum"));
  const [first] = state.sent;
  state.set("selection", first?.value);
  assert.equal(view.selection.box, view.box("sum"));
  state.settle();
  assert.equal(view.selection.box, view.box("sum"));
  state.set("selection", "x");
  assert.equal(view.selection.box, view.box("x"), "that was set by Python");
});

test("what Python sets is chosen, by somebody else than the view", () => {
  const state = new State();
  const view = new View(state).show();
  const told: [string, boolean][] = [];
  view.store.changed.connect(({ what, by }) => told.push([what, by === view]));
  state.set("selection", "sum");
  assert.equal(view.selection.box, view.box("sum"));
  state.set("iteration", ["while", 12]);
  assert.deepEqual(view.store.iteration, { frame: "while", number: 12 });
  state.set("open_scopes", { while: true });
  assert.ok(view.scopes.isOpen("while"));
  state.set("selection", null);
  state.set("iteration", null);
  assert.deepEqual([view.selection.box, view.store.iteration], [null, null]);
  assert.deepEqual(told, [
    ["selection", false], ["iteration", false], ["open", false], ["selection", false], ["iteration", false],
  ]);
  assert.deepEqual(state.sent, [], "what comes from there is not told back");
});

test("the operation of a loop that is selected by name is its frame", () => {
  const state = new State();
  const view = new View(state).show();
  state.set("selection", "while/Loop");
  assert.equal(view.selection.box, "s:while");
});

test("a view that opens takes over what was chosen, once the graph is there", () => {
  const state = new State();
  state.values.set("selection", "choose/").set("open_scopes", { choose: true }).set("iteration", ["while", 2]);
  const view = new View(state);
  assert.ok(view.scopes.isOpen("choose"));
  assert.deepEqual([view.selection.box, view.selection.isKnown], [null, false]);
  assert.equal(state.get("selection"), "choose/", "it is awaited");
  view.show();
  assert.deepEqual([view.selection.box, view.selection.isKnown], ["s:choose", true]);
  assert.deepEqual(view.store.iteration, { frame: "while", number: 2 });
});

test("the displays of one widget, and the widgets of one graph, share what is chosen until they close", () => {
  const [state, second] = [ofGraph("g"), ofGraph("g")];
  const [one, other] = [new View(state).show(), new View(state).show()];
  one.selection.select(one.box("sum"));
  assert.equal(other.selection.box, other.box("sum"), "without the kernel");
  const third = new View(second).show();
  assert.equal(third.selection.box, third.box("sum"));
  second.settle();
  assert.equal(second.get("selection"), "sum", "its own widget is told");
  third.selection.select(third.box("x"));
  assert.deepEqual([one.selection.box, state.sent[state.sent.length - 1]?.value], [one.box("x"), "x"]);
  for (const view of [one, other, third]) view.end.abort();
  assert.equal(new View(ofGraph("g")).store.selection, null);
});

test("views of other graphs, and views without a key, share nothing", () => {
  const views = [new View(ofGraph("g")), new View(ofGraph("h")), new View(new State()), new View(new State())];
  assert.equal(new Set(views.map(({ store }) => store)).size, 4);
});

test("a selection that is lost goes over to what has become of it, or is given up", () => {
  const view = new View(new State()).show();
  view.selection.select(view.box("sum"));
  const sum = loops().find(({ name }) => name === "sum")!;
  view.show([...loops().filter(({ name }) => name !== "sum"), { ...sum, id: 99, name: "total", made_from: [{ id: sum.id, name: "sum", type: sum.type }] }]);
  assert.equal(view.selection.box, view.box("total"));
  view.show([]);
  assert.equal(view.store.selection, null);
});

test("what makes no sense is nothing", () => {
  const state = new State();
  state.values.set("selection", 3).set("open_scopes", { while: "yes" }).set("iteration", ["while"]);
  const view = new View(state).show();
  assert.deepEqual([view.selection.box, view.store.iteration, view.scopes.isOpen("while")], [null, null, false]);
});

test("a box is told once, however often it is chosen", () => {
  const store = new Store();
  const told: string[] = [];
  store.changed.connect(({ what }) => told.push(what));
  for (let k = 0; k < 2; k++) {
    store.select({ name: "x", box: "o1" }, store);
    store.setHover({ name: "x", box: "o1" }, store);
  }
  assert.deepEqual(told, ["selection", "hover"]);
  assert.equal(boxOf(new GraphModel(), store.selection), null);
});
