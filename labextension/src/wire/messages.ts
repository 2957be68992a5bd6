// Generated from flowscope.live.protocol.schema by flowscope.live.protocol.typescript: do not edit.

export const PROTOCOL = 15;

/** How the fields of a node travel. */
export const COLUMNS = {
  id: "number",
  name: "text",
  type: "text",
  inputs: "pairs",
  control: "numbers",
  outputs: "outputs",
  attributes: "attributes",
  device: "text",
  placed: "text",
  summary: "text",
  origin: "origin",
  body: "text",
  is_result: "number",
} as const;

/** How full a queue or an accumulator of a worker is. */
export interface QueueFill {
  readonly name: string;
  readonly size: number;
  readonly capacity: number;
  readonly enqueues: number;
  readonly dequeues: number;
  readonly stamp: number | null;
  readonly dropped: number;
}

/** Something that sessions of this client had on a worker, and that was lost with it. */
export interface LostState {
  readonly kind: "variable" | "queue" | "lock" | "table" | "staging area" | "accumulator" | "reader";
  readonly name: string;
}

/** A device waits for another one, or for a queue, within a step. */
export interface WaitStatus {
  readonly client: string;
  readonly step: number;
  readonly device: string;
  readonly peer: string;
  readonly what: string;
  readonly kind: "value" | "credit" | "transfer" | "queue";
  readonly seconds: number;
}

/** One process of a cluster. */
export interface WorkerStatus {
  readonly task: string;
  readonly worker: string;
  readonly incarnation: string;
  readonly host: string;
  readonly pid: number;
  readonly devices: readonly string[];
  readonly health: "ok" | "busy" | "hung" | "lost";
  readonly reason: string;
  readonly silent_s: number;
  readonly memory_bytes: number | null;
  readonly memory_limit: number | null;
  readonly held_bytes: number;
  readonly steps: number;
  readonly running: number;
  readonly sent_bytes: number | null;
  readonly received_bytes: number | null;
  readonly clock_ahead_s: number | null;
  readonly clock_error_s: number | null;
  readonly round_trip_s: number | null;
  readonly bytes_per_s: number | null;
  readonly queues: readonly QueueFill[];
  readonly transport: string;
  readonly is_encrypted: boolean;
  readonly lost: readonly LostState[];
}

/** One sentence on why steps do not go on. */
export interface Finding {
  readonly kind: "cycle" | "lost" | "hung" | "state" | "busy" | "waits";
  readonly text: string;
  readonly tasks: readonly string[];
}

/** A cluster at one moment. */
export interface ClusterStatus {
  readonly target: string;
  readonly scheduler: string;
  readonly dashboard: string;
  readonly workers: readonly WorkerStatus[];
  readonly waits: readonly WaitStatus[];
  readonly findings: readonly Finding[];
}

/** A view asks how the cluster is; the answer is one `Cluster`, which may take a moment. */
export interface AskCluster {
  readonly view: number;
  readonly request_id: number;
  readonly kind: "ask_cluster";
}

/** The answer to `AskCluster`. */
export interface Cluster {
  readonly request_id: number;
  readonly error: string;
  readonly status: ClusterStatus | null;
  readonly view: number;
  readonly kind: "cluster";
}

/** A breakpoint that a view asks for: exactly one of `op`, `scope`, `op_type` and `line`. */
export interface BreakpointWish {
  readonly op: string | null;
  readonly scope: string | null;
  readonly op_type: string | null;
  readonly line: number | null;
  readonly cell: number | null;
  readonly file: string | null;
  readonly is_after: boolean;
  readonly when: string;
  readonly iteration: number | null;
  readonly step: number | null;
  readonly hits: number;
}

/** A watchpoint that a view asks for, of values of what is named, or of everything. */
export interface WatchWish {
  readonly op: string | null;
  readonly scope: string | null;
  readonly op_type: string | null;
  readonly line: number | null;
  readonly cell: number | null;
  readonly file: string | null;
  readonly when: string;
  readonly exceptions: readonly string[];
  readonly raises: boolean;
}

/** A value that a view gives to a tensor of the held step. */
export interface Replacement {
  readonly stop: string;
  readonly tensor: string;
  readonly text: string;
}

/** A breakpoint or a watchpoint of a session. */
export interface BreakpointState {
  readonly number: number;
  readonly target: string;
  readonly conditions: string;
  readonly is_after: boolean;
  readonly is_enabled: boolean;
  readonly hits: number;
  readonly error: string;
  readonly ops: readonly number[];
  readonly where: readonly string[];
  readonly is_watch: boolean;
  readonly found: string;
  readonly stops_at_nan: boolean;
  readonly follows: boolean;
}

/** A step that is held: values can be asked of it until it goes on. */
export interface StopState {
  readonly id: string;
  readonly step: number | null;
  readonly op: number | null;
  readonly frame: string;
  readonly iterations: readonly number[];
  readonly breakpoint: number | null;
  readonly is_past: boolean;
  readonly device: string;
  readonly sent: string;
  readonly sender: string;
  readonly culprit: number | null;
}

/** The breakpoints of a session, and the steps that are held. */
export interface DebugState {
  readonly breakpoints: readonly BreakpointState[];
  readonly stops: readonly StopState[];
  readonly waiting: readonly string[];
}

/** A view asks for values at a stop; the answer is `Values`. */
export interface AskValues {
  readonly view: number;
  readonly request_id: number;
  readonly stop: string;
  readonly tensors: readonly string[];
  readonly at: readonly number[];
  readonly kind: "ask_values";
}

/** A tensor at a stop. */
export interface ValueState {
  readonly name: string;
  readonly state: "alive" | "not yet" | "gone" | "absent";
  readonly why: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly nbytes: number;
  readonly finite: number;
  readonly nan: number;
  readonly inf: number;
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly histogram: Table;
  readonly picture: Table;
  readonly width: number;
  readonly height: number;
  readonly low: number;
  readonly high: number;
}

/** The answer to `AskValues`. */
export interface Values {
  readonly request_id: number;
  readonly error: string;
  readonly values: readonly ValueState[];
  readonly view: number;
  readonly kind: "values";
}

/** A view asks what made the value for which a watchpoint holds a step; see `Culprit`. */
export interface AskCulprit {
  readonly view: number;
  readonly request_id: number;
  readonly stop: string;
  readonly kind: "ask_culprit";
}

/** An operation on the way to a culprit. */
export interface CulpritStep {
  readonly op: number;
  readonly name: string;
  readonly type: string;
}

/** The answer to `AskCulprit`. */
export interface Culprit {
  readonly request_id: number;
  readonly error: string;
  readonly stop: string;
  readonly what: string;
  readonly step: number | null;
  readonly iterations: readonly number[];
  readonly path: readonly CulpritStep[];
  readonly place: string;
  readonly source: string;
  readonly already: readonly string[];
  readonly outputs: readonly ValueState[];
  readonly inputs: readonly ValueState[];
  readonly why_not: string;
  readonly view: number;
  readonly kind: "culprit";
}

/** A view asks what an operation does; the answer is one `Explanation`. */
export interface AskExplanation {
  readonly view: number;
  readonly request_id: number;
  readonly name: string;
  readonly kind: "ask_explanation";
}

/** A sentence of an explanation. */
export interface Sentence {
  readonly topic: "computes" | "step" | "device" | "cost" | "made" | "gradient" | "block" | "values";
  readonly text: string;
}

/** An input or an output of an operation that is explained. */
export interface ExplainedTensor {
  readonly role: "input" | "output";
  readonly name: string;
  readonly type: string;
  readonly why: string;
  readonly value: ValueState | null;
}

/** The answer to `AskExplanation`. */
export interface Explanation {
  readonly request_id: number;
  readonly error: string;
  readonly name: string;
  readonly sentences: readonly Sentence[];
  readonly tensors: readonly ExplainedTensor[];
  readonly view: number;
  readonly kind: "explanation";
}

/** One iteration of a loop that is in flight, or has just ended. */
export interface Iteration {
  readonly number: number;
  readonly state: "waiting" | "running" | "done" | "dead";
  readonly finished: number;
  readonly total: number;
}

/** One running instance of a loop. */
export interface FrameState {
  readonly id: string;
  readonly loop: number;
  readonly name: string;
  readonly parent: string | null;
  readonly parent_iteration: number | null;
  readonly mode: "compiled" | "op" | "tokens";
  readonly iteration: number;
  readonly limit: number | null;
  readonly iterations_per_s: number | null;
  readonly parallel_iterations: number;
  readonly window: readonly Iteration[];
  readonly held: string;
  readonly kept_bytes: number | null;
  readonly kept_estimate_bytes: number | null;
}

/** A value that moved along an edge. */
export interface Token {
  readonly source: number;
  readonly output: number;
  readonly target: number;
  readonly frame: string;
  readonly iterations: readonly number[];
  readonly is_dead: boolean;
}

/** Where a step is held, or was a moment ago. */
export interface Position {
  readonly op: number | null;
  readonly frame: string;
  readonly iterations: readonly number[];
  readonly what: string;
}

/** Where the running steps are. */
export interface RunState {
  readonly frames: readonly FrameState[];
  readonly position: Position | null;
  readonly tokens: readonly Token[];
  readonly pace_s: number;
}

/** A view asks for steps to be recorded from now on; what was recorded before ends. */
export interface RecordWish {
  readonly tensors: readonly string[];
  readonly max_bytes: number;
}

/** A view asks for a step of the past to be computed again, up to an operation. */
export interface ReplayWish {
  readonly step: number;
  readonly op: string;
  readonly iterations: readonly number[];
}

/** What is recorded of a session. */
export interface HistoryState {
  readonly version: number;
  readonly steps: number;
  readonly first: number | null;
  readonly last: number | null;
  readonly tensors: readonly string[];
  readonly nbytes: number;
  readonly max_bytes: number;
}

/** A view asks for the values that a tensor had; the answer is one `TensorHistory`. */
export interface AskHistory {
  readonly view: number;
  readonly request_id: number;
  readonly tensor: string;
  readonly most: number;
  readonly row: number | null;
  readonly at: readonly number[];
  readonly kind: "ask_history";
}

/** The answer to `AskHistory`. */
export interface TensorHistory {
  readonly request_id: number;
  readonly error: string;
  readonly version: number;
  readonly tensor: string;
  readonly values: Table;
  readonly shown: ValueState | null;
  readonly view: number;
  readonly kind: "history";
}

/** An operation that waits at a queue. */
export interface QueueWait {
  readonly op: number | null;
  readonly name: string;
  readonly kind: "space" | "elements" | "gradients";
  readonly seconds: number;
}

/** How full a queue or an accumulator of gradients is, and who waits at it. */
export interface QueueState {
  readonly op: number;
  readonly size: number;
  readonly capacity: number;
  readonly enqueues: number;
  readonly dequeues: number;
  readonly is_closed: boolean;
  readonly fills_itself: boolean;
  readonly least: number;
  readonly per_s: number | null;
  readonly waits: readonly QueueWait[];
  readonly error: string;
  readonly stamp: number | null;
  readonly dropped: number;
}

/** A thread or a hook that belongs to a session's input and training. */
export interface HelperState {
  readonly kind: "runner" | "coordinator" | "hook";
  readonly name: string;
  readonly op: number | null;
  readonly text: string;
  readonly has_failed: boolean;
}

/** A device that an operation could be placed on, or why it could not. */
export interface CandidateState {
  readonly device: string;
  readonly seconds: number | null;
  readonly reason: string;
}

/** Where the latest plan has placed an operation, and why. */
export interface OpPlacementState {
  readonly name: string;
  readonly type: string;
  readonly requested: string;
  readonly device: string;
  readonly reason: string;
  readonly candidates: readonly CandidateState[];
}

/** What moving an operation or a scope to a device would do. */
export interface MovePrediction {
  readonly device: string;
  readonly before_s: number | null;
  readonly after_s: number | null;
  readonly moved_bytes: number;
  readonly refused: string;
}

/** Operations are to stand on a device. */
export interface MoveWish {
  readonly name: string;
  readonly device: string;
  readonly parts: readonly string[];
}

/** The latest move that a view has asked for, and what came of it. */
export interface MoveState {
  readonly name: string;
  readonly device: string;
  readonly before_s: number | null;
  readonly after_s: number | null;
  readonly measured_before_s: number | null;
  readonly measured_after_s: number | null;
  readonly clock: "wall" | "simulated";
}

/** A view asks where the latest plan has placed something; the answer is one `Placement`. */
export interface AskPlacement {
  readonly view: number;
  readonly request_id: number;
  readonly name: string;
  readonly device: string;
  readonly parts: readonly string[];
  readonly kind: "ask_placement";
}

/** The answer to `AskPlacement`. */
export interface Placement {
  readonly request_id: number;
  readonly error: string;
  readonly op: OpPlacementState | null;
  readonly move: MovePrediction | null;
  readonly view: number;
  readonly kind: "placement";
}

/** A tensor that must be fed for what is chosen to be fetched. */
export interface Need {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly (number | null)[] | null;
  readonly text: string;
  readonly value: string;
  readonly problem: string;
  readonly candidates: readonly string[];
}

/** What a run has made of one fetch: a short text, else what can be told of an array. */
export interface Fetched {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly text: string;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly mean: number | null;
  readonly histogram: readonly number[];
  readonly not_finite: number;
}

/** A number that steps have fetched, or a writer of summaries was given, lately. */
export interface ScalarState {
  readonly name: string;
  readonly op: number | null;
  readonly step: number;
  readonly value: number;
  readonly curve: readonly number[];
}

/** What came of a run. */
export interface Outcome {
  readonly number: number;
  readonly seconds: number;
  readonly fetched: readonly Fetched[];
  readonly fed: readonly (readonly [string, string])[];
  readonly error: string;
  readonly failed_at: string;
}

/** How a fetched value of one run differs from that of another. */
export interface FetchChange {
  readonly name: string;
  readonly is_equal: boolean;
  readonly max_abs: number | null;
  readonly text: string;
}

/** What the views of a graph are to run, and what came of it. */
export interface RunSetup {
  readonly fetches: readonly string[];
  readonly needs: readonly Need[];
  readonly would_run: readonly (readonly [number, number])[];
  readonly state: "ready" | "waiting" | "running";
  readonly problem: string;
  readonly latest: Outcome | null;
  readonly kept: readonly number[];
  readonly compared_with: number;
  readonly changes: readonly FetchChange[];
}

/** One output of an operation. */
export interface Output {
  readonly dtype: string;
  readonly shape: readonly (number | null)[] | null;
}

/** The user's line that made an operation. */
export interface Origin {
  readonly file: string | null;
  readonly cell: number | null;
  readonly line: number;
  readonly text: string;
  readonly function: string;
  readonly variable: string;
}

/** One variable of a loop: the frame's back edge leads from its result to its parameters. */
export interface Carried {
  readonly input: number;
  readonly parameter: number;
  readonly test: number | null;
  readonly result: readonly [number, number];
  readonly output: number;
}

/** An operation of the graph as written that a node of the lowered program was made of. */
export interface Source {
  readonly id: number;
  readonly name: string;
  readonly type: string;
}

/** One operation of the graph. Its scopes are the "/"-separated parts of its name. */
export interface Node {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly inputs: readonly (readonly [number, number])[];
  readonly control: readonly number[];
  readonly outputs: readonly Output[];
  readonly attributes: Readonly<Record<string, string>>;
  readonly device: string;
  readonly placed: string | null;
  readonly summary: string;
  readonly origin: Origin | null;
  readonly stale: string | null;
  readonly body: string;
  readonly is_result: boolean;
  readonly calls: string;
  readonly runs: readonly string[];
  readonly roles: readonly string[];
  readonly predicate: readonly [number, number] | null;
  readonly carried: readonly Carried[];
  readonly enters: readonly (readonly [number, number])[];
  readonly leaves: readonly (readonly [number, number, number])[];
  readonly always_runs: readonly number[];
  readonly made_from: readonly Source[];
  readonly scope: string;
  readonly frame: string;
  readonly flops: number;
}

/** Nodes as they travel: tables here, and the columns in a buffer of the message. */
export interface Columns {
  readonly rows: number;
  readonly buffer: number;
  readonly texts: readonly string[];
  readonly outputs: readonly Output[];
  readonly attributes: readonly Readonly<Record<string, string>>[];
  readonly origins: readonly Origin[];
  readonly rest: readonly (readonly [number, Readonly<Record<string, unknown>>])[];
}

/** What became of operations since the message before (a snapshot has all of them). */
export interface GraphChange {
  readonly version: number;
  readonly added: readonly Node[];
  readonly placed: readonly (readonly [number, string])[];
  readonly changed: readonly Node[];
  readonly removed: readonly number[];
  readonly marked: readonly number[];
  readonly fetches: readonly string[];
}

/** How far a loop has come that was wrapped in `fs.progress`. */
export interface Progress {
  readonly description: string;
  readonly done: number;
  readonly total: number | null;
  readonly elapsed_s: number;
  readonly eta_s: number | null;
}

/** How the latest step failed. */
export interface Failure {
  readonly op: number | null;
  readonly message: string;
}

/** What a session is doing. */
export interface SessionState {
  readonly state: "idle" | "running" | "pausing" | "paused" | "stopping" | "stopped" | "closed";
  readonly steps: number;
  readonly steps_per_s: number | null;
  readonly step_time_s: number | null;
  readonly progress: Progress | null;
  readonly queues: readonly QueueState[];
  readonly helpers: readonly HelperState[];
  readonly failure: Failure | null;
  readonly debug: DebugState | null;
  readonly history: HistoryState | null;
  readonly moved: MoveState | null;
  readonly summaries: SummaryState | null;
  readonly devices: readonly string[];
  readonly is_simulated: boolean;
  readonly scalars: readonly ScalarState[];
}

/** Everything a view needs to draw its first picture. */
export interface Snapshot {
  readonly seq: number;
  readonly protocol: number;
  readonly graph_name: string;
  readonly graph: GraphChange;
  readonly session: SessionState | null;
  readonly control: "live" | "between cells" | "recorded" | "graph";
  readonly run: RunState | null;
  readonly level: "graph" | "lowered" | "partitions";
  readonly silence_s: number;
  readonly trace: TraceState | null;
  readonly history: HistoryState | null;
  readonly view: number;
  readonly kind: "snapshot";
}

/** What changed since the message with the number before. */
export interface Delta {
  readonly seq: number;
  readonly graph: GraphChange | null;
  readonly session: SessionState | null;
  readonly run: RunState | null;
  readonly skipped: number;
  readonly trace: TraceState | null;
  readonly view: number;
  readonly kind: "delta";
}

/** The answer to a command. */
export interface Reply {
  readonly command_id: number;
  readonly ok: boolean;
  readonly message: string;
  readonly view: number;
  readonly kind: "reply";
}

/** A view asks for a snapshot: when it opens, and after a gap. */
export interface Connect {
  readonly view: number;
  readonly protocol: number;
  readonly kind: "connect";
}

/** A view has closed: nothing need be sent for its sake. */
export interface Disconnect {
  readonly view: number;
  readonly kind: "disconnect";
}

/** A view is still open. One that was taken for closed gets a snapshot, as for a `Connect`. */
export interface Alive {
  readonly view: number;
  readonly kind: "alive";
}

/** A view has taken the messages up to this one: there is room for others. */
export interface Ack {
  readonly view: number;
  readonly seq: number;
  readonly kind: "ack";
}

/** A view asks for something to be done at the next safepoint. */
export interface Command {
  readonly command_id: number;
  readonly name: "pause" | "resume" | "stop" | "step_op" | "step_iteration" | "step_out" | "step_run" | "pace" | "level" | "run" | "trace" | "break" | "watch" | "stop_at_nan" | "unbreak" | "enable" | "disable" | "replace" | "step_back" | "record" | "replay" | "move";
  readonly value: number | string | BreakpointWish | WatchWish | Replacement | RecordWish | ReplayWish | MoveWish | null;
  readonly view: number;
  readonly kind: "command";
}

/** The user has chosen something in a view; all views of the widget take it over. */
export interface Choose {
  readonly what: "selection" | "iteration" | "open_scopes" | "find" | "isolated" | "fetches" | "feed" | "baseline" | "step" | "heat";
  readonly value: string | number | readonly [string, number] | readonly string[] | readonly [string, string | null] | Readonly<Record<string, boolean>> | null;
  readonly kind: "choose";
}

/** What writers of summaries were given so far. */
export interface SummaryState {
  readonly version: number;
  readonly nbytes: number;
  readonly max_bytes: number;
  readonly dropped: number;
}

/** The numbers of a run under a tag. */
export interface ScalarSeries {
  readonly run: string;
  readonly tag: string;
  readonly points: number;
  readonly dropped: number;
  readonly values: Table;
}

/** The histograms of a run under a tag, in bins of one width that are the same for all. */
export interface HistogramSeries {
  readonly run: string;
  readonly tag: string;
  readonly points: number;
  readonly dropped: number;
  readonly low: number;
  readonly high: number;
  readonly bins: number;
  readonly values: Table;
  readonly shares: Table;
}

/** The pictures of a run under a tag, and one of them. */
export interface ImageSeries {
  readonly run: string;
  readonly tag: string;
  readonly points: number;
  readonly dropped: number;
  readonly step: number;
  readonly width: number;
  readonly height: number;
  readonly data: string;
  readonly nbytes: number;
}

/** The texts of a run under a tag, and those of one step. */
export interface TextSeries {
  readonly run: string;
  readonly tag: string;
  readonly points: number;
  readonly dropped: number;
  readonly step: number;
  readonly texts: readonly string[];
  readonly left_out: number;
}

/** A view asks for summaries; the answer is one `Summaries`. */
export interface AskSummaries {
  readonly view: number;
  readonly request_id: number;
  readonly step: number | null;
  readonly kind: "ask_summaries";
}

/** The answer to `AskSummaries`, by tag and run. */
export interface Summaries {
  readonly request_id: number;
  readonly error: string;
  readonly version: number;
  readonly scalars: readonly ScalarSeries[];
  readonly histograms: readonly HistogramSeries[];
  readonly images: readonly ImageSeries[];
  readonly texts: readonly TextSeries[];
  readonly left_out: number;
  readonly steps: Table;
  readonly view: number;
  readonly kind: "summaries";
}

/** Numbers as they travel: columns one behind the other in a buffer of the message. */
export interface Table {
  readonly rows: number;
  readonly buffer: number;
  readonly columns: readonly (readonly [string, "int32" | "float64"])[];
}

/** A step that was traced. Its times are microseconds since the recording's begin. */
export interface StepSummary {
  readonly number: number;
  readonly begin_us: number;
  readonly end_us: number;
  readonly compute_us: number;
  readonly copies_us: number;
  readonly waits_us: number;
  readonly python_us: number;
  readonly other_us: number;
  readonly spans: number;
  readonly error: string;
  readonly is_whole: boolean;
}

/** What the figures of a program - what one call of `run` asks for - were made of. */
export interface ProgramState {
  readonly number: number;
  readonly name: string;
  readonly basis: "median" | "first" | "parts" | "mean";
  readonly steps: number;
  readonly age_s: number;
}

/** What is traced, and where the time of the traced steps went. */
export interface TraceState {
  readonly steps_per_s: number;
  readonly version: number;
  readonly traced_steps: number;
  readonly steps: readonly StepSummary[];
  readonly programs: readonly ProgramState[];
  readonly heat: Table;
}

/** What runs beside others: a device, a helper thread, the user's program. */
export interface TraceLane {
  readonly name: string;
  readonly kind: "device" | "helper" | "transfer" | "wait" | "pause" | "feeds" | "fetches" | "python" | "compiling";
}

/** A node of a plan: its time counts once, whatever it was made of. */
export interface TraceNode {
  readonly name: string;
  readonly type: string;
  readonly operations: readonly number[];
  readonly device: string;
  readonly phase: "forward" | "gradient" | "update";
  readonly kind: "op" | "loop" | "branch";
}

/** A time of which nothing is kept: nobody's. */
export interface TraceGap {
  readonly lane: number;
  readonly begin_us: number;
  readonly end_us: number;
  readonly spans: number;
  readonly why: string;
}

/** A view asks what happened in a step; the answer is one `Spans`. */
export interface AskSpans {
  readonly request_id: number;
  readonly step: number | null;
  readonly begin_us: number | null;
  readonly end_us: number | null;
  readonly most: number;
  readonly view: number;
  readonly kind: "ask_spans";
}

/** The answer to `AskSpans`: what happened in a step, as finely as was asked for. */
export interface Spans {
  readonly request_id: number;
  readonly version: number;
  readonly step: StepSummary | null;
  readonly begin_us: number;
  readonly end_us: number;
  readonly lanes: readonly TraceLane[];
  readonly nodes: readonly TraceNode[];
  readonly frames: Table;
  readonly spans: Table;
  readonly gaps: readonly TraceGap[];
  readonly memory: Table;
  readonly view: number;
  readonly kind: "spans";
}

/** A view asks why steps take as long as they do; the answer is one `Findings`. */
export interface AskFindings {
  readonly view: number;
  readonly request_id: number;
  readonly program: number;
  readonly kind: "ask_findings";
}

/** Why steps are slow: see `flowscope.tracing.findings`. */
export interface SlowFinding {
  readonly topic: "operation" | "copies" | "waiting" | "python" | "plans";
  readonly share: number;
  readonly text: string;
  readonly advice: string;
  readonly ops: readonly number[];
}

/** The answer to `AskFindings`. */
export interface Findings {
  readonly request_id: number;
  readonly error: string;
  readonly steps: number;
  readonly step_s: number;
  readonly findings: readonly SlowFinding[];
  readonly view: number;
  readonly kind: "findings";
}

/** A view asks for what was traced as a file; the answer is one `Export`. */
export interface AskExport {
  readonly view: number;
  readonly request_id: number;
  readonly what: string;
  readonly kind: "ask_export";
}

/** The answer to `AskExport`. */
export interface Export {
  readonly request_id: number;
  readonly error: string;
  readonly name: string;
  readonly media: string;
  readonly content: string;
  readonly view: number;
  readonly kind: "export";
}

/** A view asks for the list of variables; the answer is one `Variables`. */
export interface AskVariables {
  readonly view: number;
  readonly request_id: number;
  readonly measured: readonly string[];
  readonly step: number | null;
  readonly kind: "ask_variables";
}

/** A variable, and what the session keeps of it. */
export interface VariableState {
  readonly op: number;
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly (number | null)[] | null;
  readonly nbytes: number;
  readonly device: string;
  readonly is_initialized: boolean | null;
  readonly is_trainable: boolean;
  readonly writes: number;
  readonly written_in: number | null;
  readonly primary: number | null;
  readonly why: string;
}

/** The answer to `AskVariables`. */
export interface Variables {
  readonly request_id: number;
  readonly error: string;
  readonly rows: readonly VariableState[];
  readonly left_out: number;
  readonly nbytes: number;
  readonly values: readonly ValueState[];
  readonly view: number;
  readonly kind: "variables";
}

export type FromKernel = Snapshot | Delta | Reply | Cluster | Culprit | Explanation | Export | Findings | TensorHistory | Placement | Spans | Summaries | Values | Variables;

export type FromView = Connect | Disconnect | Alive | Ack | Choose | Command | AskCluster | AskCulprit | AskExplanation | AskExport | AskFindings | AskHistory | AskPlacement | AskSpans | AskSummaries | AskValues | AskVariables;

/** Questions and their answers, by the questions' kinds. */
export interface Questions {
  readonly ask_cluster: readonly [AskCluster, Cluster];
  readonly ask_culprit: readonly [AskCulprit, Culprit];
  readonly ask_explanation: readonly [AskExplanation, Explanation];
  readonly ask_export: readonly [AskExport, Export];
  readonly ask_findings: readonly [AskFindings, Findings];
  readonly ask_history: readonly [AskHistory, TensorHistory];
  readonly ask_placement: readonly [AskPlacement, Placement];
  readonly ask_spans: readonly [AskSpans, Spans];
  readonly ask_summaries: readonly [AskSummaries, Summaries];
  readonly ask_values: readonly [AskValues, Values];
  readonly ask_variables: readonly [AskVariables, Variables];
}

/** Of each question: the kind of its answer, and where that has tables. */
export const QUESTIONS = {
  ask_cluster: { answer: "cluster", tables: [] },
  ask_culprit: { answer: "culprit", tables: [["outputs", "*", "histogram"], ["outputs", "*", "picture"], ["inputs", "*", "histogram"], ["inputs", "*", "picture"]] },
  ask_explanation: { answer: "explanation", tables: [["tensors", "*", "value", "histogram"], ["tensors", "*", "value", "picture"]] },
  ask_export: { answer: "export", tables: [] },
  ask_findings: { answer: "findings", tables: [] },
  ask_history: { answer: "history", tables: [["values"], ["shown", "histogram"], ["shown", "picture"]] },
  ask_placement: { answer: "placement", tables: [] },
  ask_spans: { answer: "spans", tables: [["frames"], ["spans"], ["memory"]] },
  ask_summaries: { answer: "summaries", tables: [["scalars", "*", "values"], ["histograms", "*", "values"], ["histograms", "*", "shares"], ["steps"]] },
  ask_values: { answer: "values", tables: [["values", "*", "histogram"], ["values", "*", "picture"]] },
  ask_variables: { answer: "variables", tables: [["values", "*", "histogram"], ["values", "*", "picture"]] },
} as const;
