/** Work in slices: a generator that stops at places where the page may do something else. Who runs it decides how long a slice is. */
export type Sliced<T> = Generator<undefined, T, undefined>;

/** Runs all of it at once. */
export function finish<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Rows, operations, boxes: so many of them are done between two places to stop. */
export const SLICE = 1024;
