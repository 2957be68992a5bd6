/** How the picture lies on the stage. Pure. */
import { FITTED_ZOOM, type Rect, type Room } from "../layout/types.js";
import type { Camera } from "../render/paint.js";

const LEAST_ZOOM = 0.004;
const MOST_ZOOM = 4;

/** The part of a stage that a fitted picture may fill. */
export function roomIn(width: number, height: number, margin = 16): Room {
  return { w: Math.max(1, width - 2 * margin), h: Math.max(1, height - 2 * margin) };
}

/** Zoom at which a whole picture can be seen; a small one is shown somewhat larger than life. */
export function zoomToFit(w: number, h: number, room: Room): number {
  return Math.max(LEAST_ZOOM, Math.min(FITTED_ZOOM, room.w / (w || 1), room.h / (h || 1)));
}

/**
 * Shows the whole picture in the middle. Where it would be smaller than `least`, it shows what of it has room, from its
 * upper left corner.
 */
export function fitIn(w: number, h: number, width: number, height: number, least = 0, margin = 16): Camera {
  const zoom = Math.max(least, zoomToFit(w, h, roomIn(width, height, margin)));
  return { zoom, x: Math.max((width - w * zoom) / 2, margin), y: Math.max((height - h * zoom) / 2, margin) };
}

/** Zooms so that the point (x, y) of the stage stays where it is. */
export function zoomAt(camera: Camera, factor: number, x: number, y: number): Camera {
  const zoom = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, camera.zoom * factor));
  const k = zoom / camera.zoom;
  return { zoom, x: x - (x - camera.x) * k, y: y - (y - camera.y) * k };
}

/** Moves the picture so that a box that went from one place to another stays where it was seen. */
export function holdStill(camera: Camera, before: Rect, after: Rect): Camera {
  const dx = before.x + before.w / 2 - after.x - after.w / 2;
  const dy = before.y - after.y;
  return { zoom: camera.zoom, x: camera.x + dx * camera.zoom, y: camera.y + dy * camera.zoom };
}

/**
 * Shows a box that was opened or closed in place, as much as can be with names that can be read: it stays
 * where it was, or else moves as little as brings all of it into sight, or else is seen from farther away.
 */
export function showOpened(camera: Camera, rect: Rect, width: number, height: number, legible: number, margin = 16): Camera {
  const share = Math.min((width - 2 * margin) / (rect.w * camera.zoom), (height - 2 * margin) / (rect.h * camera.zoom));
  const least = Math.min(1, legible / camera.zoom);
  const from = share < 1 ? zoomAt(camera, Math.max(share, least), ...middleOf(camera, rect)) : camera;
  return bringIn(from, rect, width, height, margin);
}

/** Shows a box and some of what is around it, large enough to be read. */
export function showNear(camera: Camera, rect: Rect, width: number, height: number, legible: number): Camera {
  const isSmall = camera.zoom < legible;
  const from = isSmall ? zoomAt(camera, legible / camera.zoom, ...middleOf(camera, rect)) : camera;
  const margins = [Math.min(130, width / 4), Math.min(90, height / 4)] as const;
  return { ...from, x: bringIn(from, rect, width, height, margins[0]).x, y: bringIn(from, rect, width, height, margins[1]).y };
}

function middleOf({ x, y, zoom }: Camera, rect: Rect): [number, number] {
  return [x + (rect.x + rect.w / 2) * zoom, y + (rect.y + rect.h / 2) * zoom];
}

/** Moves as little as brings a box into sight. */
export function bringIn(camera: Camera, rect: Rect, width: number, height: number, margin = 24): Camera {
  const [left, top] = [rect.x * camera.zoom + camera.x, rect.y * camera.zoom + camera.y];
  const [w, h] = [rect.w * camera.zoom, rect.h * camera.zoom];
  return {
    zoom: camera.zoom,
    x: camera.x + into(left, w, width, margin),
    y: camera.y + into(top, h, height, margin),
  };
}

function into(start: number, size: number, room: number, margin: number): number {
  if (start < margin || size > room - 2 * margin) return start < margin || start > room / 2 ? margin - start : 0;
  return start + size > room - margin ? room - margin - size - start : 0;
}
