/** Builds graphs for the development page and the tests, as the engine would send them. */
import { PROTOCOL, type Carried, type Node, type Output, type Snapshot, type SessionState } from "../src/wire/messages.js";

export interface OpOptions {
  readonly inputs?: readonly (number | readonly [number, number])[];
  readonly control?: readonly number[];
  readonly shape?: readonly (number | null)[] | null;
  readonly dtype?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly outputs?: readonly Output[];
  readonly placed?: string | null;
  readonly summary?: string;
  readonly body?: string;
  readonly result?: boolean;
  readonly calls?: string;
  readonly runs?: readonly string[];
  readonly roles?: readonly string[];
  readonly predicate?: readonly [number, number];
  readonly carried?: readonly Carried[];
  readonly enters?: Node["enters"];
  readonly leaves?: Node["leaves"];
  readonly always?: Node["always_runs"];
  readonly scope?: string;
  readonly frame?: string;
  readonly madeFrom?: Node["made_from"];
  readonly flops?: number;
}

const SUMMARIES: Readonly<Record<string, string>> = {
  MatMul: "Matrix product a @ b.",
  Placeholder: "A value that is fed.",
  Const: "A constant array.",
  VariableV2: "A value that lives from step to step.",
  Relu: "max(x, 0), elementwise.",
};

export class GraphBuilder {
  readonly nodes: Node[] = [];
  readonly #names = new Set<string>();

  /** Adds an operation and returns its id. */
  op(type: string, name: string, options: OpOptions = {}): number {
    const id = this.nodes.length;
    this.nodes.push({
      id, name: this.#unique(name), type,
      inputs: (options.inputs ?? []).map((input) => (typeof input === "number" ? [input, 0] as const : input)),
      control: options.control ?? [],
      outputs: options.outputs ?? (type === "NoOp" ? [] : [{ dtype: options.dtype ?? "float32", shape: options.shape ?? null }]),
      attributes: options.attributes ?? {},
      device: "", placed: options.placed === undefined ? "/device:CPU:0" : options.placed,
      summary: options.summary ?? SUMMARIES[type] ?? "",
      origin: { file: null, cell: 3, line: 1 + (id % 9), text: `${name.split("/").pop() ?? ""} = fs.${type.toLowerCase()}(...)`, function: "", variable: "" },
      stale: null, body: options.body ?? "", is_result: options.result ?? false, calls: options.calls ?? "",
      runs: options.runs ?? [], roles: options.roles ?? [], predicate: options.predicate ?? null,
      carried: options.carried ?? [], enters: options.enters ?? [], leaves: options.leaves ?? [],
      always_runs: options.always ?? [], made_from: options.madeFrom ?? [], flops: options.flops ?? 0,
      scope: options.scope ?? "", frame: options.frame ?? "",
    });
    return id;
  }

  #unique(name: string): string {
    let unique = name;
    for (let n = 1; this.#names.has(unique); n++) unique = `${name}_${n}`;
    this.#names.add(unique);
    return unique;
  }
}

export function snapshotOf(nodes: readonly Node[], session: SessionState | null = null, seq = 0): Snapshot {
  return {
    kind: "snapshot", seq, protocol: PROTOCOL, graph_name: "classifier", session, control: "live", run: null, level: "graph", silence_s: 0, trace: null, history: null, view: 0,
    graph: { version: 1, added: nodes, placed: [], changed: [], removed: [], marked: [], fetches: [] },
  };
}
