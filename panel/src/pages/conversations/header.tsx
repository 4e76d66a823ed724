// A conversation's header: its subject, its state, its actions.
import { Link } from '@tanstack/react-router'
import {
  Archive,
  CircleCheck,
  Download,
  Eye,
  EyeOff,
  Hand,
  MoreHorizontal,
  PanelRight,
  Pencil,
  RotateCcw,
  Search,
} from 'lucide-react'
import { useState } from 'react'
import { useClient } from 'urql'
import { fetched } from '../../api/chunk'
import { wordsOf } from '../../api/errors'
import { conflictOf } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useMailWay, watchAbout } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { runNamed } from '../../keys/registry'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton, useMenuActions } from '../../ui/actions'
import { Button, IconButton } from '../../ui/button'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Menu, type MenuEntry } from '../../ui/menu'
import { PageHeader } from '../../ui/page'
import { Status } from '../../ui/status'
import { Visible } from '../../ui/visible'
import { ConversationFields, type ConversationRecord, nameOf } from './record'

const Update = graphql(
  `
    mutation UpdateConversation($orgId: Id!, $id: Id!, $input: UpdateConversationInput!, $ifRevision: Int) {
      updateConversation(orgId: $orgId, id: $id, input: $input, ifRevision: $ifRevision) { ...ConversationFields }
    }
  `,
  [ConversationFields],
)
const Watch = graphql(
  `
    mutation WatchConversation($orgId: Id!, $id: Id!, $watch: Boolean!) {
      watchConversation(orgId: $orgId, id: $id, watch: $watch) { ...ConversationFields }
    }
  `,
  [ConversationFields],
)

type Settable = 'OPEN' | 'RESOLVED' | 'ARCHIVED'
const SAID: Record<Settable, string> = { OPEN: 'Reopened', RESOLVED: 'Resolved', ARCHIVED: 'Archived' }

interface Props {
  conversation: ConversationRecord
  panel: string | undefined
  onPanel: (panel: 'details' | 'turns' | undefined) => void
  onFind: () => void
}

export function ConversationHeader({ conversation, panel, onPanel, onFind }: Props) {
  const org = useOrg()
  const [renaming, rename] = useState(false)
  const { id, agent, contactName, channelName } = conversation
  return (
    <>
      <PageHeader
        title={<Visible text={nameOf(conversation)} />}
        name={nameOf(conversation)}
        doc="panel.md#taking-over"
        above={
          <span className="flex min-w-0 gap-1">
            <Link to="/o/$org/conversations" params={{ org: org.id }} className="shrink-0 hover:underline">
              Conversations
            </Link>
            <span className="truncate">
              {' / '}
              {agent && (
                <Link
                  to="/o/$org/agents/$id"
                  params={{ org: org.id, id: agent.id }}
                  className="hover:underline"
                >
                  <Visible text={agent.name} />
                </Link>
              )}
              {contactName && (
                <>
                  {' with '}
                  <Visible text={contactName} />
                </>
              )}
              {channelName && (
                <>
                  {' by '}
                  <Visible text={channelName} />
                </>
              )}
            </span>
          </span>
        }
        beside={<Status of="conversation" value={conversation.status} />}
        actions={
          <>
            <IconButton icon={Search} label="Find in this conversation" keys="/" onClick={onFind} />
            <IconButton
              icon={PanelRight}
              label={panel ? 'Hide the details' : 'Details'}
              keys="i"
              aria-pressed={panel !== undefined}
              onClick={() => onPanel(panel ? undefined : 'details')}
            />
            <MainActions conversation={conversation} />
            <Actions conversation={conversation} onRename={() => rename(true)} />
          </>
        }
      />
      {renaming && <Rename key={id} conversation={conversation} onClose={() => rename(false)} />}
    </>
  )
}

function useSetStatus({ id, status }: ConversationRecord) {
  const org = useOrg()
  const act = useAct(Update)
  return (next: Settable) => {
    const before: Settable = status === 'PENDING' ? 'OPEN' : status
    const change = (to: Settable) => ({ orgId: org.id, id, input: { status: to }, ifRevision: null })
    void act(change(next), { said: SAID[next], undo: () => act(change(before)) })
  }
}

/** Taking over, and resolving or reopening: the usual work on a conversation. On phones they are icons. */
function MainActions({ conversation }: { conversation: ConversationRecord }) {
  const { status, takenOverBy } = conversation
  const set = useSetStatus(conversation)
  const refused = useRefused('conversation.edit', conversation)
  const isOpen = status === 'OPEN' || status === 'PENDING'
  return (
    <>
      {takenOverBy === null && (
        <Gate on={conversation} may="agent.interact">
          {/* thread/take-over registers the shortcut and the palette entry. */}
          <Button
            icon={Hand}
            tip="You answer instead of the agent"
            keys="t"
            onClick={() => runNamed('conversation.take-over')}
          >
            <span className="max-sm:sr-only">Take over</span>
          </Button>
        </Gate>
      )}
      <ActionButton
        icon={isOpen ? CircleCheck : RotateCcw}
        tip={isOpen ? 'A new message opens it again' : undefined}
        action={{
          id: 'conversation.status',
          label: isOpen ? 'Resolve' : 'Reopen',
          group: 'Conversation',
          also: 'conversation',
          refused,
          run: () => set(isOpen ? 'RESOLVED' : 'OPEN'),
        }}
      >
        <span className="max-sm:sr-only">{isOpen ? 'Resolve' : 'Reopen'}</span>
      </ActionButton>
    </>
  )
}

function Actions({ conversation, onRename }: { conversation: ConversationRecord; onRename: () => void }) {
  const org = useOrg()
  const { id, status, watching } = conversation
  const set = useSetStatus(conversation)
  const watch = useAct(Watch)
  const way = useMailWay()
  const mayEdit = useRefused('conversation.edit', conversation)
  const client = useClient()
  const download = async (format: 'md' | 'json') => {
    const { exportConversation } = await fetched(() => import('./export'))
    await exportConversation(client, org.id, conversation, format)
  }
  const entries: (MenuEntry | false)[] = [
    { label: 'Edit the subject', icon: Pencil, refused: mayEdit, onSelect: onRename },
    watching !== null && {
      label: watching ? 'Stop watching' : 'Watch',
      about: watching ? undefined : watchAbout(way),
      icon: watching ? EyeOff : Eye,
      onSelect: () =>
        void watch(
          { orgId: org.id, id, watch: !watching },
          { said: watching ? 'You no longer watch this conversation' : 'You watch this conversation' },
        ),
    },
    { label: 'Export as Markdown', icon: Download, onSelect: () => void download('md') },
    { label: 'Export as JSON', icon: Download, onSelect: () => void download('json') },
    status !== 'ARCHIVED' && {
      label: 'Archive',
      about: 'A new message begins another conversation.',
      icon: Archive,
      refused: mayEdit,
      onSelect: () => set('ARCHIVED'),
    },
  ]
  const present = entries.filter((entry) => entry !== false)
  useMenuActions('Conversation', present)
  return (
    <Menu
      trigger={<IconButton icon={MoreHorizontal} label="Actions for this conversation" />}
      entries={present}
    />
  )
}

/** Edits the subject. The user's text survives a concurrent edit, which shows beside it. */
function Rename({ conversation, onClose }: { conversation: ConversationRecord; onClose: () => void }) {
  const org = useOrg()
  const act = useAct(Update)
  const [title, setTitle] = useState(conversation.title ?? '')
  const [revision, setRevision] = useState(conversation.revision)
  const [problem, setProblem] = useState<string | null>(null)
  const before = conversation.title
  const save = async () => {
    const next = title.trim()
    if (!next) return setProblem('Type a subject.')
    const change = (text: string, ifRevision: number | null) =>
      act({ orgId: org.id, id: conversation.id, input: { title: text }, ifRevision }, { quiet: true })
    const { error } = await act(
      { orgId: org.id, id: conversation.id, input: { title: next }, ifRevision: revision },
      { quiet: true, said: 'Renamed', ...(before ? { undo: () => change(before, null) } : {}) },
    )
    if (!error) return onClose()
    const conflict = conflictOf<{ title: string | null }>(error)
    if (conflict) {
      setRevision(conflict.revision)
      setProblem(
        `${conflict.changedBy ?? 'Someone'} changed it to “${conflict.current.title ?? ''}” meanwhile. Save again to put yours in its place.`,
      )
    } else setProblem(wordsOf(error))
  }
  return (
    <FormDialog
      title="Subject of the conversation"
      action="Save"
      busy={act.pending}
      onSubmit={save}
      onClose={onClose}
    >
      <Field label="Subject" error={problem}>
        <TextInput value={title} onValue={setTitle} maxLength={200} autoComplete="off" />
      </Field>
    </FormDialog>
  )
}
