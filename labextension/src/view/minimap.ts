/** The whole picture, small, with what is seen of it: where much lies out of sight. */
import { ROOT, type BoxId } from "../model/ids.js";
import { make } from "./dom.js";
import type { Panel } from "./panel.js";

/** Shown below this zoom. */
const FROM_ZOOM = 0.5;
const MOST_W = 150;
const MOST_H = 110;

export const minimapPanel: Panel = {
  id: "minimap", title: "Overview", region: "stage", order: 25,
  make({ stage, shown, until }) {
    const canvas = make("canvas", { class: "fs-minimap", role: "img", "aria-label": "Overview of the picture", "data-testid": "fs-minimap" });
    const ctx = canvas.getContext("2d");
    let boxes: readonly BoxId[] = [];
    let scale = 1;
    const draw = (): void => {
      const { positions, zoom, theme } = stage;
      const sight = stage.sight;
      const isAllSeen = sight.x <= 0 && sight.y <= 0 && sight.x + sight.w >= positions.w && sight.y + sight.h >= positions.h;
      canvas.hidden = zoom >= FROM_ZOOM || isAllSeen || positions.w === 0;
      if (canvas.hidden || !ctx) return;
      scale = Math.min(MOST_W / positions.w, MOST_H / positions.h);
      const ratio = devicePixelRatio || 1;
      const [w, h] = [Math.max(24, positions.w * scale), Math.max(24, positions.h * scale)];
      canvas.width = w * ratio;
      canvas.height = h * ratio;
      canvas.style.width = `${w}px`;
      canvas.style.height = `${h}px`;
      ctx.setTransform(ratio * scale, 0, 0, ratio * scale, 0, 0);
      ctx.fillStyle = theme.border;
      ctx.globalAlpha = 0.55;
      for (const id of boxes) {
        const rect = positions.boxes.get(id);
        if (rect) ctx.fillRect(rect.x, rect.y, Math.max(rect.w, 1 / scale), Math.max(rect.h, 1 / scale));
      }
      ctx.globalAlpha = 1;
      ctx.strokeStyle = theme.accent;
      ctx.lineWidth = 1.5 / scale;
      ctx.strokeRect(sight.x, sight.y, sight.w, sight.h);
    };
    const go = (event: PointerEvent): void => {
      if (event.buttons === 1) stage.centerOn(event.offsetX / scale, event.offsetY / scale);
    };
    canvas.addEventListener("pointerdown", go, { signal: until });
    canvas.addEventListener("pointermove", go, { signal: until });
    shown.connect(({ graph }) => {
      // Open boxes are areas: what stands in them is drawn.
      boxes = [...graph.boxes.values()].filter(({ id, isOpen }) => id !== ROOT && !isOpen).map(({ id }) => id);
      draw();
    }, until);
    stage.moved.connect(draw, until);
    canvas.hidden = true;
    return canvas;
  },
};
