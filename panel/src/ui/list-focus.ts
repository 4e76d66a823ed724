// Where the hands and the focus are, seen from a list.

/** Someone points at it or has the focus in it. */
export function isInHand(box: HTMLElement | null): boolean {
  return box !== null && (box.matches(':hover') || box.contains(document.activeElement))
}

/** The focus is in these rows, or on nothing. */
export function isFocusFree(rows: HTMLElement | null): boolean {
  const at = document.activeElement
  return at === null || at === document.body || (rows?.contains(at) ?? false)
}

/** Answers whether it is drawn. */
export function focusRow(scroller: HTMLElement | null, index: number): boolean {
  const row = scroller?.querySelector<HTMLElement>(`[data-index="${index}"]`)
  row?.focus({ preventScroll: true })
  return Boolean(row)
}
