/** A message as compressed text, back to JSON and numbers: see flowscope_widgets/packing.py. */

const NUMBER_BYTES = 4;
/** More than any message has that is written: a file from anyone shall not fill the memory. */
const MOST_BYTES = 64 << 20;

export interface Packed {
  readonly message: unknown;
  /** Little-endian int32. */
  readonly numbers: ArrayBuffer;
}

/** Reads what a text holds; rejects where it is not of that form. */
export async function numbersOf(text: string): Promise<Packed> {
  const bytes = await inflated(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
  const end = bytes.indexOf(0x0a);
  if (end < 0) throw new Error("packing: there is no end of the message");
  const message: unknown = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  return { message, numbers: joined(bytes.subarray(end + 1)) };
}

async function inflated(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    if (!value) continue;
    size += value.length;
    chunks.push(value);
    if (size <= MOST_BYTES) continue;
    await reader.cancel();
    throw new Error("packing: the text holds too much");
  }
  const bytes = new Uint8Array(size);
  chunks.reduce((at, chunk) => {
    bytes.set(chunk, at);
    return at + chunk.length;
  }, 0);
  return bytes;
}

/** The bytes of each number side by side again. */
function joined(planes: Uint8Array): ArrayBuffer {
  const count = Math.floor(planes.length / NUMBER_BYTES);
  const bytes = new Uint8Array(count * NUMBER_BYTES);
  for (let k = 0; k < NUMBER_BYTES; k++) for (let n = 0; n < count; n++) bytes[n * NUMBER_BYTES + k] = planes[k * count + n] ?? 0;
  return bytes.buffer;
}
