// One server: its health, its agents, and how to reconnect it.
import { Link, useParams } from '@tanstack/react-router'
import { useEffect } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { PageBody, PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Status } from '../../ui/status'
import { Visible } from '../../ui/visible'
import { ServerActions } from './actions'
import { Agents } from './agents'
import { EditServer } from './edit-server'
import { Health } from './health'
import { Unconfirmed } from './unconfirmed'

const LoadHistory = lazyPart(() => import('./load-history'), 'LoadHistory')

/** Measurements trigger no change events, so poll them while the page is shown. */
const MEASURED_MS = 10_000

const ServerQuery = graphql(`
  query Server($orgId: Id!, $id: Id!) {
    server(orgId: $orgId, id: $id) {
      id name description hostname address region labels revision viewerCan
      status lastSeenAt provisionedAt hasProvisioningToken provisioningTokenExpiresAt
      cpuPct ramPct load1 load5 load15 cpuCores memoryMb diskMb uptimeSeconds
      version protocolVersion runtime runtimeVersion os arch
      refusal { code reason at }
      host { join confirmedAt joinedAt joinedFrom machineId tokenMadeByKind tokenMadeByName }
      agentCount agentsRunning
      agents { id name role avatarUrl status }
    }
  }
`)

export type ServerRecord = NonNullable<ResultOf<typeof ServerQuery>['server']>

export function ServerPage() {
  const org = useOrg()
  const { id } = useParams({ from: '/inside/o/$org/servers/$id' })
  const { data, error, loading, refetch } = useLive({
    query: ServerQuery,
    variables: { orgId: org.id, id },
    on: ({ kind, id: changed }) => (kind === 'SERVER' && changed === id) || kind === 'AGENT',
  })
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && refetch(), MEASURED_MS)
    return () => clearInterval(timer)
  }, [refetch])
  const server = data?.server
  const up = (
    <Link to="/o/$org/servers" params={{ org: org.id }} className="hover:underline">
      Servers
    </Link>
  )
  if (!server) {
    return (
      <>
        <PageHeader title="Server" above={up} />
        <PageBody narrow>
          {error ? <ProblemView error={error} retry={refetch} /> : loading ? <ListSkeleton /> : null}
        </PageBody>
      </>
    )
  }
  return (
    <>
      <PageHeader
        doc="hosts.md#running"
        above={up}
        name={server.name}
        title={<Visible text={server.name} />}
        beside={<Status of="server" value={server.status} />}
        about={server.description}
        actions={<ServerActions server={server} />}
      />
      <PageBody>
        <div className="grid w-full max-w-6xl gap-x-8 px-4 py-6 sm:px-6 lg:grid-cols-2">
          <div className="min-w-0">
            <Unconfirmed server={server} />
            <Health server={server} />
          </div>
          <div className="min-w-0">
            <Agents server={server} />
            <Gate on={server} may="server.edit">
              <EditServer server={server} />
            </Gate>
          </div>
          <div className="min-w-0 lg:col-span-2">
            <LoadHistory serverId={server.id} />
          </div>
        </div>
      </PageBody>
    </>
  )
}
