/** Mouse, pen and wheel on the stage: drag moves, a click selects, a double click opens. */
import { toggleRect } from "../render/boxes.js";
import { SPACE } from "../layout/types.js";
import type { Box } from "../model/visible.js";
import type { BoxId } from "../model/ids.js";
import type { Stage } from "./stage.js";

export interface PointerActions {
  select(box: BoxId | null): void;
  toggle(box: BoxId): void;
  hover(box: BoxId | null): void;
  boxOf(id: BoxId): Box | undefined;
  /** Takes a box along with the pointer; null where the picture is moved instead. */
  carry(box: BoxId): Carried | null;
}

/** A box that goes with the pointer: where it is dropped decides what becomes of it. */
export interface Carried {
  move(x: number, y: number): void;
  drop(x: number, y: number): void;
  cancel(): void;
}

/** A press that moves less than this is a click. */
const SLOP_PX = 4;

export function listenToPointer(stage: Stage, actions: PointerActions, until: AbortSignal): void {
  const { canvas, element } = stage;
  let press: { id: number; x: number; y: number; isDrag: boolean; box: BoxId | null; carried: Carried | null } | null = null;
  const on = <K extends keyof HTMLElementEventMap>(
    type: K, act: (event: HTMLElementEventMap[K]) => void, passive = true,
  ): void => canvas.addEventListener(type, act, { signal: until, passive });

  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.focus({ preventScroll: true });
    press = { id: event.pointerId, x: event.clientX, y: event.clientY, isDrag: false, box: grabbed(stage, actions, event), carried: null };
    canvas.setPointerCapture(event.pointerId);
  });
  on("pointermove", (event) => {
    if (!press) return actions.hover(stage.hit(event.offsetX, event.offsetY));
    if (press.id !== event.pointerId) return;
    const [dx, dy] = [event.clientX - press.x, event.clientY - press.y];
    if (!press.isDrag && Math.hypot(dx, dy) < SLOP_PX) return;
    const carried = press.isDrag || press.box === null ? press.carried : actions.carry(press.box);
    press = { ...press, x: event.clientX, y: event.clientY, isDrag: true, carried };
    if (carried) return carried.move(event.clientX, event.clientY);
    canvas.classList.add("fs-dragging");
    stage.panBy(dx, dy);
  });
  on("pointerup", (event) => {
    if (press && !press.isDrag) click(stage, actions, event);
    press?.carried?.drop(event.clientX, event.clientY);
    press = null;
    canvas.classList.remove("fs-dragging");
  });
  on("pointerleave", () => actions.hover(null));
  on("pointercancel", () => {
    press?.carried?.cancel();
    press = null;
  });
  on("dblclick", (event) => {
    const box = stage.hit(event.offsetX, event.offsetY);
    const isOnToggle = box !== null && hitsToggle(stage, actions, box, event);
    if (box !== null && !isOnToggle) actions.toggle(box);
  });
  on("wheel", (event) => {
    // A plain wheel scrolls the notebook, unless the user is working in the picture.
    const isOurs = event.ctrlKey || event.metaKey || document.activeElement === element;
    if (!isOurs) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    stage.zoomBy(Math.exp(-event.deltaY * lines * 0.0015), event.offsetX, event.offsetY);
  }, false);
}

/** What is taken hold of: an operation, a closed scope, or an open one at its name. */
function grabbed(stage: Stage, actions: PointerActions, event: PointerEvent): BoxId | null {
  const box = stage.hit(event.offsetX, event.offsetY);
  const rect = box === null ? undefined : stage.positions.boxes.get(box);
  if (box === null || !rect) return null;
  const isAtName = stage.toPicture(event.offsetX, event.offsetY).y <= rect.y + SPACE.header;
  return !actions.boxOf(box)?.isOpen || isAtName ? box : null;
}

function click(stage: Stage, actions: PointerActions, event: PointerEvent): void {
  const box = stage.hit(event.offsetX, event.offsetY);
  if (box !== null && hitsToggle(stage, actions, box, event)) actions.toggle(box);
  actions.select(box);
}

function hitsToggle(stage: Stage, actions: PointerActions, id: BoxId, event: MouseEvent): boolean {
  const box = actions.boxOf(id);
  const rect = stage.positions.boxes.get(id);
  if (!box?.scope || !rect) return false;
  const at = toggleRect(rect, box.isOpen ? SPACE.header / 2 + 1 : rect.h / 2);
  const { x, y } = stage.toPicture(event.offsetX, event.offsetY);
  // A finger's width of tolerance on the screen.
  const slack = 4 / stage.zoom;
  return x >= at.x - slack && x <= at.x + at.w + slack && y >= at.y - slack && y <= at.y + at.h + slack;
}
