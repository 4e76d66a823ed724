// Further hosts for agents, besides models, MCP servers and the destinations of credentials.
import { Plus, X } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { AllowHost, AllowHostDialog } from '../../app/spending/allow-host'
import { hostAndPort } from '../../app/spending/host'
import { Gate } from '../../permissions/gate'
import { Button, IconButton } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'

const HostsQuery = graphql(`
  query AllowedHosts($orgId: Id!) {
    organization(orgId: $orgId) {
      id viewerCan
      allowedHosts { id host port createdAt createdByName }
    }
  }
`)
const Remove = graphql(`
  mutation RemoveAllowedHost($orgId: Id!, $id: Id!) {
    removeAllowedHost(orgId: $orgId, id: $id) { id allowedHosts { id host port createdAt createdByName } }
  }
`)

type Host = NonNullable<ResultOf<typeof HostsQuery>['organization']>['allowedHosts'][number]

export function AllowedHosts() {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: HostsQuery,
    variables: { orgId },
    on: ['ORGANIZATION'],
  })
  const [adding, add] = useState(false)
  const found = data?.organization
  return (
    <Gate may="network.edit">
      <Panel
        title="Allowed hosts"
        doc="hosts.md#networks-that-agents-may-reach"
        about="Hosts that all agents may reach, besides models and MCP servers. Credentials are used only at these hosts. Changes apply to running agents at once."
        actions={
          <Button size="sm" icon={Plus} onClick={() => add(true)}>
            Allow a host
          </Button>
        }
      >
        {error && !found ? (
          <ProblemView error={error} retry={refetch} />
        ) : loading || !found ? (
          <ListSkeleton />
        ) : found.allowedHosts.length === 0 ? (
          <p className="rounded-card border border-line p-4 text-muted">
            None yet. An agent that wants to reach a host asks a person first, or is refused. Allow the hosts
            that your agents need.
          </p>
        ) : (
          <ul className="divide-y divide-line rounded-card border border-line">
            {found.allowedHosts.map((host) => (
              <Row key={host.id} host={host} />
            ))}
          </ul>
        )}
        {adding && <AllowHostDialog onClose={() => add(false)} />}
      </Panel>
    </Gate>
  )
}

function Row({ host: { id, host, port, createdAt, createdByName } }: { host: Host }) {
  const { id: orgId } = useOrg()
  const [remove, allow] = [useAct(Remove), useAct(AllowHost)]
  const name = hostAndPort(host, port)
  return (
    <li className="flex items-center gap-2 px-4 py-2">
      <div className="min-w-0 grow">
        <p className="font-medium break-all">
          <Visible text={name} />
        </p>
        <p className="text-sm text-muted">
          by {createdByName}, <Time at={createdAt} />
        </p>
      </div>
      <IconButton
        icon={X}
        size="sm"
        label={`Remove ${name}`}
        busy={remove.pending}
        onClick={() =>
          void remove(
            { orgId, id },
            {
              said: `Agents no longer reach ${name}`,
              undo: () => allow({ orgId, input: { host, port } }, { said: `Agents may reach ${name} again` }),
            },
          )
        }
      />
    </li>
  )
}
