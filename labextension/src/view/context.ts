/** What a panel and a command of a view may use. */
import type { ClusterModel } from "../model/cluster.js";
import type { CulpritModel } from "../model/culprit.js";
import type { DebugModel } from "../model/debug.js";
import type { ExplanationModel } from "../model/explanation.js";
import type { FindingsModel } from "../model/findings.js";
import type { GraphModel } from "../model/graph.js";
import type { BoxId } from "../model/ids.js";
import type { PastModel } from "../model/past.js";
import type { OpenScopes } from "../model/open_scopes.js";
import type { PlacementModel } from "../model/placement.js";
import type { Rewind } from "../model/rewind.js";
import type { Selection } from "../model/selection.js";
import type { Signal } from "../model/signal.js";
import type { SummariesModel } from "../model/summaries.js";
import type { Store } from "../model/store.js";
import type { TraceModel } from "../model/trace.js";
import type { VariablesModel } from "../model/variables.js";
import type { Picture } from "../render/scene.js";
import type { CommandTable } from "./command_table.js";
import type { Drawers } from "./drawers.js";
import type { Finder } from "./finder.js";
import type { Navigation } from "./navigation.js";
import type { Carried } from "./pointer.js";
import type { RunLink } from "./run_link.js";
import type { SessionLink } from "./session_link.js";
import type { Sections } from "./sections.js";
import type { Slicer } from "./slicer.js";
import type { Stage } from "./stage.js";
import type { Timeline } from "./timeline.js";

/** Takes a box along with the pointer, where somebody wants that. */
export interface Carrier {
  carry(box: BoxId): Carried | null;
}

export interface ViewContext {
  readonly model: GraphModel;
  /** What is chosen, in all views of the graph. */
  readonly store: Store;
  /** The selection of the store as a box of this view. */
  readonly selection: Selection;
  readonly scopes: OpenScopes;
  readonly session: SessionLink;
  /** What is to be fetched and fed, and what came of it. */
  readonly runs: RunLink;
  readonly stage: Stage;
  /** What was recorded of the graph's steps. */
  readonly trace: TraceModel;
  readonly timeline: Timeline;
  /** Breakpoints, held steps and their values. */
  readonly debug: DebugModel;
  /** Why operations stand where they do. */
  readonly placement: PlacementModel;
  /** The cluster that the session runs on. */
  readonly cluster: ClusterModel;
  /** Who takes boxes along with the pointer. */
  readonly carrier: Carrier;
  /** What is recorded of tensors over steps and iterations. */
  readonly past: PastModel;
  /** Which recorded step is looked at. */
  readonly rewind: Rewind;
  /** What the kernel has explained of an operation. */
  readonly explanation: ExplanationModel;
  readonly culprit: CulpritModel;
  readonly findings: FindingsModel;
  /** What writers of summaries were given. */
  readonly summaries: SummariesModel;
  /** The variables, and what the session keeps of them. */
  readonly variables: VariablesModel;
  readonly navigation: Navigation;
  /** The element that holds the view. */
  readonly root: HTMLElement;
  /** Names the graph in the page; "" where nothing tells. */
  readonly graphKey: string;
  /** Whether this view is the docked panel's. */
  readonly isDocked: boolean;
  readonly finder: Finder;
  readonly drawers: Drawers;
  /** What is open beside the picture. */
  readonly sections: Sections;
  /** Where the buttons of the chosen tab stand. */
  readonly tabRow: HTMLElement;
  readonly commands: CommandTable;
  /** A picture is shown: the boxes that can be seen now. */
  readonly shown: Signal<Picture>;
  /** Does long work so that the page answers meanwhile. */
  readonly slicer: Slicer;
  /** Fires when the view closes; listeners and timers end with it. */
  readonly until: AbortSignal;
}
