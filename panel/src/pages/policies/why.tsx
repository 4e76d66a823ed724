// Explains a cell of the matrix. It knows by itself where the pointer is, so that a move does not render the matrix.
import { type Ref, useImperativeHandle, useState } from 'react'
import { Panel } from '../../ui/panel'
import type { Member } from './as-member'
import { CellDetails } from './cell-details'
import type { Row } from './cells'
import type { Expectation } from './expectations'
import { type Cell, type Change, isSame } from './lines'
import type { CellChange } from './queries'

export interface WhyHandle {
  /** Explains the cell under the pointer. Null: the one with the focus again. */
  point: (cell: Cell | null) => void
}

interface Props {
  rows: Row[]
  expectations: Expectation[]
  /** The draft's. */
  changes: readonly CellChange[] | undefined
  member: Member | undefined
  /** The version in force. */
  version: string
  /** The cell with the focus. */
  at: Cell | null
  handle: Ref<WhyHandle>
  /** Null: the draft can't be changed. */
  onChange: ((change: Change) => void) | null
}

export function Why({ rows, expectations, changes, member, version, at, handle, onChange }: Props) {
  const [pointed, point] = useState<Cell | null>(null)
  useImperativeHandle(handle, () => ({ point }), [])
  const looked = pointed ?? at
  const row = rows.find(({ permission }) => permission === looked?.permission)
  const cell = looked && row?.cells.find((each) => isSame(each, looked))
  return (
    <Panel title="Why">
      {cell && row ? (
        <CellDetails
          key={version}
          cell={cell}
          meaning={row.meaning}
          member={cell.subject === member?.role ? member : undefined}
          change={changes?.find((change) => isSame(change, cell))}
          onOwn={onChange && ((effect) => onChange({ ...identity(cell), effect }))}
          expected={expectations.find((each) => isOwn(each) && isSame(each, cell))}
          onExpect={onChange && ((effect) => onChange({ ...identity(cell), kind: 'e', effect }))}
        />
      ) : (
        <p className="text-sm text-muted">
          Point at a cell, or go to it with the arrow keys, to see the line that decides. A click, Enter or
          Space changes it in the draft.
        </p>
      )}
    </Panel>
  )
}

const isOwn = ({ line }: Expectation) => line !== null
const identity = ({ subject, permission }: Cell): Cell => ({ subject, permission })
