/** The state of a view, from all that it knows. */
import { viewState, type ViewState } from "../model/view_state.js";
import type { ViewContext } from "./context.js";

export function stateOf({ model, session, debug, store }: Pick<ViewContext, "model" | "session" | "debug" | "store">): ViewState {
  const link = session.isRecorded ? (model.control === "graph" ? "graph" : "recording") : !session.isLive ? "saved" : session.isHeard ? "heard" : "silent";
  return viewState(link, model.session, debug.stop, store.step, (op) => model.nodes.get(model.ownId(op))?.name ?? null);
}
