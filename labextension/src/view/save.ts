/** Hands the picture to the user as a file. */
import { devicesOf } from "../model/devices.js";
import { digraph, dotText } from "../render/dot.js";
import { paint } from "../render/paint.js";
import { toSvg } from "../render/svg.js";
import type { Export } from "../wire/messages.js";
import type { ViewContext } from "./context.js";
import { make } from "./dom.js";

const MARGIN_PX = 12;
/** Pixels of a PNG for one of the picture. */
const RATIO = 2;
/** Browsers draw on no canvas that is larger. */
const MOST_PX = 16_000;
const MOST_AREA_PX = 200_000_000;

function saveFile(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = make("a", { href: url, download: name });
  link.click();
  // The browser has taken the content by the next task.
  setTimeout(() => URL.revokeObjectURL(url));
}

function fileName({ model }: ViewContext, extension: string): string {
  return `${(model.name || "graph").replace(/[^\w.-]+/g, "_")}.${extension}`;
}

/** The picture as it is shown, as a file. */
export function exportSvg(view: ViewContext): void {
  const picture = view.stage.currentScene();
  if (picture) saveFile(new Blob([toSvg(picture)], { type: "image/svg+xml" }), fileName(view, "svg"));
}

/** The same as an image of twice the size, in the colours of the theme; smaller where a browser could not draw that. */
export function exportPng(view: ViewContext): void {
  const picture = view.stage.currentScene();
  if (!picture) return;
  const [w, h] = [picture.w + 2 * MARGIN_PX, picture.h + 2 * MARGIN_PX];
  const ratio = ratioFor(w, h);
  const canvas = make("canvas", { width: String(Math.ceil(w * ratio)), height: String(Math.ceil(h * ratio)) });
  const ctx = canvas.getContext("2d");
  if (!ctx) return view.session.say("this browser gives no canvas to draw the image on: save it as SVG", true);
  paint(ctx, picture, { x: MARGIN_PX, y: MARGIN_PX, zoom: 1 }, w, h, ratio);
  canvas.toBlob((image) => {
    if (image) saveFile(image, fileName(view, "png"));
    else view.session.say("the picture is too large for an image: save it as SVG", true);
  }, "image/png");
}

/** How many pixels an image has for one of the picture. */
export function ratioFor(w: number, h: number): number {
  return Math.min(RATIO, MOST_PX / Math.max(w, h), Math.sqrt(MOST_AREA_PX / (w * h)));
}

/** The boxes that are shown, in Graphviz's language. */
export function exportDot(view: ViewContext): void {
  const { navigation: { graph }, model } = view;
  if (!graph) return;
  const text = dotText(digraph(model, graph, devicesOf(model), model.name));
  saveFile(new Blob([text], { type: "text/vnd.graphviz" }), fileName(view, "gv"));
}

/** Asks the kernel for what was traced, as a file. */
export const exportTraced = (what: "chrome" | "recording" | "html") => ({ session }: ViewContext): void => session.ask("ask_export", { request_id: 0, what }, (file) => saveExport(session, file));

/** Hands on what the kernel has sent; the view says why there is nothing. */
function saveExport(session: Pick<ViewContext["session"], "say">, { error, name, media, content }: Export): void {
  if (error !== "") return session.say(error, true);
  saveFile(new Blob([Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))], { type: media }), name);
}
