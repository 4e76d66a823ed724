// Two revisions of an agent side by side, and restoring the earlier one.
import { Undo2 } from 'lucide-react'
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql, type Json } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { say } from '../../ui/toast-store'
import { Visible } from '../../ui/visible'
import type { AgentRecord } from './agent-page'
import { Side } from './change-side'
import { differences, hasIds, namesIn, valueText } from './revision-diff'
import { useRevisionNames } from './revision-names'

const TwoQuery = graphql(`
  query CompareRevisions($orgId: Id!, $agentId: Id!, $one: Int!, $other: Int!) {
    one: agentRevision(orgId: $orgId, agentId: $agentId, revision: $one) { id revision content createdAt authorKind authorName reason }
    other: agentRevision(orgId: $orgId, agentId: $agentId, revision: $other) { id revision content createdAt authorName }
  }
`)
const Revert = graphql(`
  mutation RevertAgent($orgId: Id!, $id: Id!, $revision: Int!, $reason: String!) {
    revertAgent(orgId: $orgId, id: $id, revision: $revision, reason: $reason) { id revision restartPending syncPending }
  }
`)

interface Props {
  agent: AgentRecord
  revision: number
  against: number
  known: number[]
  onAgainst: (revision: number) => void
  onClose: () => void
}

export function Compare({ agent, revision, against, known, onAgainst, onClose }: Props) {
  const { id: orgId } = useOrg()
  const [reverting, revert] = useState(false)
  const goBack = {
    id: 'agent.revert',
    label: `Go back to revision ${revision}`,
    group: 'Agent',
    refused: useRefused('agent.edit', agent),
    run: () => revert(true),
  }
  const { data, error, loading, refetch } = useLive({
    query: TwoQuery,
    variables: { orgId, agentId: agent.id, one: revision, other: against },
    on: () => false,
  })
  // The earlier revision is on the left.
  const [left, right] = revision < against ? [data?.one, data?.other] : [data?.other, data?.one]
  const changes = left && right ? differences(left.content as Json, right.content as Json) : []
  return (
    <Peek
      title={`Revision ${revision}`}
      onClose={onClose}
      actions={
        revision !== agent.revision && (
          <ActionButton size="sm" icon={Undo2} action={goBack}>
            Go back to this
          </ActionButton>
        )
      }
    >
      <div className="space-y-4 p-4">
        {data?.one && (
          <p className="text-sm text-muted">
            Created <Time at={data.one.createdAt} /> by {authorOf(data.one.authorKind, data.one.authorName)}
            {data.one.reason && (
              <>
                : <Visible text={data.one.reason} />
              </>
            )}
          </p>
        )}
        {agent.revision === 1 ? (
          <p className="text-muted">This is the only one: nothing has changed since the agent was made.</p>
        ) : (
          <Field label="Compared with">
            <Select
              value={String(against)}
              options={[...new Set([agent.revision, against, ...known])]
                .filter((number) => number !== revision)
                .sort((a, b) => b - a)
                .map((number) => ({
                  value: String(number),
                  label: number === agent.revision ? `Revision ${number} (current)` : `Revision ${number}`,
                }))}
              onValue={(number) => onAgainst(Number(number))}
            />
          </Field>
        )}
        {error && !data && <ProblemView error={error} retry={refetch} />}
        {loading && <ListSkeleton rows={3} />}
        {left && right && left.revision !== right.revision && changes.length === 0 && (
          <Notice tone="info">Both are the same: revision {right.revision} undid what was changed.</Notice>
        )}
        {left && right && changes.length > 0 && (
          <Differences changes={changes} left={left.revision} right={right.revision} />
        )}
      </div>
      {reverting && <RevertDialog agent={agent} revision={revision} onClose={() => revert(false)} />}
    </Peek>
  )
}

function Differences({
  changes,
  left,
  right,
}: {
  changes: ReturnType<typeof differences>
  left: number
  right: number
}) {
  const names = useRevisionNames(!changes.some(hasIds))
  const textOf = (field: string, value: Json) =>
    hasIds({ field }) ? namesIn(field, value, names) : valueText(value)
  return (
    <dl className="divide-y divide-line rounded-card border border-line">
      {changes.map(({ field, label, before, after }) => (
        <div key={field} className="px-3 py-2.5">
          <dt className="mb-1 text-sm font-medium">{label}</dt>
          <dd className="grid gap-2 sm:grid-cols-2">
            <Side
              name={`Revision ${left}`}
              text={textOf(field, before)}
              tone="bg-danger-soft text-danger-text"
            />
            <Side name={`Revision ${right}`} text={textOf(field, after)} tone="bg-ok-soft text-ok-text" />
          </dd>
        </div>
      ))}
    </dl>
  )
}

function RevertDialog({
  agent,
  revision,
  onClose,
}: {
  agent: AgentRecord
  revision: number
  onClose: () => void
}) {
  const { id: orgId } = useOrg()
  const act = useAct(Revert)
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = refusal(reason, boundsOf('revertAgent.reason'))
    if (wrong) return setProblem(wrong)
    const present = agent.revision
    const { error } = await act({ orgId, id: agent.id, revision, reason }, { quiet: true })
    if (error) return setProblem(fieldErrors(error).reason ?? wordsOf(error))
    const back = { orgId, id: agent.id, revision: present, reason: `Undo: ${reason}`.slice(0, 1000) }
    say(`${agent.name} is as in revision ${revision}`, { undo: () => act(back, { said: 'Undone' }) })
    onClose()
  }
  return (
    <FormDialog
      title={`Go back to revision ${revision}`}
      about="Its settings, credentials, MCP servers and skills become what they were, as a new revision. Its model credential stays."
      action="Go back"
      busy={act.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Why" hint="It is kept with the new revision." error={problem}>
        <TextInput value={reason} onValue={setReason} autoComplete="off" />
      </Field>
    </FormDialog>
  )
}
