/**
 * Presses of buttons in a page that moves under the pointer: the focus makes a notebook scroll to the cell that it is
 * in, and what is released elsewhere would be no click. A pointer that itself moves away takes the press back.
 */

/** So far a pointer may move in a press, in pixels. */
const STILL_PX = 8;

export function keepPresses(root: HTMLElement, until: AbortSignal): void {
  let pressed: { readonly button: HTMLElement; readonly x: number; readonly y: number } | null = null;
  root.addEventListener("pointerdown", ({ target, pointerId, clientX: x, clientY: y }) => {
    const button = target instanceof Element ? target.closest("button") : null;
    pressed = button && { button, x, y };
    button?.setPointerCapture(pointerId);
  }, { signal: until });
  root.addEventListener("pointermove", ({ pointerId, clientX, clientY }) => {
    if (!pressed || Math.hypot(clientX - pressed.x, clientY - pressed.y) < STILL_PX) return;
    pressed.button.releasePointerCapture(pointerId);
    pressed = null;
  }, { signal: until });
  root.addEventListener("pointerup", () => (pressed = null), { signal: until });
}
