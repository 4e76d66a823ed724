// Backups of an agent's home: made manually or on schedule, restored while the agent is stopped, deleted.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Archive } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { bytes } from '../../ui/bytes'
import { ConfirmDialog } from '../../ui/confirm'
import { Empty } from '../../ui/empty'
import { Pager } from '../../ui/pager'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { AgentRecord } from './agent-page'

const SIZE = 50

const BackupsQuery = graphql(`
  query AgentBackups($orgId: Id!, $agentId: Id!, $page: Int!, $limit: Int!) {
    agentBackups(orgId: $orgId, agentId: $agentId, page: $page, limit: $limit) {
      total
      data {
        id cause state bytes error authorKind authorName createdAt endedAt
        restoreState restoreError restoredAt
      }
    }
  }
`)

const BackUp = graphql(`
  mutation BackupAgent($orgId: Id!, $id: Id!) {
    backupAgent(orgId: $orgId, id: $id) { id state }
  }
`)

const Restore = graphql(`
  mutation RestoreBackup($orgId: Id!, $id: Id!) {
    restoreBackup(orgId: $orgId, id: $id) { id restoreState restoreError restoredAt }
  }
`)

const Delete = graphql(`
  mutation DeleteBackup($orgId: Id!, $id: Id!) {
    deleteBackup(orgId: $orgId, id: $id) { id }
  }
`)

type Backup = NonNullable<ResultOf<typeof BackupsQuery>['agentBackups']>['data'][number]

export function Backups({ agent }: { agent: AgentRecord }) {
  const { id: orgId } = useOrg()
  const { page = 1 } = useSearch({ from: '/inside/o/$org/agents/$id' })
  const navigate = useNavigate({ from: '/o/$org/agents/$id' })
  const backUp = useAct(BackUp)
  const now = {
    id: 'agent.back-up',
    label: 'Back up the agent now',
    group: 'Agent',
    refused: useRefused('agent.edit', agent),
    run: () => void backUp({ orgId, id: agent.id }, { said: 'Backup started' }),
  }
  const { data, error, loading, refetch } = useLive({
    query: BackupsQuery,
    variables: { orgId, agentId: agent.id, page, limit: SIZE },
    on: ({ kind, id }) => kind === 'AGENT' && id === agent.id,
  })
  const found = data?.agentBackups
  if (error && !found) return <ProblemView error={error} retry={refetch} />
  if (loading || !found) return <ListSkeleton />
  const busy = backUp.pending || found.data.some((backup) => backup.state === 'PENDING')
  return (
    <Gate on={agent} may="agent.edit">
      <div className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <p className="text-sm text-muted">
          Copies of the agent’s home, on the host. The schedule is in the settings. Files being written may be
          incomplete: pause the agent first for a consistent copy.
        </p>
        <ActionButton busy={busy} action={now}>
          Back up now
        </ActionButton>
      </div>
      {found.data.length === 0 ? (
        <Empty
          icon={Archive}
          title="No backups yet"
          command={`mutation { backupAgent(orgId: ${orgId}, id: ${agent.id}) { id state } }`}
        >
          A backup holds all files of the agent’s home, so that you can restore them later. Make one with
          “Back up now”, or set a schedule in its settings.
        </Empty>
      ) : (
        <ol className="divide-y divide-line rounded-card border border-line">
          {found.data.map((backup) => (
            <li key={backup.id} className="px-4 py-3">
              <Line agent={agent} backup={backup} />
            </li>
          ))}
        </ol>
      )}
      <Pager
        page={page}
        size={SIZE}
        total={found.total}
        onPage={(page) => void navigate({ search: (before) => ({ ...before, page }), replace: true })}
      />
    </Gate>
  )
}

function Line({ agent, backup }: { agent: AgentRecord; backup: Backup }) {
  const { state, cause, error, restoreState, restoreError, restoredAt } = backup
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
        <span className="font-medium">
          <Time at={backup.createdAt} />
        </span>
        {state === 'PENDING' && <Badge tone="info">Being made</Badge>}
        {state === 'FAILED' && <Badge tone="danger">Failed</Badge>}
        <span className="text-sm text-muted">
          {backup.bytes && `${bytes(Number(backup.bytes))}, `}
          {cause === 'SCHEDULE' ? 'by its schedule' : `by ${authorOf(backup.authorKind, backup.authorName)}`}
          {restoreState === 'DONE' && restoredAt && (
            <>
              , restored <Time at={restoredAt} />
            </>
          )}
        </span>
        {restoreState === 'PENDING' && <Badge tone="info">Being restored</Badge>}
        <span className="ml-auto flex gap-2">
          <Actions agent={agent} backup={backup} />
        </span>
      </div>
      {error && (
        <p className="mt-1">
          <Visible text={error} />
        </p>
      )}
      {restoreError && (
        <p className="mt-1">
          It could not be restored. <Visible text={restoreError} />
        </p>
      )}
    </>
  )
}

function Actions({ agent, backup }: { agent: AgentRecord; backup: Backup }) {
  const { id: orgId } = useOrg()
  const [asked, setAsked] = useState<'restore' | 'delete' | null>(null)
  const [restore, remove] = [useAct(Restore), useAct(Delete)]
  const close = () => setAsked(null)
  if (backup.state === 'PENDING' || backup.restoreState === 'PENDING') return null
  const isAtRest = agent.status === 'STOPPED' || agent.status === 'ERROR'
  return (
    <>
      {backup.state === 'DONE' && (
        <Button size="sm" disabled={!isAtRest} onClick={() => setAsked('restore')}>
          {isAtRest ? 'Restore' : 'Stop the agent to restore'}
        </Button>
      )}
      <Button size="sm" onClick={() => setAsked('delete')}>
        Delete
      </Button>
      <ConfirmDialog
        open={asked === 'restore'}
        onClose={close}
        title="Restore this backup?"
        action="Restore"
        busy={restore.pending}
        onConfirm={async () => {
          await restore({ orgId, id: backup.id }, { said: 'Restore started' })
          close()
        }}
      >
        The agent’s home returns to its state of <Time at={backup.createdAt} />. Its current content is lost
        at the next start. Conversations here stay as they are.
      </ConfirmDialog>
      <ConfirmDialog
        open={asked === 'delete'}
        onClose={close}
        title="Delete this backup?"
        action="Delete backup"
        busy={remove.pending}
        onConfirm={async () => {
          await remove({ orgId, id: backup.id }, { said: 'Backup deleted' })
          close()
        }}
      >
        Its file on the host is removed. This can’t be undone.
      </ConfirmDialog>
    </>
  )
}
