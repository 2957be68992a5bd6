/**
 * Mouse, pen and wheel on the timeline: drag moves, with Shift or in the ruler it selects a stretch, a click chooses, the wheel
 * zooms at the pointer.
 */
import { RULER_PX } from "../render/timeline.js";
import type { Timeline } from "./timeline.js";

interface TimelineActions {
  /** The pointer is over the timeline, or has left it (null). */
  card(event: PointerEvent | null): void;
  /** The user works with what is shown. */
  pin(): void;
}

/** A press that moves less than this is a click. */
const SLOP_PX = 4;

export function listenToTimeline(timeline: Timeline, { card, pin }: TimelineActions, until: AbortSignal): void {
  const { canvas } = timeline;
  let press: { id: number; x: number; y: number; isDrag: boolean; from: number | null } | null = null;
  const on = <K extends keyof HTMLElementEventMap>(type: K, act: (event: HTMLElementEventMap[K]) => void, passive = true): void =>
    canvas.addEventListener(type, act, { signal: until, passive });

  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.focus({ preventScroll: true });
    press = { id: event.pointerId, x: event.clientX, y: event.clientY, isDrag: false, from: event.offsetX > timeline.namesWidth && (event.shiftKey || event.offsetY < RULER_PX) ? event.offsetX : null };
    canvas.setPointerCapture(event.pointerId);
  });
  on("pointermove", (event) => {
    if (!press) return card(event);
    if (press.id !== event.pointerId) return;
    const [dx, dy] = [event.clientX - press.x, event.clientY - press.y];
    if (!press.isDrag && Math.hypot(dx, dy) < SLOP_PX) return;
    if (!press.isDrag) pin();
    press = { ...press, x: event.clientX, y: event.clientY, isDrag: true };
    card(null);
    if (press.from !== null) return timeline.select([press.from, event.offsetX]);
    canvas.classList.add("fs-dragging");
    timeline.panBy(dx, dy);
  });
  on("pointerup", (event) => {
    // A click in the ruler ends the selection.
    if (press && !press.isDrag && press.from !== null) timeline.select(null);
    if (press && !press.isDrag && event.offsetY >= RULER_PX) {
      const hit = timeline.hit(event.offsetX, event.offsetY);
      if (hit) timeline.choose(hit);
    }
    press = null;
    canvas.classList.remove("fs-dragging");
  });
  on("pointerleave", () => card(null));
  on("pointercancel", () => (press = null));
  on("dblclick", () => timeline.zoomToChosen());
  on("wheel", (event) => {
    // A plain wheel scrolls the notebook, unless the user is working in the timeline.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    pin();
    card(null);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.panBy(-(event.deltaX || event.deltaY) * lines);
    else timeline.zoomBy(Math.exp(-event.deltaY * lines * 0.0022), event.offsetX);
  }, false);
}
