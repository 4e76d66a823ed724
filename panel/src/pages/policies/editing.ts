// The editor of the text, as seen from the rest of the page. It is loaded later, and comes and goes with its tab.

export interface Editing {
  /** Selects a line, numbered from 1. Missing while the editor is not shown. */
  select?: (line: number) => void
  /** The line to select as soon as it is. */
  wanted?: number
  /** The editor's last state, with its history, and the version on which its draft is based. */
  kept?: { version: string; state: unknown }
}

/** Selects a line of the text, and shows it. */
export function selectLine(editing: Editing, line: number): void {
  if (editing.select) editing.select(line)
  else editing.wanted = line
}

/** The replacement that makes one text of another, as short as possible: the rest keeps its selection and marks. */
export function changeOf(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length)
  let from = 0
  while (from < most && before[from] === after[from]) from += 1
  let end = 0
  while (end < most - from && before.at(-1 - end) === after.at(-1 - end)) end += 1
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) }
}
