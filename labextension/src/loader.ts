/**
 * The widget's entry, as anywidget reads it: small, for it travels with every view. What draws is asked of the kernel once
 * in a page, and shared by all views; each version of it has a digest.
 */

interface Model {
  get(name: string): unknown;
  on(event: string, listener: (message: unknown) => void): void;
  off(event: string, listener: (message: unknown) => void): void;
  send(message: unknown): void;
}

interface Context {
  readonly model: Model;
  readonly el: HTMLElement;
  readonly signal?: AbortSignal;
}

type Render = (context: Context) => () => void;

/** A view that waits for another view's question asks itself after so long: the other may have closed. */
const PATIENCE_MS = 2000;

interface Page {
  /** By digest; of those asked for, when and by whom it will be here. */
  readonly cores: Map<string, { readonly render: Promise<Render>; take(render: Render): void; isHere: boolean }>;
}

function page(): Page {
  const known = globalThis as { flowscopePage?: Page };
  return (known.flowscopePage ??= { cores: new Map() });
}

async function render(context: Context): Promise<() => void> {
  const { model, signal } = context;
  const drawing = await core(model, signal);
  return signal?.aborted ? () => undefined : drawing(context);
}

function core(model: Model, signal: AbortSignal | undefined): Promise<Render> {
  const digest = String(model.get("core"));
  const { cores } = page();
  const before = cores.get(digest);
  if (before?.isHere) return before.render;
  const asked = before ?? promised();
  cores.set(digest, asked);
  const listen = (message: unknown): void => {
    const { kind, script, style } = message as { kind?: string; script?: string; style?: string };
    if (kind === "core" && script !== undefined && !asked.isHere) void start(script, style ?? "").then((made) => asked.take(made));
  };
  model.on("msg:custom", listen);
  const timer = setTimeout(() => model.send({ kind: "core" }), before ? PATIENCE_MS : 0);
  const end = (): void => {
    clearTimeout(timer);
    model.off("msg:custom", listen);
  };
  signal?.addEventListener("abort", end, { once: true });
  void asked.render.then(end);
  return asked.render;
}

function promised(): { readonly render: Promise<Render>; take(render: Render): void; isHere: boolean } {
  let resolve: (render: Render) => void = () => undefined;
  const render = new Promise<Render>((done) => (resolve = done));
  const made = {
    render, isHere: false,
    take(drawing: Render): void {
      made.isHere = true;
      resolve(drawing);
    },
  };
  return made;
}

/** As anywidget itself does: a module from a text. */
async function start(script: string, style: string): Promise<Render> {
  const sheet = document.createElement("style");
  sheet.textContent = style;
  document.head.append(sheet);
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  try {
    const loaded = (await import(address)) as { default: { render: Render } };
    return loaded.default.render;
  } finally {
    URL.revokeObjectURL(address);
  }
}

export default { render };
