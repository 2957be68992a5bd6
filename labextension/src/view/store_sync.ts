/**
 * The stores of this page: one per graph, joined to the state of each widget that shows it, so that Python reads and sets
 * what is chosen and it outlives a reload of the page. What is chosen here is sent; a widget's state follows the kernel alone.
 */
import { HEATS } from "../model/heat.js";
import { Store, type StoreChange } from "../model/store.js";
import type { Choose } from "../wire/messages.js";

const NAMES = ["selection", "iteration", "open_scopes", "find", "isolated", "step", "heat"] as const;
type Name = (typeof NAMES)[number];

/** The widget's state, as front ends keep it; all displays of a widget have the same. */
export interface WidgetState {
  get(name: string): unknown;
  on(event: `change:${Name | "difference" | "run_setup"}`, listener: () => void): void;
  off(event: `change:${Name | "difference" | "run_setup"}`, listener: () => void): void;
  send(message: Choose): void;
}

interface Shared {
  readonly store: Store;
  views: number;
}

/** The stores in this page, by the key of their graph. */
const stores = new Map<string, Shared>();

/**
 * The store that the views of a graph in this page share, joined to the state of one widget until the signal fires. The
 * first view brings what its widget's state has; later ones take over what is chosen.
 */
export function storeOf(state: WidgetState, until: AbortSignal): Store {
  const given = state.get("graph_key");
  const key = typeof given === "string" ? given : "";
  const shared = stores.get(key) ?? { store: new Store(), views: 0 };
  // Without a key a view has a store of its own.
  if (key !== "") stores.set(key, shared);
  new StoreSync(state, shared.store, shared.views > 0, until);
  shared.views += 1;
  until.addEventListener("abort", () => {
    shared.views -= 1;
    if (shared.views === 0) stores.delete(key);
  }, { once: true });
  return shared.store;
}

class StoreSync {
  readonly #store: Store;
  readonly #state: WidgetState;
  /** What was sent and has not come back yet. */
  readonly #sent: Readonly<Record<Name, string[]>> = {
    selection: [], iteration: [], open_scopes: [], find: [], isolated: [], step: [], heat: [],
  };

  constructor(state: WidgetState, store: Store, isJoining: boolean, until: AbortSignal) {
    this.#state = state;
    this.#store = store;
    for (const name of NAMES) {
      const listener = (): void => this.#hear(name);
      state.on(`change:${name}`, listener);
      until.addEventListener("abort", () => state.off(`change:${name}`, listener), { once: true });
      if (!isJoining) this.#take(name);
      else if (!this.#isEqual(name)) this.#send(name);
    }
    const compare = (): void => store.setDifference(differenceOf(state.get("difference")), this);
    state.on("change:difference", compare);
    until.addEventListener("abort", () => state.off("change:difference", compare), { once: true });
    if (!isJoining) compare();
    store.changed.connect((change) => this.#tell(change), until);
  }

  /** The state has changed: to what was sent from here, or to something else. */
  #hear(name: Name): void {
    const sent = this.#sent[name];
    const known = sent.indexOf(JSON.stringify(this.#state.get(name) ?? null));
    sent.splice(0, known < 0 ? sent.length : known + 1);
    if (known < 0) this.#take(name);
  }

  #take(name: Name): void {
    const value = this.#state.get(name);
    if (this.#isEqual(name)) return;
    if (name === "iteration") this.#store.chooseIteration(iterationOf(value), this);
    else if (name === "find") this.#store.setFind(textOf(value), this);
    else if (name === "isolated") this.#store.setIsolated(textOf(value), this);
    else if (name === "step") this.#store.chooseStep(typeof value === "number" ? value : null, this);
    else if (name === "heat") this.#store.setHeat(HEATS.find((heat) => heat === value) ?? "off", this);
    else if (name === "open_scopes") this.#store.setOpened(scopesOf(value), this);
    else this.#store.select(typeof value === "string" && value !== "" ? { name: value, box: null } : null, this);
  }

  #isEqual(name: Name): boolean {
    const told = this.#state.get(name) ?? (name === "find" || name === "isolated" ? "" : name === "heat" ? "off" : null);
    return JSON.stringify(told) === JSON.stringify(this.#mine(name));
  }

  #tell({ what, by }: StoreChange): void {
    if (by === this || what === "hover" || what === "difference") return;
    this.#send(what === "open" ? "open_scopes" : what);
  }

  #send(name: Name): void {
    const value = this.#mine(name);
    this.#sent[name].push(JSON.stringify(value));
    this.#state.send({ kind: "choose", what: name, value });
  }

  /** What is chosen here, as it is told. */
  #mine(name: Name): Choose["value"] {
    const { selection, iteration, opened } = this.#store;
    if (name === "open_scopes") return Object.fromEntries(opened);
    if (name === "find" || name === "isolated" || name === "step" || name === "heat") return this.#store[name];
    if (name === "iteration") return iteration && [iteration.frame, iteration.number];
    return selection && selection.name;
  }
}

function differenceOf(value: unknown): Map<string, string> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function iterationOf(value: unknown): { frame: string; number: number } | null {
  if (!Array.isArray(value)) return null;
  const [frame, number]: unknown[] = value;
  return typeof frame === "string" && typeof number === "number" ? { frame, number } : null;
}

function scopesOf(value: unknown): Map<string, boolean> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, boolean] => typeof entry[1] === "boolean"));
}
