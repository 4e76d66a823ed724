// How agents use a credential: their server adds it to requests, or, if a person allowed it, they read it themselves.
import { EyeOff, TriangleAlert } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { AllowHostDialog } from '../../app/spending/allow-host'
import { hostAndPort } from '../../app/spending/host'
import { Gate } from '../../permissions/gate'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { type Credential, UpdateCredential } from './credential-peek'
import { type HostPort, notAllowed } from './not-allowed'

const HostsQuery = graphql(`
  query CredentialHosts($orgId: Id!) {
    organization(orgId: $orgId) { id allowedHosts { id host port } }
  }
`)

export function AgentUse({ credential }: { credential: Credential }) {
  const { id: orgId } = useOrg()
  const update = useAct(UpdateCredential)
  const [asking, ask] = useState(false)
  const { id, name, agentMayRead, lastUsedAt } = credential
  const letThem = (may: boolean, said: string) =>
    update({ orgId, id, agentMayRead: may, input: {} }, { said })
  return (
    <Panel title="How agents use it" doc="tools.md#how-it-is-used">
      <div className="space-y-2 rounded-card border border-line p-4">
        <Use credential={credential} />
        <p className="text-sm text-muted">
          {agentMayRead ? 'Last given or used: ' : 'Last used: '}
          <Time at={lastUsedAt} />
        </p>
        <Gate on={credential} may="credential.edit">
          {agentMayRead ? (
            <Button
              size="sm"
              busy={update.pending}
              onClick={() => void letThem(false, `Agents no longer get ${name} to read`)}
            >
              No longer let agents read it
            </Button>
          ) : (
            <Button size="sm" onClick={() => ask(true)}>
              Let agents read it…
            </Button>
          )}
        </Gate>
      </div>
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Let agents read ${name}?`}
        action="Let them read it"
        busy={update.pending}
        onConfirm={async () => {
          await letThem(true, `Agents may read ${name}`)
          ask(false)
        }}
      >
        Every agent that has it then gets its values, as variables and files, at its next start. A tricked
        agent may send them elsewhere, and its model’s provider may see them. Choose this only for secrets
        that can’t be used over http or https. Your name is recorded.
      </ConfirmDialog>
    </Panel>
  )
}

function Use({ credential }: { credential: Credential }) {
  const { agentMayRead, agentMayReadAt, agentMayReadByName, isInjected } = credential
  if (agentMayRead) {
    return (
      <>
        <Badge tone="warn" icon={TriangleAlert}>
          Agents may read it
        </Badge>
        <p className="text-sm text-muted">
          They get its values as variables and files when they are started.
          {agentMayReadByName && (
            <>
              {' '}
              <Visible text={agentMayReadByName} /> allowed it <Time at={agentMayReadAt} />.
            </>
          )}
        </p>
      </>
    )
  }
  if (isInjected) {
    return (
      <>
        <Badge tone="ok" icon={EyeOff}>
          Used by the host, never seen by the agent
        </Badge>
        <p className="text-sm text-muted">
          The agent’s server adds it to requests to the http and https addresses above whose hosts are on the
          organization’s list.
        </p>
        <NotAllowed destinations={credential.destinations} />
      </>
    )
  }
  return (
    <p className="text-sm text-muted">
      No agent can use it yet. Add an http or https address above: servers then add an API key, a bearer
      token, or a user and password to requests there.
    </p>
  )
}

/** Addresses at which no server uses the credential, because the organization does not allow their hosts. */
function NotAllowed({ destinations }: { destinations: readonly string[] }) {
  const { id: orgId } = useOrg()
  const { data } = useLive({ query: HostsQuery, variables: { orgId }, on: ['ORGANIZATION'] })
  const [asked, ask] = useState<HostPort | null>(null)
  const list = data?.organization?.allowedHosts
  const [first, ...others] = list ? notAllowed(destinations, list) : []
  if (!first) return null
  const names = [first, ...others].map(({ host, port }) => hostAndPort(host, port)).join(', ')
  return (
    <Notice tone="warn">
      <p className="mb-2">
        Not on the organization’s list: <Visible text={names} />. There it is not used.
      </p>
      <Gate may="network.edit">
        <Button size="sm" onClick={() => ask(first)}>
          Allow {hostAndPort(first.host, first.port)}…
        </Button>
      </Gate>
      {asked && <AllowHostDialog {...asked} onClose={() => ask(null)} />}
    </Notice>
  )
}
