// The matrix with its filters, and beside it the explained cell and the effect of the draft.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Table2 } from 'lucide-react'
import { type ReactNode, useMemo, useRef, useState } from 'react'
import { useQuery } from 'urql'
import { Chip, FilterBar, FilterMenu, NothingMatches } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { sayProblem } from '../../ui/toast-store'
import { AsMember, MemberFilter, useMember } from './as-member'
import { type CellState, filtered, rowsOf, SUBJECTS } from './cells'
import { expectationsOf, skippedIn } from './expectations'
import { Expectations } from './expectations-view'
import { Legend } from './legend'
import type { Cell } from './lines'
import { Matrix } from './matrix'
import { fixedReason, subjectName } from './names'
import { type General, type Permissions, type Policy, type Proposal, UsesQuery } from './queries'
import type { DraftState } from './use-draft'
import { DAYS } from './use-proposal'
import { Why, type WhyHandle } from './why'
import { Workspace } from './workspace'

interface Props {
  policy: Policy
  permissions: Permissions
  general: General
  state: DraftState
  /** The service's answer about the draft; undefined while it is pending. */
  proposal: Proposal | undefined
  canEdit: boolean
  /** Explains why the draft can't be changed. */
  onRefused: () => void
  /** Shows a line of the own rules. */
  onLine: (line: number) => void
  /** The effect of the draft. */
  children: ReactNode
}

export function MatrixView(props: Props) {
  const { policy, permissions, general, state, proposal, onRefused, onLine, children } = props
  const org = useOrg()
  const { q, role, own, never, member: userId } = useSearch({ from: '/inside/o/$org/policies' })
  const navigate = useNavigate({ from: '/o/$org/policies' })
  const member = useMember(userId)
  const canEdit = props.canEdit && userId === undefined
  const filters = { q, role, own, never, member: userId }
  const set = (change: Partial<typeof filters>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const [at, setAt] = useState<Cell | null>(null)
  const why = useRef<WhyHandle>(null)
  // Also of a draft that only fails expectations of its own.
  const changes = proposal?.ok || proposal?.changes.length ? proposal.changes : undefined
  const [{ data }] = useQuery({
    query: UsesQuery,
    variables: { orgId: org.id, days: DAYS },
    requestPolicy: 'cache-and-network',
  })
  const uses = data?.simulatePolicy?.uses
  const rows = useMemo(
    () => rowsOf({ policy, permissions, general, text: state.text, changes, uses }),
    [policy, permissions, general, state.text, changes, uses],
  )
  const shown = filtered(rows, member ? { ...filters, role: member.role } : filters)
  const expected = policy.files.find(({ file }) => file === 'expectations.csv')?.text ?? ''
  const judged = state.draft ? proposal : null
  const expectations = expectationsOf({ expected, text: state.text, rows, proposal: judged })
  const toggle = (cell: CellState) => {
    setAt(cell)
    if (userId !== undefined) return sayProblem('To change cells, clear the member.')
    if (!canEdit) return onRefused()
    if (cell.fixed && cell.own === null) return sayProblem(fixedReason(cell.fixed))
    state.click(cell, cell.allowed)
  }
  return (
    <>
      <FilterBar apart filters={filters} onChange={set} search="Search permissions">
        <FilterMenu
          label="Role"
          single
          options={ROLES}
          value={role && [role]}
          onValue={(next) => set({ role: next?.[0] })}
        />
        <Chip on={own === true} onToggle={() => set({ own: own ? undefined : true })}>
          Differs from the general rules
        </Chip>
        <Chip on={never === true} onToggle={() => set({ never: never ? undefined : true })}>
          Never used in {DAYS} days
        </Chip>
        {org.can('member.view') && (
          <MemberFilter value={userId} member={member} onValue={(next) => set({ member: next })} />
        )}
      </FilterBar>
      <Workspace
        beside={
          <>
            {member && <AsMember member={member} rows={rows} />}
            <Why
              rows={rows}
              expectations={expectations}
              changes={changes}
              member={member}
              version={policy.version}
              at={at}
              handle={why}
              onChange={canEdit ? state.change : null}
            />
            {children}
            <Expectations
              permissions={permissions}
              expectations={expectations}
              skipped={skippedIn(expected, state.text)}
              onLine={onLine}
            />
            <Legend />
          </>
        }
      >
        {shown.length > 0 ? (
          <Matrix
            rows={shown}
            expectations={expectations}
            at={at}
            canEdit={canEdit}
            onAt={setAt}
            onPoint={(cell) => why.current?.point(cell)}
            onToggle={toggle}
          />
        ) : (
          <NothingMatches
            icon={Table2}
            title={
              own && !q && !role && !never && !userId ? 'Nothing differs from the general rules' : undefined
            }
            filters={filters}
            onChange={set}
          />
        )}
      </Workspace>
    </>
  )
}

const ROLES = SUBJECTS.map((value) => ({ value, label: subjectName(value) }))
