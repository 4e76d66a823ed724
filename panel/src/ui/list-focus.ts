// The pointer and the focus relative to a list.

/** Whether the pointer is over the list or the focus is inside it. */
export function isInHand(box: HTMLElement | null): boolean {
  return box !== null && (box.matches(':hover') || box.contains(document.activeElement))
}

/** Whether the focus is in these rows or nowhere. */
export function isFocusFree(rows: HTMLElement | null): boolean {
  const at = document.activeElement
  return at === null || at === document.body || (rows?.contains(at) ?? false)
}

/** Focuses a row. Returns false if the row is not rendered. */
export function focusRow(scroller: HTMLElement | null, index: number): boolean {
  const row = scroller?.querySelector<HTMLElement>(`[data-index="${index}"]`)
  row?.focus({ preventScroll: true })
  return Boolean(row)
}
