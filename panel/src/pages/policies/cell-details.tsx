// A cell of the matrix: the line that decides it, its inheritance, a line that would change it, and its own line.
import { useEffect, useState } from 'react'
import { useQuery } from 'urql'
import { wordsOf } from '../../api/errors'
import { graphql, type ResultOf } from '../../api/graphql'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { RadioGroup } from '../../ui/choices'
import { Code, CodeBlock } from '../../ui/code'
import { Skeleton } from '../../ui/skeleton'
import { Visible } from '../../ui/visible'
import type { Role } from '../members/roles'
import type { Member } from './as-member'
import { type CellState, TOKEN } from './cells'
import type { Expectation } from './expectations'
import type { Effect } from './lines'
import { callWords, fixedReason, subjectName } from './names'
import type { CellChange } from './queries'
import { DAYS } from './use-proposal'

const ExplainQuery = graphql(`
  query ExplainCell($orgId: Id!, $permission: Permission!, $role: Role, $userId: Id) {
    explainPermission(orgId: $orgId, permission: $permission, role: $role, userId: $userId) {
      allowed inheritance
      decidedBy { file line text }
      remedy { change file line text withinCeiling }
    }
  }
`)

type Explanation = NonNullable<ResultOf<typeof ExplainQuery>['explainPermission']>

/** Cells under a moving pointer are not explained. */
const WAIT_MS = 150

interface Props {
  cell: CellState
  meaning: string
  /** Has the cell's role, and is asked about instead of it. */
  member: Member | undefined
  /** The draft's change to the cell. */
  change: CellChange | undefined
  /** Null: the draft can't be changed. */
  onOwn: ((effect: Effect | null) => void) | null
  /** The organization's own expectation. */
  expected: Expectation | undefined
  /** Null: the draft can't be changed. */
  onExpect: ((effect: Effect | null) => void) | null
}

export function CellDetails({ cell, meaning, member, change, onOwn, expected, onExpect }: Props) {
  const { id: orgId } = useOrg()
  const { subject, permission, own, fixed, calls } = cell
  const rested = useRested(`${subject} ${permission}`)
  const [{ data, error }] = useQuery({
    query: ExplainQuery,
    variables: {
      orgId,
      permission,
      role: member || subject === TOKEN ? null : (subject as Role),
      userId: member?.userId,
    },
    requestPolicy: 'cache-and-network',
    pause: !rested,
  })
  const found = rested ? data?.explainPermission : null
  return (
    <div className="space-y-3 text-sm">
      <p>
        <strong className="font-semibold">
          {member && (
            <>
              <Visible text={member.name} />,{' '}
            </>
          )}
          {subjectName(subject)}
        </strong>
        , <Code>{permission}</Code>
        <span className="block text-muted">{meaning}</span>
      </p>
      {change && (
        <p>
          In the draft: <strong className="font-semibold">{change.allowed ? 'yes' : 'no'}</strong>
          {change.decidedBy ? (
            <>
              , by <Code>{change.decidedBy.text}</Code> ({change.decidedBy.file} line {change.decidedBy.line})
            </>
          ) : (
            ' (no rule allows it)'
          )}
        </p>
      )}
      {found ? (
        <InForce found={found} cell={cell} />
      ) : error ? (
        <p>{wordsOf(error)}</p>
      ) : (
        <Skeleton className="w-3/4" />
      )}
      {calls && (
        <p className="text-muted">
          In the last {DAYS} days: {callWords(calls) ?? 'no calls'}.
        </p>
      )}
      {fixed ? (
        <p className="text-muted">{fixedReason(fixed)}</p>
      ) : (
        onOwn && (
          <RadioGroup
            label="This organization’s rule"
            row
            value={own ?? 'none'}
            onValue={(value) => onOwn(value === 'none' ? null : value)}
            options={OWN}
          />
        )
      )}
      <Expected allowed={cell.allowed} expected={expected} onExpect={onExpect} />
    </div>
  )
}

/** Writes the present result into the rules as required, or removes what is required. */
function Expected(props: Pick<Props, 'expected' | 'onExpect'> & { allowed: boolean }) {
  const { allowed, expected, onExpect } = props
  if (expected) {
    return (
      <p className="flex flex-wrap items-center gap-2">
        <span>
          Expected: <strong className="font-semibold">{expected.effect === 'allow' ? 'yes' : 'no'}</strong>
          {expected.isMet === false && ' (not met)'}
        </span>
        {onExpect && (
          <Button size="sm" onClick={() => onExpect(null)}>
            Remove
          </Button>
        )}
      </p>
    )
  }
  return (
    onExpect && (
      <Button
        size="sm"
        tip="Later versions are refused if they change it"
        onClick={() => onExpect(allowed ? 'allow' : 'deny')}
      >
        Expect this
      </Button>
    )
  )
}

const OWN = [
  { value: 'none', label: 'None' },
  { value: 'allow', label: 'Allow' },
  { value: 'deny', label: 'Deny' },
] as const

/** Whether the key has not changed for a moment. */
function useRested(key: string): boolean {
  const [rested, setRested] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setRested(key), WAIT_MS)
    return () => clearTimeout(timer)
  }, [key])
  return rested === key
}

function InForce({ found, cell }: { found: Explanation; cell: CellState }) {
  const { allowed, decidedBy, inheritance, remedy } = found
  return (
    <>
      <div className="space-y-1">
        <p>
          In force: <strong className="font-semibold">{allowed ? 'yes' : 'no'}</strong>
          {decidedBy ? `, by ${decidedBy.file} line ${decidedBy.line}` : ' (no rule allows it)'}
        </p>
        {decidedBy && <CodeBlock text={decidedBy.text} label="the deciding line" />}
        {inheritance.length > 1 && (
          <p className="text-muted">
            {allowed ? 'Inherited: ' : 'A denial applies to lower roles: '}
            {inheritance.map(subjectName).join(' ⊃ ')}
          </p>
        )}
      </div>
      {!remedy && !allowed && !cell.fixed && (
        <p className="text-muted">No single rule of this organization can allow it.</p>
      )}
      {/* A draft that allows it has the line. */}
      {remedy && !cell.allowed && (
        <div className="space-y-1">
          <p>
            To allow it, {remedyWords(remedy)}
            {!remedy.withinCeiling && ' (only the operator can)'}
          </p>
          {remedy.text && <CodeBlock text={remedy.text} label="the line that would allow it" />}
        </div>
      )}
    </>
  )
}

function remedyWords({ change, file, line }: NonNullable<Explanation['remedy']>): string {
  switch (change) {
    case 'ADD':
      return `add to ${file}:`
    case 'REPLACE':
      return `replace line ${line} of ${file} with:`
    case 'REMOVE':
      return `remove line ${line} of ${file}.`
  }
}
