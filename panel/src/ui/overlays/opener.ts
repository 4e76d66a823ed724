// The button of the menu from which a dialog was opened. The menu's entry had the focus, and is gone when the dialog closes:
// the focus goes back to the button instead.

/** How long after the choice its dialog may come: it may have to be loaded first. */
const PATIENCE_MS = 2_000

let opener: { button: HTMLElement; at: number } | null = null

export function leftMenu(button: HTMLElement | null): void {
  opener = button && { button, at: performance.now() }
}

/** The button, if a choice of its menu has just been made; for one dialog. */
export function takeOpener(): HTMLElement | null {
  const taken = opener
  opener = null
  return taken && performance.now() - taken.at < PATIENCE_MS ? taken.button : null
}
