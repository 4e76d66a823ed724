// The matrix: permissions by role, as a grid that the arrows walk through. Enter, Space or a click changes a cell of the
// draft.
import { Check, Lock, Minus } from 'lucide-react'
import { type KeyboardEvent, useRef } from 'react'
import { cx } from '../../ui/cx'
import { words } from '../../ui/status'
import { type CellState, countOf, grouped, type Row } from './cells'
import { type Expectation, expectationOf } from './expectations'
import { resultOf } from './expectations-view'
import { type Cell, isSame } from './lines'
import { cellName, markOf, subjectName } from './names'

interface Props {
  rows: Row[]
  expectations: Expectation[]
  /** The cell that has, or gets, the focus. */
  at: Cell | null
  canEdit: boolean
  onAt: (cell: Cell) => void
  /** The pointer is over a cell, or has left the matrix. */
  onPoint: (cell: Cell | null) => void
  onToggle: (cell: CellState) => void
}

export function Matrix({ rows, expectations, at, canEdit, onAt, onPoint, onToggle }: Props) {
  const table = useRef<HTMLTableElement>(null)
  const cells = rows.map((row) => row.cells)
  const current = cells.flat().find((cell) => at && isSame(cell, at)) ?? cells[0]?.[0]
  const focus = (cell: CellState | undefined) => {
    if (!cell) return
    onAt(cell)
    table.current?.querySelector<HTMLElement>(`[data-cell="${keyOf(cell)}"]`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (!current || event.altKey) return
    const y = cells.findIndex((row) => row.includes(current))
    const x = cells[y]?.indexOf(current) ?? 0
    const isWhole = event.ctrlKey || event.metaKey
    if ((event.key === 'Enter' || event.key === ' ') && !isWhole) {
      event.preventDefault()
      return onToggle(current)
    }
    const target = moved(cells, { x, y }, event.key, isWhole)
    if (!target) return
    event.preventDefault()
    focus(target)
  }
  return (
    <table
      ref={table}
      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: its cells are walked through and changed
      role="grid"
      aria-label="Permissions by role"
      aria-readonly={!canEdit}
      className="w-full border-separate border-spacing-0 text-base"
      onKeyDown={onKeyDown}
      onPointerLeave={() => onPoint(null)}
    >
      <thead>
        <tr>
          <th scope="col" className={cx(HEAD, 'left-0 z-[3] pl-4 text-left sm:pl-6')}>
            Permission
          </th>
          {rows[0]?.cells.map(({ subject }) => (
            <th key={subject} scope="col" className={cx(HEAD, 'z-[2] min-w-20')}>
              {subjectName(subject)}
            </th>
          ))}
        </tr>
      </thead>
      {grouped(rows).map(([group, members]) => (
        <tbody key={group}>
          <tr>
            <th
              scope="rowgroup"
              colSpan={1 + (rows[0]?.cells.length ?? 0)}
              className="border-b border-line bg-sunken px-4 py-1 text-left text-xs font-medium text-muted sm:px-6"
            >
              <span className="sticky left-4 sm:left-6">{words(group)}</span>
            </th>
          </tr>
          {members.map((row) => (
            <tr key={row.permission} className="group">
              <th
                scope="row"
                className="sticky left-0 z-[1] max-w-96 min-w-44 border-b border-line bg-canvas py-1.5 pr-3 pl-4 text-left font-normal group-hover:bg-hover sm:pl-6"
              >
                <code className="block font-mono text-sm">{row.permission}</code>
                <span className="block text-xs text-muted">{row.meaning}</span>
              </th>
              {row.cells.map((cell) => (
                <MatrixCell
                  key={cell.subject}
                  cell={cell}
                  expected={expectationOf(expectations, cell)}
                  isCurrent={cell === current}
                  onFocus={() => onAt(cell)}
                  onPoint={() => onPoint(cell)}
                  onToggle={() => onToggle(cell)}
                />
              ))}
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  )
}

const HEAD = 'sticky top-0 border-b border-line bg-canvas px-2 py-2 text-xs font-medium text-muted'

const keyOf = ({ subject, permission }: Cell) => `${permission} ${subject}`

/** The cell that a key leads to; none at the edge. */
function moved(cells: CellState[][], { x, y }: { x: number; y: number }, key: string, isWhole: boolean) {
  switch (key) {
    case 'ArrowLeft':
      return cells[y]?.[x - 1]
    case 'ArrowRight':
      return cells[y]?.[x + 1]
    case 'ArrowUp':
      return cells[y - 1]?.[x]
    case 'ArrowDown':
      return cells[y + 1]?.[x]
    case 'Home':
      return cells[isWhole ? 0 : y]?.[0]
    case 'End':
      return cells.at(isWhole ? -1 : y)?.at(-1)
  }
}

interface CellProps {
  cell: CellState
  expected: Expectation | undefined
  isCurrent: boolean
  onFocus: () => void
  onPoint: () => void
  onToggle: () => void
}

function MatrixCell({ cell, expected, isCurrent, onFocus, onPoint, onToggle }: CellProps) {
  const { allowed, fixed } = cell
  const count = countOf(cell)
  const mark = markOf(cell)
  const isDraft = mark === 'draft'
  const Icon = allowed ? Check : Minus
  const { icon: Result, look } = resultOf(expected?.isMet)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys of all its cells
    <td
      data-cell={keyOf(cell)}
      tabIndex={isCurrent ? 0 : -1}
      aria-label={cellName(cell, expected)}
      onFocus={onFocus}
      onPointerOver={onPoint}
      onClick={onToggle}
      className={cx(
        'scroll-mt-10 scroll-ml-48 border-b border-line p-1 group-hover:bg-hover focus-visible:-outline-offset-2',
        !fixed && 'cursor-pointer',
      )}
    >
      <span
        aria-hidden
        className={cx(
          'flex min-h-8 items-center justify-center gap-1 rounded-control px-1',
          allowed ? 'text-ok-text' : 'text-faint',
          isDraft ? 'bg-warn-soft outline outline-1 outline-warn-text' : mark && 'bg-accent-soft',
        )}
      >
        <Icon size={16} strokeWidth={allowed ? 2.6 : 2} />
        {fixed && <Lock size={11} className="text-faint" />}
        {expected && <Result size={11} className={look} />}
        {count > 0 && (
          // Not text, because the cell's name says it in other words.
          <span
            data-count={count.toLocaleString(undefined, { notation: 'compact' })}
            className="text-2xs tabular-nums text-muted before:content-[attr(data-count)]"
          />
        )}
        {mark && (
          <span className={cx('text-2xs', isDraft ? 'text-warn-text' : 'text-accent-text')}>{mark}</span>
        )}
      </span>
    </td>
  )
}
