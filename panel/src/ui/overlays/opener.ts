// Remembers the button of the menu that opened a dialog. The focused menu entry is gone when the dialog closes, so the
// focus returns to the button.

/** How long after the choice the dialog may appear: it may have to load first. */
const PATIENCE_MS = 2_000

let opener: { button: HTMLElement; at: number } | null = null

export function leftMenu(button: HTMLElement | null): void {
  opener = button && { button, at: performance.now() }
}

/** The button, if a menu entry was chosen within that time. Valid for one dialog. */
export function takeOpener(): HTMLElement | null {
  const taken = opener
  opener = null
  return taken && performance.now() - taken.at < PATIENCE_MS ? taken.button : null
}
