// A contact beside the list: name and note, addresses, conversations; deletion and erasure.
import { Link } from '@tanstack/react-router'
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { type Live, useLive } from '../../api/use-live'
import { conversationTitle } from '../../app/conversation-title'
import { EraseContact } from '../../app/erase-contact'
import { useOrg } from '../../app/organization'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { ConfirmDialog } from '../../ui/confirm'
import { TextArea, TextInput } from '../../ui/inputs'
import { Fact, Facts, Panel } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SectionField, SectionForm } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { Status, words } from '../../ui/status'
import { Time } from '../../ui/time'
import { useSection } from '../../ui/use-section'
import { Visible } from '../../ui/visible'

const ContactQuery = graphql(`
  query Contact($orgId: Id!, $id: Id!) {
    contact(orgId: $orgId, id: $id) {
      id name note revision createdAt
      identities { id transport originId displayName lastSeenAt }
    }
  }
`)
const ConversationsQuery = graphql(`
  query ContactConversations($orgId: Id!, $contactId: Id!) {
    conversationFeed(orgId: $orgId, contactId: $contactId, limit: 10) {
      total
      data { id ref title status contactName lastActivityAt agent { id name } }
    }
  }
`)
const Update = graphql(`
  mutation UpdateContact($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateContactInput!) {
    updateContact(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) { id name note revision }
  }
`)
const Delete = graphql(`
  mutation DeleteContact($orgId: Id!, $id: Id!) { deleteContact(orgId: $orgId, id: $id) }
`)

type ContactRecord = NonNullable<ResultOf<typeof ContactQuery>['contact']>

export function ContactPeek({ id, onClose }: { id: number; onClose: () => void }) {
  const org = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: ContactQuery,
    variables: { orgId: org.id, id },
    on: ({ kind, id: changed }) => kind === 'CONTACT' && changed === id,
  })
  const contact = data?.contact
  const conversations = useLive({
    query: ConversationsQuery,
    variables: { orgId: org.id, contactId: id },
    on: ['CONVERSATION'],
    pause: !org.can('agent.output.view'),
  })
  const hasConversations = Boolean(conversations.data?.conversationFeed?.total)
  return (
    <Peek title={contact?.name ?? 'Contact'} onClose={onClose}>
      {error && !contact ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !contact ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <Gate may="contact.edit">
            <Edit contact={contact} />
          </Gate>
          <Addresses contact={contact} />
          {org.can('agent.output.view') && <Conversations id={id} {...conversations} />}
          <Panel
            title="Delete or erase"
            about="A contact with conversations can’t be deleted, because these refer to it. Erasing replaces the name and the addresses."
          >
            <div className="flex flex-wrap items-end gap-2">
              <DeleteContact contact={contact} disabled={hasConversations} onDeleted={onClose} />
              <EraseContact id={id} name={contact.name} />
            </div>
          </Panel>
        </div>
      )}
    </Peek>
  )
}

const pick = ({ name, note }: ContactRecord) => ({ name, note })

function Edit({ contact }: { contact: ContactRecord }) {
  const { id: orgId } = useOrg()
  const update = useAct(Update)
  const form = useSection({
    stored: pick(contact),
    revision: contact.revision,
    bounds: { name: 'UpdateContactInput.name', note: 'UpdateContactInput.note' },
    save: (changes, ifRevision) =>
      update({ orgId, id: contact.id, ifRevision, input: changes as never }, { quiet: true }),
    ofCurrent: pick,
  })
  return (
    <SectionForm title="The contact" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={form.values.name} onValue={(name) => form.set('name', name)} autoComplete="off" />
      </SectionField>
      <SectionField form={form} name="note" label="Note for members" optional>
        <TextArea
          rows={3}
          maxRows={12}
          value={form.values.note ?? ''}
          onValue={(note) => form.set('note', note || null)}
        />
      </SectionField>
    </SectionForm>
  )
}

function Addresses({ contact: { identities, createdAt } }: { contact: ContactRecord }) {
  return (
    <Panel title="Addresses">
      <Facts>
        {identities.map(({ id, transport, originId, displayName, lastSeenAt }) => (
          <Fact key={id} name={words(transport)}>
            <span className="block break-all">
              <Visible text={originId} />
            </span>
            <span className="block text-sm text-muted">
              {displayName && (
                <>
                  <Visible text={displayName} />
                  {' · '}
                </>
              )}
              last seen <Time at={lastSeenAt} none="never" />
            </span>
          </Fact>
        ))}
        <Fact name="First seen">
          <Time at={createdAt} />
        </Fact>
      </Facts>
    </Panel>
  )
}

interface ConversationsProps extends Live<ResultOf<typeof ConversationsQuery>> {
  id: number
}

function Conversations({ id, data, error, refetch }: ConversationsProps) {
  const org = useOrg()
  const feed = data?.conversationFeed
  if (error && !feed) return <ProblemView error={error} retry={refetch} />
  if (!feed) return <ListSkeleton />
  return (
    <Panel title="Conversations">
      {feed.total === 0 && <p className="text-muted">None.</p>}
      <ul className="space-y-1">
        {feed.data.map((conversation) => (
          <li key={conversation.id} className="flex items-center gap-2">
            <Link
              to="/o/$org/conversations/$id"
              params={{ org: org.id, id: conversation.id }}
              className="min-w-0 grow truncate text-accent-text hover:underline"
            >
              <Visible text={conversationTitle(conversation)} />
            </Link>
            <Status of="conversation" value={conversation.status} />
            <span className="shrink-0 text-xs text-muted">
              <Time at={conversation.lastActivityAt} as="short" />
            </span>
          </li>
        ))}
      </ul>
      {feed.total > feed.data.length && (
        <Link to="/o/$org/conversations" params={{ org: org.id }} search={{ contact: id }} className="link">
          All {feed.total.toLocaleString()}
        </Link>
      )}
    </Panel>
  )
}

interface DeleteProps {
  contact: ContactRecord
  disabled: boolean
  onDeleted: () => void
}

function DeleteContact({ contact, disabled, onDeleted }: DeleteProps) {
  const { id: orgId } = useOrg()
  const remove = useAct(Delete)
  const [asking, ask] = useState(false)
  return (
    <>
      <ActionButton
        size="sm"
        look={disabled ? 'secondary' : 'danger'}
        icon={Trash2}
        disabled={disabled}
        action={{
          id: 'contact.delete',
          label: 'Delete the contact',
          group: 'Contact',
          refused: useRefused('contact.edit'),
          run: () => ask(true),
        }}
      />
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Delete ${contact.name}?`}
        action="Delete the contact"
        busy={remove.pending}
        onConfirm={async () => {
          const { error } = await remove({ orgId, id: contact.id }, { said: `Deleted ${contact.name}` })
          ask(false)
          if (!error) onDeleted()
        }}
      >
        The addresses are deleted as well. A person who writes again becomes a new contact.
      </ConfirmDialog>
    </>
  )
}
