// Rare actions on an agent: changing its picture, duplicating it, deleting it.
import { useNavigate } from '@tanstack/react-router'
import { Copy, Ellipsis, Image, ImageOff, Trash2 } from 'lucide-react'
import { useCallback, useEffect, useRef, useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { useMenuActions } from '../../ui/actions'
import { IconButton } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Menu, type MenuEntry } from '../../ui/menu'
import { pictureOf } from '../../ui/picture'
import { say, sayProblem } from '../../ui/toast-store'
import type { AgentRecord } from './agent-page'

const SetAvatar = graphql(`
  mutation SetAgentAvatar($orgId: Id!, $id: Id!, $input: AvatarInput!) {
    setAgentAvatar(orgId: $orgId, id: $id, input: $input) { id avatarUrl }
  }
`)
const Delete = graphql(`
  mutation DeleteAgent($orgId: Id!, $id: Id!) { deleteAgent(orgId: $orgId, id: $id) }
`)
const Restore = graphql(`
  mutation RestoreAgent($orgId: Id!, $id: Id!) { restoreAgent(orgId: $orgId, id: $id) { id name status } }
`)

const DuplicateAgent = lazyPart(() => import('./duplicate-agent'), 'DuplicateAgent')

export function AgentMenu({ agent }: { agent: AgentRecord }) {
  const org = useOrg()
  const navigate = useNavigate()
  const [avatar, remove, restore] = [useAct(SetAvatar), useAct(Delete), useAct(Restore)]
  const [asking, ask] = useState(false)
  const [duplicating, duplicate] = useState(false)
  const stopDuplicating = useCallback(() => duplicate(false), [])
  useEffect(() => void DuplicateAgent.preload(), [])
  const file = useRef<HTMLInputElement>(null)
  const mayNotEdit = useRefused('agent.edit', agent)
  const mayNotCreate = useRefused('agent.create')
  const mayNotDelete = useRefused('agent.delete', agent)
  const picture = async (contentBase64: string | null, said: string) =>
    void (await avatar({ orgId: org.id, id: agent.id, input: { contentBase64 } }, { said }))
  const take = async (chosen: File | undefined) => {
    if (!chosen) return
    const { base64, problem } = await pictureOf(chosen)
    if (problem) sayProblem(problem)
    if (base64) await picture(base64, `${agent.name} has another picture`)
  }
  const show = (id: number) =>
    void navigate({ to: '/o/$org/agents/$id', params: { org: org.id, id }, search: {} })
  const undo = async () => {
    const { data } = await restore({ orgId: org.id, id: agent.id })
    if (!data?.restoreAgent) return
    say(`Restored ${agent.name}. It is stopped.`)
    show(agent.id)
  }
  const deleteIt = async () => {
    const { error } = await remove({ orgId: org.id, id: agent.id })
    ask(false)
    if (error) return
    say(`Deleted ${agent.name}`, { undo })
    void navigate({ to: '/o/$org/agents', params: { org: org.id } })
  }
  const entries: MenuEntry[] = [
    {
      label: 'Change the picture',
      icon: Image,
      refused: mayNotEdit,
      onSelect: () => file.current?.click(),
    },
    ...(agent.avatarUrl
      ? [
          {
            label: 'Remove the picture',
            icon: ImageOff,
            refused: mayNotEdit,
            onSelect: () => void picture(null, 'The picture is removed'),
          },
        ]
      : []),
    {
      label: 'Duplicate',
      inFull: 'Duplicate the agent',
      icon: Copy,
      refused: mayNotCreate,
      onSelect: () => duplicate(true),
    },
    'line',
    {
      label: 'Delete the agent',
      icon: Trash2,
      look: 'danger',
      refused: mayNotDelete,
      onSelect: () => ask(true),
    },
  ]
  useMenuActions('Agent', entries)
  return (
    <>
      <input
        ref={file}
        type="file"
        hidden
        accept="image/png,image/jpeg,image/webp,image/gif"
        aria-label="Picture"
        onChange={(event) => {
          void take(event.target.files?.[0])
          event.target.value = ''
        }}
      />
      <Menu
        align="end"
        trigger={<IconButton icon={Ellipsis} label="More" look="secondary" />}
        entries={entries}
      />
      {duplicating && (
        <DuplicateAgent
          id={agent.id}
          onClose={stopDuplicating}
          onCreated={(id) => {
            stopDuplicating()
            show(id)
          }}
        />
      )}
      {asking && (
        <ConfirmDialog
          open
          onClose={() => ask(false)}
          title={`Delete ${agent.name}?`}
          action="Delete the agent"
          typed={agent.name}
          busy={remove.pending}
          onConfirm={deleteIt}
        >
          The agent stops, and its conversations are hidden. You can undo this right afterwards.
        </ConfirmDialog>
      )}
    </>
  )
}
