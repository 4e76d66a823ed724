// Decides several approvals at once: alerts, or actions that one press approves. Each can be cancelled for a few seconds.
import { useState } from 'react'
import { useClient } from 'urql'
import { DELAY_MS, type Decision, decide, isBeingSent } from '../../app/approvals/decisions'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { raiserOf } from '../../app/approvals/level'
import { inputLine } from '../../app/approvals/words'
import { useOrg } from '../../app/organization'
import { Checkbox, RadioGroup } from '../../ui/choices'
import { FormDialog } from '../../ui/form-dialog'
import { Notice } from '../../ui/notice'
import { Visible } from '../../ui/visible'
import { groupAlerts } from './groups'

const OF_ACTIONS = [
  { value: 'approve', label: 'Approve', decision: { how: 'ANSWER', options: ['approve'], said: 'Approve' } },
  { value: 'deny', label: 'Deny', decision: { how: 'ANSWER', options: ['deny'], said: 'Deny' } },
] as const
const OF_ALERTS = [
  { value: 'resolve', label: 'Mark as resolved', decision: { how: 'RESOLVE', said: 'Mark as resolved' } },
  { value: 'dismiss', label: 'Dismiss', decision: { how: 'DISMISS', said: 'Dismiss' } },
] as const

export function DecideSeveral({ approvals, onClose }: { approvals: ApprovalRecord[]; onClose: () => void }) {
  const org = useOrg()
  const client = useClient()
  // The choice does not change under the pointer.
  const [offered] = useState(() => groupAlerts(approvals.filter(({ id }) => !isBeingSent(id))))
  const [chosen, choose] = useState<ReadonlySet<number>>(new Set())
  const areActions = offered.items[0]?.kind === 'ACTION'
  const ways = areActions ? OF_ACTIONS : OF_ALERTS
  const [way, setWay] = useState<string>(ways[0].value)
  const [problem, setProblem] = useState(false)
  const isAll = chosen.size === offered.items.length
  const all = offered.items
    .filter(({ id }) => chosen.has(id))
    .flatMap((item) => offered.equal.get(item.id) ?? item)
  const submit = () => {
    const found = ways.find(({ value }) => value === way)
    if (all.length === 0 || !found) return setProblem(true)
    for (const { id } of all) decide(client, org.id, id, found.decision as unknown as Decision, DELAY_MS)
    onClose()
  }
  return (
    <FormDialog
      title={areActions ? 'Decide several actions' : 'Close several alerts'}
      about={
        areActions
          ? 'Actions of high risk, and those that delete or cost money, are decided one by one.'
          : 'This takes them off the list. It does not remove their cause.'
      }
      width="md"
      action={all.length === 0 ? 'Decide' : `Decide ${all.length}`}
      busy={false}
      onSubmit={submit}
      onClose={onClose}
    >
      <RadioGroup label="Decision" row value={way} options={ways} onValue={setWay} />
      <Checkbox
        label="All"
        checked={isAll}
        onChecked={(on) => choose(new Set(on ? offered.items.map(({ id }) => id) : []))}
      />
      <ul className="space-y-2">
        {offered.items.map((approval) => (
          <li key={approval.id}>
            <Checkbox
              label={
                <>
                  <Visible text={approval.title} />
                  <Times count={offered.equal.get(approval.id)?.length} />
                </>
              }
              hint={
                <>
                  {raiserOf(approval.agent).name} · <Visible text={inputLine(approval)} />
                </>
              }
              checked={chosen.has(approval.id)}
              onChecked={(on) => {
                const now = new Set(chosen)
                if (on) now.add(approval.id)
                else now.delete(approval.id)
                choose(now)
              }}
            />
          </li>
        ))}
      </ul>
      {problem && all.length === 0 && <Notice>Choose at least one.</Notice>}
    </FormDialog>
  )
}

/** The number of equal alerts. */
function Times({ count = 1 }: { count?: number }) {
  return count > 1 ? <span className="text-muted tabular-nums"> ×{count}</span> : null
}
