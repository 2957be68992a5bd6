/** What stands around a picture in a document of its own: title, note, the devices' colours. Pure. */
import { textWidth } from "../layout/text.js";
import type { Mark, Scene, TextMark } from "./marks.js";
import { shortDevice } from "../model/devices.js";
import { barMarks } from "./devices.js";

/** Height of a line of text above or below the picture. */
const LINE_PX = 22;
const TITLE_PX = 12;
const NOTE_PX = 10.5;
const SQUARE_PX = 9;
/** Wide enough for the pattern of a device. */
const SAMPLE_PX = 14;
const GAP_PX = 14;

export interface Surround {
  /** Stands above the picture, and is its name for those who hear it. */
  readonly title: string;
  /** Stands below: what is not seen. */
  readonly note: string;
  /** For those who hear it. */
  readonly description: string;
  /** Device name -> its number; named below the picture where there are several. */
  readonly devices: ReadonlyMap<string, number>;
}

export const NO_SURROUND: Surround = { title: "", note: "", description: "", devices: new Map() };

/** The marks, their width, and the heights that they take above and below. */
export function surroundMarks(scene: Scene, around: Surround): { marks: Mark[]; w: number; top: number; bottom: number } {
  const title = around.title ? [line(scene, around.title, 0, -LINE_PX / 2, true)] : [];
  const { marks, w } = footMarks(scene, around);
  return {
    marks: [...title, ...marks], w: Math.max(w, ...title.map(({ room }) => room)),
    top: title.length > 0 ? LINE_PX : 0, bottom: marks.length > 0 ? LINE_PX : 0,
  };
}

function footMarks(scene: Scene, { note, devices }: Surround): { marks: Mark[]; w: number } {
  const marks: Mark[] = [];
  const y = scene.h + LINE_PX / 2;
  let x = 0;
  const say = (text: string): void => {
    const mark = line(scene, text, x, y, false);
    marks.push(mark);
    x += mark.room + GAP_PX;
  };
  if (note) say(note);
  for (const [name, number] of devices.size > 1 ? devices : []) {
    marks.push(...barMarks({ x, y: y - SQUARE_PX / 2, w: SAMPLE_PX, h: SQUARE_PX }, number, scene));
    x += SAMPLE_PX + 5;
    say(shortDevice(name, devices.keys()));
  }
  return { marks, w: x };
}

function line({ text: ink, muted }: Scene, text: string, x: number, y: number, isTitle: boolean): TextMark {
  const size = isTitle ? TITLE_PX : NOTE_PX;
  return {
    kind: "text", id: "", text, x, y, size, weight: isTitle ? 600 : 400, fill: isTitle ? ink : muted, anchor: "start",
    room: Math.ceil(textWidth(text, size, isTitle)) + 2, halo: "", from: 0,
  };
}
