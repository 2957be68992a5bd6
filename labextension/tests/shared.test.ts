/** What is chosen is the widget's state: told to the kernel, taken from it, kept over a reload. */
import assert from "node:assert/strict";
import test from "node:test";
import { snapshotOf } from "../dev/builder.js";
import { loops } from "../dev/graphs.js";
import { Choices } from "../src/model/choices.js";
import { GraphModel } from "../src/model/graph.js";
import { opBox, type BoxId } from "../src/model/ids.js";
import { SharedChoices } from "../src/view/shared.js";
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

class View {
  readonly model = new GraphModel();
  readonly choices = new Choices();
  readonly brought: (BoxId | null)[] = [];
  readonly #shared: SharedChoices;

  constructor(state: State, until = new AbortController().signal) {
    this.#shared = new SharedChoices(state, this.model, this.choices, {
      select: (box, bringIn) => {
        if (bringIn) this.brought.push(box);
        this.choices.select(box);
      },
    }, until);
  }

  show(): this {
    this.model.applySnapshot(snapshotOf(loops()));
    this.#shared.onGraph();
    return this;
  }

  box(name: string): BoxId {
    return opBox(this.model.tree.idOf(name) ?? -1);
  }
}

test("what the user chooses is told by name", () => {
  const state = new State();
  const view = new View(state).show();
  view.choices.select(view.box("while/body/mul"));
  view.choices.select("s:while");
  view.choices.chooseIteration({ frame: "while", number: 3 });
  view.choices.setOpen("while", true);
  view.choices.select(null);
  assert.deepEqual(state.sent.map(({ what, value }) => [what, value]), [
    ["selection", "while/body/mul"], ["selection", "while/"], ["iteration", ["while", 3]], ["open_scopes", { while: true }],
    ["selection", null],
  ]);
});

test("what comes back late does not undo what was chosen since", () => {
  const state = new State();
  const view = new View(state).show();
  view.choices.select(view.box("x"));
  view.choices.select(view.box("sum"));
  const [first] = state.sent;
  state.set("selection", first?.value);
  assert.equal(view.choices.selection, view.box("sum"));
  state.settle();
  assert.equal(view.choices.selection, view.box("sum"));
  state.set("selection", "x");
  assert.equal(view.choices.selection, view.box("x"), "that was set by Python");
});

test("what Python sets is chosen, and brought into sight", () => {
  const state = new State();
  const view = new View(state).show();
  state.set("selection", "sum");
  assert.equal(view.choices.selection, view.box("sum"));
  assert.deepEqual(view.brought, [view.box("sum")]);
  state.set("iteration", ["while", 12]);
  assert.deepEqual(view.choices.iteration, { frame: "while", number: 12 });
  state.set("open_scopes", { while: true });
  assert.ok(view.choices.isOpen("while"));
  state.set("selection", null);
  state.set("iteration", null);
  assert.deepEqual([view.choices.selection, view.choices.iteration], [null, null]);
  assert.deepEqual(state.sent, [], "what comes from there is not told back");
});

test("a view that opens takes over what was chosen, once the graph is there", () => {
  const state = new State();
  state.values.set("selection", "choose/").set("open_scopes", { choose: true }).set("iteration", ["while", 2]);
  const view = new View(state);
  assert.ok(view.choices.isOpen("choose"));
  assert.equal(view.choices.selection, null);
  assert.equal(state.get("selection"), "choose/", "it is awaited");
  view.show();
  assert.equal(view.choices.selection, "s:choose");
  assert.deepEqual(view.brought, [], "a page that is reloaded does not move");
  assert.deepEqual(view.choices.iteration, { frame: "while", number: 2 });
});

test("the displays of one widget share it until they close", () => {
  const state = new State();
  const end = new AbortController();
  const [one, other] = [new View(state).show(), new View(state, end.signal).show()];
  one.choices.select(one.box("sum"));
  state.settle();
  assert.equal(other.choices.selection, other.box("sum"));
  end.abort();
  one.choices.select(null);
  state.settle();
  assert.equal(other.choices.selection, other.box("sum"));
});

test("what makes no sense is nothing", () => {
  const state = new State();
  state.values.set("selection", 3).set("open_scopes", { while: "yes" }).set("iteration", ["while"]);
  const view = new View(state).show();
  assert.deepEqual([view.choices.selection, view.choices.iteration, view.choices.isOpen("while")], [null, null, false]);
});
