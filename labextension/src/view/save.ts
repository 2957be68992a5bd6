/** Hands the picture to the user as a file. */
import { toSvg } from "../render/svg.js";
import type { ViewContext } from "./context.js";
import { make } from "./dom.js";

function saveText(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  link.click();
  // The browser has taken the text by the next task.
  setTimeout(() => URL.revokeObjectURL(url));
}

/** The picture as it is shown, as a file. */
export function exportSvg({ stage, model }: ViewContext): void {
  const picture = stage.currentScene();
  const name = (model.name || "graph").replace(/[^\w.-]+/g, "_");
  if (picture) saveText(toSvg(picture), `${name}.svg`, "image/svg+xml");
}
