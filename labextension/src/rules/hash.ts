/** Numbers that stand for structures: equal structures have equal numbers, whatever else a graph holds. Pure. */

/** Mixes a number into a hash; both are 32 bits wide. */
export function mix(hash: number, value: number): number {
  let h = Math.imul(hash ^ value, 0x9e3779b1);
  h ^= h >>> 15;
  h = Math.imul(h, 0x85ebca6b);
  return (h ^ (h >>> 13)) | 0;
}

const FNV_BASIS = 2166136261;

export function hashText(text: string): number {
  let h = FNV_BASIS;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h | 0;
}

/** The hash of numbers in an order. */
export function hashList(values: ArrayLike<number>, start = 17): number {
  let h = start;
  for (let k = 0; k < values.length; k++) h = mix(h, values[k]!);
  return h;
}

/** The hash of numbers in any order. */
export function hashBag(values: readonly number[], start = 29): number {
  return hashList(values.length > 1 ? Int32Array.from(values).sort() : values, start);
}
