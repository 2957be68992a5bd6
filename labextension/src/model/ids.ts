/** Names of boxes: "o12" is the operation 12, "s:a/b" the scope a/b. */
export type BoxId = string;

export const ROOT: BoxId = "s:";

export function opBox(id: number): BoxId {
  return `o${id}`;
}

export function scopeBox(path: string): BoxId {
  return `s:${path}`;
}

/** The operation's id, or null where the box is a scope. */
export function opOf(box: BoxId): number | null {
  return box.startsWith("o") ? Number(box.slice(1)) : null;
}

/** The scope's path, or null where the box is an operation. */
export function pathOf(box: BoxId): string | null {
  return box.startsWith("s:") ? box.slice(2) : null;
}
