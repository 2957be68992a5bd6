/** Hands a text to the user as a file. */
import { make } from "./dom.js";

export function saveText(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  link.click();
  // The browser has taken the text by the next task.
  setTimeout(() => URL.revokeObjectURL(url));
}
