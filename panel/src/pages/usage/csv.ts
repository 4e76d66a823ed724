// CSV that a spreadsheet can open safely. Pure, tested.

type Cell = string | number

/**
 * Rows of cells. A text that a spreadsheet would run as a formula gets an apostrophe in front; also behind a semicolon,
 * which begins a cell where the comma is a decimal sign: agents name the models.
 */
export function csvOf(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(written).join(',')}\r\n`).join('')
}

function written(cell: Cell): string {
  if (typeof cell === 'number') return String(cell)
  const text = cell.replaceAll(/(?<=^|;)(?="*[=+\-@\t\r])/g, "'")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
