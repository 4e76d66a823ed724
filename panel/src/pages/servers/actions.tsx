// Actions on a server: issue a new host token, delete it.
import { useNavigate } from '@tanstack/react-router'
import { KeyRound, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { ConfirmDialog } from '../../ui/confirm'
import { Notice } from '../../ui/notice'
import { type Fresh, Provisioned } from './provisioned'
import type { ServerRecord } from './server-page'

const Renew = graphql(`
  mutation RenewToken($orgId: Id!, $id: Id!) {
    regenerateProvisioningToken(orgId: $orgId, id: $id) { id name provisioningToken }
  }
`)
const Delete = graphql(`
  mutation DeleteServer($orgId: Id!, $id: Id!) { deleteServer(orgId: $orgId, id: $id) }
`)

export function ServerActions({ server }: { server: ServerRecord }) {
  const { id: orgId } = useOrg()
  const navigate = useNavigate()
  const [renew, remove] = [useAct(Renew), useAct(Delete)]
  const [asking, ask] = useState<'token' | 'delete' | null>(null)
  const [fresh, setFresh] = useState<Fresh | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const joined = server.provisionedAt !== null
  const close = () => {
    ask(null)
    setProblem(null)
  }
  const newToken = {
    id: 'server.token',
    label: 'New token for the server',
    group: 'Server',
    also: 'provisioning join',
    refused: useRefused('server.edit', server),
    run: () => ask('token'),
  }
  const deletion = {
    id: 'server.delete',
    label: 'Delete the server',
    group: 'Server',
    refused: useRefused('server.delete', server),
    run: () => ask('delete'),
  }
  const renewIt = async () => {
    const { data, error } = await renew({ orgId, id: server.id }, { quiet: true })
    const made = data?.regenerateProvisioningToken
    if (!made) return setProblem(wordsOf(error))
    close()
    setFresh({ id: made.id, name: made.name, token: made.provisioningToken ?? '' })
  }
  const deleteIt = async () => {
    const { error } = await remove({ orgId, id: server.id }, { quiet: true, said: `Deleted ${server.name}` })
    if (error) return setProblem(wordsOf(error))
    void navigate({ to: '/o/$org/servers', params: { org: orgId } })
  }
  return (
    <>
      <ActionButton icon={KeyRound} action={newToken}>
        New token
      </ActionButton>
      <ActionButton icon={Trash2} action={deletion}>
        Delete
      </ActionButton>
      {asking === 'token' && (
        <ConfirmDialog
          open
          onClose={close}
          title={`A new token for ${server.name}?`}
          action="Make a new token"
          look={joined ? 'danger' : 'primary'}
          busy={renew.pending}
          onConfirm={renewIt}
        >
          {joined
            ? 'The host that has joined is disconnected at once, and has to join again with the new token. Until then its agents keep running, but report nothing.'
            : 'The token that was shown before stops working.'}
          {problem && <Notice>{problem}</Notice>}
        </ConfirmDialog>
      )}
      {asking === 'delete' && (
        <ConfirmDialog
          open
          onClose={close}
          title={`Delete ${server.name}?`}
          action="Delete the server"
          typed={server.name}
          busy={remove.pending}
          onConfirm={deleteIt}
        >
          {server.agentCount > 0 ? (
            <Notice tone="warn">
              {server.agentCount === 1 ? 'An agent is' : `${server.agentCount} agents are`} on it. Move or
              delete {server.agentCount === 1 ? 'it' : 'them'} first.
            </Notice>
          ) : (
            'The host is locked out. This can’t be undone; the machine can join again as a new server.'
          )}
          {problem && <Notice>{problem}</Notice>}
        </ConfirmDialog>
      )}
      {fresh && <Provisioned server={fresh} onDone={() => setFresh(null)} />}
    </>
  )
}
