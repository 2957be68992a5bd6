/** All panels of a view: a panel is a file and a line here. */
import { clusterPanel } from "./cluster_panel.js";
import { costsPanel } from "./costs_panel.js";
import { crumbsPanel } from "./crumbs.js";
import { debugPanel } from "./debug_panel.js";
import { devicesPanel } from "./devices_panel.js";
import { findPanel } from "./find_panel.js";
import { framesPanel } from "./frames_panel.js";
import { heatPanel } from "./heat_panel.js";
import { hoverCardPanel } from "./hover_card.js";
import { inputPanel } from "./input_panel.js";
import { inspectorPanel } from "./inspector.js";
import { keysPanel } from "./keys_panel.js";
import { nanPanel } from "./nan_panel.js";
import { legendPanel } from "./legend_panel.js";
import { minimapPanel } from "./minimap.js";
import { outlinePanel } from "./outline.js";
import type { Panel, Region } from "./panel.js";
import { pastPanel } from "./past_panel.js";
import { positionPanel } from "./position.js";
import { morePanel, railPanel } from "./rail.js";
import { runPanel } from "./run_panel.js";
import { runBarPanel } from "./run_bar.js";
import { scrubberPanel } from "./scrubber.js";
import { savePanel } from "./save_panel.js";
import { slowPanel } from "./slow_panel.js";
import { speechPanel } from "./speech.js";
import { summariesPanel } from "./summaries_panel.js";
import { timelinePanel } from "./timeline_panel.js";
import { explainPanel } from "./explain_panel.js";
import { valuePanel } from "./value_panel.js";
import { variablesPanel } from "./variables_panel.js";

export const PANELS: readonly Panel[] = [
  runBarPanel,
  outlinePanel,
  positionPanel,
  crumbsPanel,
  legendPanel,
  scrubberPanel,
  railPanel,
  morePanel,
  keysPanel,
  savePanel,
  minimapPanel,
  findPanel,
  hoverCardPanel,
  speechPanel,
  runPanel,
  inputPanel,
  framesPanel,
  heatPanel,
  devicesPanel,
  timelinePanel,
  costsPanel,
  slowPanel,
  variablesPanel,
  debugPanel,
  nanPanel,
  explainPanel,
  valuePanel,
  pastPanel,
  clusterPanel,
  summariesPanel,
  inspectorPanel,
];

/** The panels of a region in their order. */
export function panelsIn(region: Region, panels: readonly Panel[] = PANELS): Panel[] {
  return panels.filter((panel) => panel.region === region).sort((a, b) => a.order - b.order);
}
