/** The form of the debugger that sets breakpoints and watchpoints: where, at what, and on which conditions. */
import { KINDS, selectedTarget, SIDES, targetText, wished, type Kind, type Side } from "../model/break_form.js";
import type { ViewContext } from "./context.js";
import { make, OWN_KEYS, setText, uniqueId } from "./dom.js";

const CONDITION = "a condition: max > 3, not finite, iteration >= 10";
/** What a watchpoint looks for where no condition is typed. */
const NOT_FINITE = "not finite";
const EXCEPT = "operations and scopes that may have NaN or infinite values";
/** Scopes and types that are offered where one is typed, at most. */
const MOST_OFFERED = 200;

function choice<T extends string>(label: string, options: Readonly<Record<T, string>>): HTMLSelectElement {
  const made = Object.entries<string>(options).map(([value, text]) => make("option", { value }, text));
  return make("select", { "aria-label": label, ...OWN_KEYS }, ...made);
}

function field(label: string, hint: string): HTMLInputElement {
  return make("input", { type: "text", spellcheck: "false", autocomplete: "off", placeholder: hint, title: hint, "aria-label": label, ...OWN_KEYS });
}

function digits(label: string, hint: string, none = "any"): HTMLInputElement {
  const made = field(label, hint);
  made.inputMode = "numeric";
  made.className = "fs-digits";
  made.placeholder = none;
  return made;
}

export class BreakForm {
  readonly element = make("form", { class: "fs-break", "data-testid": "fs-break", "aria-label": "Set a breakpoint" });
  readonly problem = make("p", { class: "fs-problem", role: "alert", "data-testid": "fs-break-problem" });
  readonly #view: ViewContext;
  readonly #side = choice("Before or after", SIDES);
  readonly #kind = choice("What", KINDS);
  readonly #name = make("code");
  readonly #offered = make("datalist", { id: uniqueId("fs-offered") });
  readonly #text = field("Which", "");
  readonly #when = field("Condition", CONDITION);
  readonly #iteration = digits("Iteration", "only in this iteration of the innermost loop, from 0");
  readonly #step = digits("Step", "only in this run of the session, from 0");
  readonly #hits = digits("From hit", "from which time on it holds, of those on which all else is met", "1");
  readonly #exceptions = field("But not in", EXCEPT);
  readonly #end = choice("What happens there", { hold: "hold the step", end: "end the step" });
  readonly #set = make("button", { type: "submit", class: "fs-button fs-wide", ...OWN_KEYS }, "Set");
  /** What is shown for a breakpoint alone, and for a watchpoint. */
  readonly #ofBreak: readonly HTMLElement[];
  readonly #ofWatch: readonly HTMLElement[];
  /** What is wrong with what was typed, as far as this page can tell. */
  #wrong = "";
  #offer = "";

  constructor(view: ViewContext) {
    this.#view = view;
    this.#text.setAttribute("list", this.#offered.id);
    const condition = make("label", { class: "fs-condition" }, "when ", this.#when);
    this.#ofBreak = [
      make("label", {}, "iteration ", this.#iteration),
      make("label", {}, "step ", this.#step), make("label", {}, "from hit ", this.#hits),
    ];
    this.#ofWatch = [make("label", { class: "fs-condition" }, "but not in ", this.#exceptions), make("label", {}, "then ", this.#end)];
    this.element.append(
      make("label", {}, "break ", this.#side), this.#kind, this.#name, this.#text, this.#offered, condition, ...this.#ofBreak, ...this.#ofWatch, this.#set,
    );
    this.element.addEventListener("change", () => this.#onChange(), { signal: view.until });
    this.element.addEventListener("input", () => this.#forgive(), { signal: view.until });
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    }, { signal: view.until });
  }

  update(): void {
    const { model, selection, session, debug } = this.#view;
    const selected = selectedTarget(model, selection.box);
    const [side, kind] = [this.#side.value as Side, this.#kind.value as Kind];
    const isSelection = kind === "selection";
    setText(this.#name, targetText(selected) || "nothing yet");
    this.#name.title = targetText(selected) || "Select an operation or a scope";
    this.#name.hidden = !isSelection;
    this.#text.hidden = isSelection || kind === "everything";
    this.#text.placeholder = { scope: "encoder/layer_1", type: "MatMul", line: "cell 3:12", selection: "", everything: "" }[kind];
    this.#when.placeholder = side === "watch" ? NOT_FINITE : CONDITION;
    for (const one of this.#ofBreak) one.hidden = side === "watch";
    for (const one of this.#ofWatch) one.hidden = side !== "watch";
    for (const option of this.#kind.options) if (option.value === "everything") option.hidden = option.disabled = side !== "watch";
    this.#set.disabled = !session.isHeard || (isSelection && selected === null);
    this.#set.title = session.isHeard ? (this.#set.disabled ? "Select an operation or a scope first" : "") : "no session hears this view";
    const problem = this.#wrong || debug.problem;
    setText(this.problem, problem);
    this.problem.hidden = problem === "";
    this.#when.setAttribute("aria-invalid", String(debug.problem !== ""));
    this.#offerNames(kind);
  }

  #onChange(): void {
    if (this.#kind.value === "everything" && this.#side.value !== "watch") this.#kind.value = "selection";
    this.#forgive();
    this.update();
  }

  /** What was wrong is being put right. */
  #forgive(): void {
    if (this.#wrong === "") return;
    this.#wrong = "";
    this.update();
  }

  /** Types and scopes that the graph has. */
  #offerNames(kind: Kind): void {
    const { model } = this.#view;
    const key = `${kind} ${model.version}`;
    if (key === this.#offer) return;
    this.#offer = key;
    const names = new Set<string>();
    if (kind === "type") for (const { type } of model.nodes.values()) names.add(type);
    if (kind === "scope") {
      for (const { name } of model.nodes.values()) if (name.includes("/")) names.add(name.slice(0, name.lastIndexOf("/")));
    }
    this.#offered.replaceChildren(...[...names].sort().slice(0, MOST_OFFERED).map((value) => make("option", { value })));
  }

  #send(): void {
    const { model, selection, session } = this.#view;
    if (!session.isHeard) return;
    const found = wished({
      side: this.#side.value as Side, kind: this.#kind.value as Kind, text: this.#text.value, when: this.#when.value,
      iteration: this.#iteration.value, step: this.#step.value, hits: this.#hits.value, exceptions: this.#exceptions.value,
      raises: this.#end.value === "end",
    }, selectedTarget(model, selection.box));
    this.#wrong = found.name === "problem" ? found.problem : "";
    if (found.name !== "problem") session.send(found.name, found.wish);
    this.update();
  }
}
