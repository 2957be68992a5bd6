/** The cluster: workers, their memory and health, what each waits for, and what holds steps up. */
import { pageOf, summaryText, workerRows, type WaitRow, type WorkerRow } from "../model/cluster.js";
import { deviceQuestion } from "../model/devices.js";
import { whole } from "../model/figures.js";
import { opBox } from "../model/ids.js";
import type { ClusterStatus, Finding } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { adapt, make, OWN_KEYS, setText } from "./dom.js";
import type { Panel } from "./panel.js";

/** While the panel is open the cluster is asked so often. */
const PERIOD_MS = 500;
/** An answer that has not come by then is lost: the kernel was started again. */
const LOST_MS = 8000;
/** So many waits of a worker are shown. */
const WAITS = 3;
const EMPTY = "This kernel is connected to no cluster. Connect one, and run steps on its workers:";
const HOW = "cluster = fs.cluster.connect(client)   # a dask.distributed Client, or a scheduler's address\nsess = fs.Session(cluster)";
const HEADS: readonly (readonly [string, string])[] = [
  ["worker", "and by what it is reached"], ["waits for", "what its devices wait for, the longest wait first"], ["memory", "of its process, and what Dask lets it use"], ["devices", "click one to see its operations alone"],
  ["steps", "that it has taken part in"], ["holds", "bytes of its variables, and elements of its queues"], ["where", "host and process"],
  ["traffic", "bytes sent to other processes, and received; how quick the link to this kernel is"], ["clock", "so far ahead of this kernel's clock, and how wrong that can be"],
];

class ClusterPanel {
  readonly element: HTMLElement;
  readonly #view: ViewContext;
  readonly #note = make("span", { class: "fs-note", role: "status", "data-testid": "fs-cluster-note" });
  readonly #link = make("a", { target: "_blank", rel: "noopener noreferrer", class: "fs-link", ...OWN_KEYS }, "Dask dashboard");
  readonly #findings = make("ul", { class: "fs-findings", role: "alert", "data-testid": "fs-cluster-findings" });
  readonly #empty = make("div", { class: "fs-empty", "data-testid": "fs-cluster-empty" }, make("p", {}, EMPTY), make("pre", {}, HOW));
  readonly #problem = make("p", { class: "fs-problem", role: "alert" });
  readonly #body = make("tbody");
  readonly #scroll: HTMLElement;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #shown: ClusterStatus | null = null;

  constructor(view: ViewContext) {
    this.#view = view;
    const { drawers, until, cluster, session, store } = view;
    const head = make("tr", {}, ...HEADS.map(([name, title]) => make("th", { scope: "col", title }, name)));
    this.#scroll = make("div", { class: "fs-cluster-scroll" }, make("table", { "aria-label": "Workers", "data-testid": "fs-cluster-table" }, make("thead", {}, head), this.#body));
    this.element = make(
      "section", { class: "fs-cluster", "aria-label": "Cluster", "data-testid": "fs-cluster" },
      make("div", { class: "fs-debug-head" }, this.#note, this.#link),
      this.#problem, this.#empty, this.#findings, this.#scroll,
    );
    this.#body.addEventListener("click", ({ target }) => target instanceof Element && this.#onClick(target), { signal: until });
    cluster.changed.connect(() => {
      this.#update();
      this.#later(PERIOD_MS);
    }, until);
    session.changed.connect(() => this.#update(), until);
    store.changed.connect(({ what }) => what === "step" && this.#update(), until);
    drawers.changed.connect((id) => id === "cluster" && this.#open(), until);
    until.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
    this.#open();
  }

  /** Begins to ask, or with a closed panel ends. */
  #open(): void {
    this.#later(0);
    this.#update();
  }

  #later(wait_ms: number): void {
    clearTimeout(this.#timer);
    if (this.#view.drawers.isOpen("cluster")) this.#timer = setTimeout(() => this.#ask(), wait_ms);
  }

  #ask(): void {
    const { session, cluster } = this.#view;
    if (session.isHeard) session.ask("ask_cluster", cluster.ask(), (told) => cluster.take(told, this.#view.model.session?.steps ?? 0));
    this.#later(session.isHeard ? LOST_MS : PERIOD_MS);
  }

  #update(): void {
    const { cluster, session, drawers, store } = this.#view;
    if (!drawers.isOpen("cluster")) return;
    const { step } = store;
    const { problem } = cluster;
    // Where nobody looked at the cluster then, it is shown as it is.
    const earlier = step === null ? null : cluster.statusAt(step);
    const status = earlier ?? cluster.status;
    const isThere = status !== null;
    const when = step === null || !isThere ? "" : earlier === null ? `now (not looked at in step ${whole(step)}): ` : `at step ${whole(step)}: `;
    const summary = isThere ? `${when}${summaryText(status)}` : session.isLive && !cluster.isKnown ? "\u2026" : "";
    setText(this.#note, summary);
    this.#note.title = summary;
    setText(this.#problem, problem);
    this.#problem.hidden = problem === "";
    this.#empty.hidden = isThere || (session.isLive && !cluster.isKnown);
    this.#scroll.hidden = !isThere;
    this.#findings.hidden = !isThere || status.findings.length === 0;
    const page = isThere ? pageOf(status.dashboard) : null;
    this.#link.hidden = page === null;
    if (page !== null) this.#link.href = page;
    if (!isThere || status === this.#shown) return;
    this.#shown = status;
    this.#showFindings(status.findings);
    this.#showRows(workerRows(status));
  }

  #showFindings(findings: readonly Finding[]): void {
    const texts = findings.map(({ kind, text }) => `${kind} ${text}`).join("\n");
    if (this.#findings.dataset.texts === texts) return;
    this.#findings.dataset.texts = texts;
    this.#findings.replaceChildren(...findings.map(({ kind, text }) => make("li", { "data-kind": kind, title: text }, text)));
  }

  /** What is the same stays: it keeps the focus, a title that is read, and a button that is being pressed. */
  #showRows(rows: readonly WorkerRow[]): void {
    const focused = document.activeElement instanceof HTMLElement && this.#body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    adapt(this.#body, make("tbody", {}, ...rows.map(rowElement)));
    if (focused === undefined || this.#body.contains(document.activeElement)) return;
    [...this.#body.querySelectorAll<HTMLElement>("[data-key]")].find(({ dataset }) => dataset.key === focused)?.focus({ preventScroll: true });
  }

  #onClick(target: Element): void {
    const { store, root, navigation, model } = this.#view;
    const device = target.closest<HTMLElement>("[data-device]")?.dataset.device;
    if (device !== undefined) {
      const all = this.#shown?.workers.flatMap(({ devices }) => devices) ?? [];
      const question = deviceQuestion(device, all);
      store.setFind(store.find === question ? "" : question, root);
    }
    const op = target.closest<HTMLElement>("[data-op]")?.dataset.op;
    const id = op === undefined ? undefined : model.tree.idOf(op);
    if (id !== undefined) navigation.go(opBox(id));
  }
}

/** A cell per head. Where there is no room for a table a cell is a line, which says its head before it. */
function rowElement(row: WorkerRow): HTMLElement {
  const reason = row.reason === "" ? [] : [make("div", { class: "fs-reason" }, `${row.health}: ${row.reason}`)];
  const lost = row.lost === "" ? [] : [make("div", { class: "fs-reason fs-lost-state", title: `${row.lostNames}: restore a checkpoint, or initialise` }, `lost: ${row.lost}`)];
  const transport = row.transport === "" ? [] : [make("small", { class: "fs-transport", title: row.transportTitle }, row.transport)];
  const more = row.waits.slice(WAITS);
  const others = more.length === 0 ? [] : [make("small", { title: more.map(({ text, since }) => `${text} ${since}`).join("\n") }, `and ${more.length} more`)];
  const cells: (readonly (Node | string)[])[] = [
    [healthDot(row), nameElement(row.name), ...small(row.dask), ...transport],
    [...reason, ...lost, ...row.waits.slice(0, WAITS).map(waitElement), ...others],
    [memoryBar(row), ...small(row.memory)],
    row.devices.map(({ name, short }) => make("button", { type: "button", class: "fs-link", "data-device": name, "data-key": `device ${name}`, title: `Show what stands on ${name} alone`, ...OWN_KEYS }, short)),
    [line(row.steps), ...small(row.running)],
    [line(row.held), ...small(...row.queues)],
    [line(row.host), ...small(row.process)],
    small(row.sent, row.received, row.link),
    [...(row.clock === "" ? [] : [line(row.clock)]), ...small(row.clockError)],
  ];
  const elements = cells.map((cell, i) => make("td", { "data-head": HEADS[i]?.[0] ?? "" }, ...cell));
  elements[0]?.setAttribute("title", row.title);
  elements[1]?.classList.add("fs-waits");
  return make("tr", { "data-key": row.task, "data-task": row.task, "data-health": row.health, "data-state": row.lost === "" ? "there" : "lost" }, ...elements);
}

/** Of a long name the number stays in sight. */
function nameElement(name: string): HTMLElement {
  const [, job = name, number = ""] = /^(.*)( \d+)$/.exec(name) ?? [];
  return make("b", { class: "fs-cluster-name" }, make("span", {}, job), number);
}

function small(...texts: readonly string[]): HTMLElement[] {
  return texts.filter((text) => text !== "").map((text) => make("small", { title: text }, text));
}

function line(text: string): HTMLElement {
  return make("div", { class: "fs-line", title: text }, text);
}

function healthDot({ health, name, lost }: WorkerRow): HTMLElement {
  const said = lost === "" ? health : `${health}, ${lost} lost`;
  return make("span", { class: "fs-health", role: "img", "aria-label": `${name}: ${said}`, title: said });
}

/** Without a limit nothing can be full. */
function memoryBar({ fill }: WorkerRow): HTMLElement {
  const bar = make("span", { class: "fs-memory", "data-level": fill?.level ?? "well", "aria-hidden": "true" });
  bar.hidden = fill === null;
  bar.append(make("span", { style: `width: ${(100 * (fill?.share ?? 0)).toFixed(1)}%` }));
  return bar;
}

function waitElement({ text, op, since }: WaitRow): HTMLElement {
  const what = make("span", { class: "fs-clamped" }, text);
  const shown = op === null ? what : make("button", { type: "button", class: "fs-link", "data-op": op, "data-key": `wait ${text}`, ...OWN_KEYS }, what);
  return make("div", { class: "fs-wait", title: `${text} ${since}` }, shown, make("span", { class: "fs-since" }, since));
}

export const clusterPanel: Panel = { id: "cluster", title: "Cluster", region: "panels", order: 97, least: { w: 320, h: 150 }, shuts: "Close the cluster", make: (view) => new ClusterPanel(view).element };
