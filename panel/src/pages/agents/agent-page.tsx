// One agent: its current work, its access, its history and its settings.
import { Link, useParams, useSearch } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { Avatar } from '../../ui/avatar'
import { PageBody, PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Status } from '../../ui/status'
import { Tabs } from '../../ui/tabs'
import { Visible } from '../../ui/visible'
import { AgentMenu } from './agent-menu'
import { Now } from './now'
import { RunButtons, useRun } from './run'

// Tabs that are not shown first load after the page.
const Turns = lazyPart(() => import('./turns'), 'Turns')
const Settings = lazyPart(() => import('./settings'), 'Settings')
const Revisions = lazyPart(() => import('./revisions'), 'Revisions')
const Logs = lazyPart(() => import('./log/logs'), 'Logs')
const Launches = lazyPart(() => import('./launches'), 'Launches')
const Backups = lazyPart(() => import('./backups'), 'Backups')
const LATER = [Turns, Settings, Revisions, Logs, Launches, Backups]

const AgentQuery = graphql(`
  query Agent($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) {
      id name role description avatarUrl viewerCan revision launchedRevision
      status statusReason statusDetail lastAction lastActionAt uptimeSeconds
      restartPending restartReason syncPending restart { attempts nextAt }
      pendingApprovals openConversations lastActivityAt
      server { id name status lastSeenAt }
      image { id name reference }
      runningModel resolvedModel modelOverride modeOverride modeProblem
      offeredModels { id name description current }
      offeredModes { id name description current }
      channels { id name transport }
      tokensUsed costMicro notEnforced networkPrivileged limit { kind reason since until }
      runningTurns { id state conversationId startedAt conversation { id ref title contactName agent { id name } } }
    }
  }
`)

export type AgentRecord = NonNullable<ResultOf<typeof AgentQuery>['agent']>

export function AgentPage() {
  const org = useOrg()
  const { id } = useParams({ from: '/inside/o/$org/agents/$id' })
  const { data, error, loading, refetch } = useLive({
    query: AgentQuery,
    variables: { orgId: org.id, id },
    on: ({ kind, id: changed }) =>
      (kind === 'AGENT' && changed === id) || kind === 'TURN' || kind === 'APPROVAL' || kind === 'SERVER',
  })
  const agent = data?.agent
  if (agent) return <Shown agent={agent} />
  return (
    <>
      <PageHeader title="Agent" above={<Up />} />
      <PageBody narrow>
        {error ? (
          <ProblemView error={error} retry={refetch} />
        ) : loading ? (
          <ListSkeleton />
        ) : (
          <ProblemView error={GONE} />
        )}
      </PageBody>
    </>
  )
}

const GONE = { graphQLErrors: [{ message: 'gone', extensions: { code: 'NOT_FOUND' } }] } as never

function Up() {
  const org = useOrg()
  return (
    <Link to="/o/$org/agents" params={{ org: org.id }} className="hover:underline">
      Agents
    </Link>
  )
}

function Shown({ agent }: { agent: AgentRecord }) {
  const { tab = 'now' } = useSearch({ from: '/inside/o/$org/agents/$id' })
  const run = useRun(agent)
  useEffect(() => LATER.forEach((part) => void part.preload()), [])
  return (
    <>
      <PageHeader
        doc="agents.md"
        above={<Up />}
        name={agent.name}
        title={
          <span className="flex min-w-0 items-center gap-2.5">
            <Avatar name={agent.name} url={agent.avatarUrl} square />
            <span className="truncate">
              <Visible text={agent.name} />
            </span>
          </span>
        }
        beside={<Status of="agent" value={run.status} />}
        about={agent.role}
        actions={
          <>
            <RunButtons agent={agent} run={run} />
            <AgentMenu agent={agent} />
          </>
        }
      >
        <Tabs label="Parts of this agent" tabs={tabsOf(agent)} current={tab} />
      </PageHeader>
      {partOf(tab, agent, run)}
    </>
  )
}

const tabsOf = (agent: AgentRecord) => [
  {
    id: 'now',
    label: 'Now',
    link: { to: '.', search: {} } as object,
    count: agent.pendingApprovals || undefined,
  },
  { id: 'turns', label: 'Turns' },
  { id: 'logs', label: 'Logs' },
  { id: 'settings', label: 'Settings' },
  { id: 'revisions', label: 'Revisions' },
  { id: 'launches', label: 'Restart history' },
  { id: 'backups', label: 'Backups' },
]

function partOf(tab: string, agent: AgentRecord, run: ReturnType<typeof useRun>): ReactNode {
  switch (tab) {
    case 'turns':
      return <Turns agentId={agent.id} />
    case 'logs':
      // Another server has another log, which may be older.
      return <Logs key={`${agent.id} ${agent.server?.id}`} agent={agent} />
    case 'settings':
      return (
        <PageBody>
          <div className="w-full max-w-5xl px-4 py-6 sm:px-6">
            <Settings />
          </div>
        </PageBody>
      )
    case 'revisions':
      return <Revisions agent={agent} />
    case 'launches':
      return (
        <PageBody narrow>
          <Launches agentId={agent.id} />
        </PageBody>
      )
    case 'backups':
      return (
        <PageBody narrow>
          <Backups agent={agent} />
        </PageBody>
      )
    default:
      return (
        <PageBody>
          <Now agent={agent} run={run} />
        </PageBody>
      )
  }
}
