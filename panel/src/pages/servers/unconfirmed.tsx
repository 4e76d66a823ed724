// A joined but unconfirmed host: its known facts, and the button that lets it hold secrets.
import { ShieldCheck } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Notice } from '../../ui/notice'
import { Fact, Facts, Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { ServerRecord } from './server-page'

const Confirm = graphql(`
  mutation ConfirmHost($orgId: Id!, $id: Id!, $join: Int!) {
    confirmHost(orgId: $orgId, id: $id, join: $join) { id host { join confirmedAt } }
  }
`)

export function Unconfirmed({ server }: { server: ServerRecord }) {
  const { id: orgId } = useOrg()
  const confirm = useAct(Confirm)
  const [mayServers, maySecrets] = [useRefused('server.edit', server), useRefused('credential.edit')]
  const { host } = server
  if (!host || host.confirmedAt !== null) return null
  const action = {
    id: 'server.confirm',
    label: 'Confirm the host',
    group: 'Server',
    also: 'trust secrets host',
    refused: mayServers ?? maySecrets,
    run: () =>
      void confirm(
        { orgId, id: server.id, join: host.join },
        { said: `Confirmed the host of ${server.name}` },
      ),
  }
  return (
    <Panel title="Not confirmed" doc="security.md#which-hosts-hold-secrets">
      <Notice tone="warn">
        This host gets no secrets, and agents that need secrets do not start on it. Confirm the host if you
        know who runs it: the host can then read the secrets of every agent on this server. Otherwise issue a
        new token, which disconnects the host.
      </Notice>
      <div className="mt-3">
        <Facts>
          <Fact name="Calls itself">
            <Visible text={server.hostname ?? 'nothing'} />
          </Fact>
          <Fact name="Joined from">{host.joinedFrom ?? 'an unknown address'}</Fact>
          <Fact name="Joined">
            <Time at={host.joinedAt} as="stamp" />
          </Fact>
          <Fact name="Machine">
            {[server.os, server.arch].filter(Boolean).join(', ') || 'not reported'}
            <span className="text-muted">
              {' '}
              <Visible text={host.machineId ?? ''} />
            </span>
          </Fact>
          <Fact name="Token created by">
            {MAKERS[host.tokenMadeByKind ?? '']} <Visible text={host.tokenMadeByName ?? ''} />
          </Fact>
        </Facts>
      </div>
      <div className="mt-3">
        <ActionButton icon={ShieldCheck} look="primary" busy={confirm.pending} action={action}>
          Confirm
        </ActionButton>
      </div>
    </Panel>
  )
}

const MAKERS: Record<string, string> = {
  USER: '',
  SERVICE_TOKEN: 'the service token',
  SYSTEM: 'the operator,',
}
