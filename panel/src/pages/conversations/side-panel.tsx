// Beside a conversation: its participants, and the agent's turns with their usage.
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useRef } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { EraseContact } from '../../app/erase-contact'
import { useOrg } from '../../app/organization'
import { costOf } from '../../app/spending/money'
import { useEscape } from '../../keys/use-actions'
import { IconButton } from '../../ui/button'
import { Fact, Facts } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { Skeleton } from '../../ui/skeleton'
import { Status, words } from '../../ui/status'
import { Tabs } from '../../ui/tabs'
import { Duration, Time } from '../../ui/time'
import { useInertBackground } from '../../ui/use-inert-background'
import { Visible } from '../../ui/visible'
import type { ConversationRecord } from './record'
import { tokenWords } from './usage'

const ContactShown = graphql(`
  query ConversationContact($orgId: Id!, $id: Id!) {
    contact(orgId: $orgId, id: $id) {
      id
      name
      note
      createdAt
      identities { id transport originId displayName lastSeenAt }
    }
  }
`)
const Turns = graphql(`
  query ConversationTurns($orgId: Id!, $conversationId: Id!) {
    turns(orgId: $orgId, conversationId: $conversationId, page: 1, limit: 50) {
      data {
        id
        state
        cause
        createdAt
        startedAt
        endedAt
        error
        firstSeq
        model
        inputTokens
        outputTokens
        cacheReadTokens
        cacheWriteTokens
        costMicro
      }
    }
  }
`)

interface Props {
  conversation: ConversationRecord
  panel: 'details' | 'turns'
  onClose: () => void
}

export function SidePanel({ conversation, panel, onClose }: Props) {
  const box = useRef<HTMLElement>(null)
  useEscape(onClose)
  useInertBackground(box)
  const tab = (id: 'details' | 'turns', label: string) => ({
    id,
    label,
    link: { to: '.', search: (before: object) => ({ ...before, panel: id }) } as never,
  })
  return (
    <aside
      ref={box}
      tabIndex={-1}
      aria-label="About this conversation"
      className="slide-in fixed inset-0 z-30 flex flex-col border-line bg-canvas outline-none lg:static lg:z-auto lg:w-88 lg:shrink-0 lg:border-l"
    >
      <header className="flex shrink-0 items-center border-b border-line pr-2 pl-3">
        <div className="min-w-0 grow">
          <Tabs label="Parts" current={panel} tabs={[tab('details', 'Details'), tab('turns', 'Turns')]} />
        </div>
        <IconButton icon={X} label="Close" keys="escape" onClick={onClose} />
      </header>
      <div className="min-h-0 grow overflow-y-auto p-4">
        {panel === 'turns' ? (
          <TurnList conversationId={conversation.id} />
        ) : (
          <Details conversation={conversation} />
        )}
      </div>
    </aside>
  )
}

function Details({ conversation }: { conversation: ConversationRecord }) {
  const org = useOrg()
  const { agent, agentDetails, contactName, channelName, transport } = conversation
  return (
    <div className="space-y-6">
      <section>
        <h3 className="mb-2 text-sm font-medium">Participants</h3>
        <Facts>
          {agent && (
            <Fact name="Agent">
              <span className="flex flex-wrap items-center gap-2">
                <Link
                  to="/o/$org/agents/$id"
                  params={{ org: org.id, id: agent.id }}
                  className="text-accent-text hover:underline"
                >
                  <Visible text={agent.name} />
                </Link>
                {agentDetails && <Status of="agent" value={agentDetails.status} />}
              </span>
            </Fact>
          )}
          <Fact name="Contact">
            {contactName && conversation.contactId && org.can('contact.view') ? (
              <Link
                to="/o/$org/contacts"
                params={{ org: org.id }}
                search={{ peek: conversation.contactId }}
                className="text-accent-text hover:underline"
              >
                <Visible text={contactName} />
              </Link>
            ) : contactName ? (
              <Visible text={contactName} />
            ) : (
              <span className="text-muted">none</span>
            )}
          </Fact>
          <Fact name="Channel">
            {channelName ? <Visible text={channelName} /> : <span className="text-muted">this panel</span>}
            {transport !== 'INTERNAL' && <span className="text-muted"> ({words(transport)})</span>}
          </Fact>
        </Facts>
      </section>
      {conversation.contactId && org.can('contact.view') && <ContactPart id={conversation.contactId} />}
      <section>
        <h3 className="mb-2 text-sm font-medium">The conversation</h3>
        <Facts>
          <Fact name="Short code">{conversation.ref}</Fact>
          <Fact name="Started">
            <Time at={conversation.createdAt} />
          </Fact>
          <Fact name="Last active">
            <Time at={conversation.lastActivityAt} />
          </Fact>
          <Fact name="Messages">{conversation.messageCount.toLocaleString()}</Fact>
          <Fact name="Model">
            {conversation.model ? (
              <Visible text={conversation.model} />
            ) : (
              <Missing why="The agent does not report its model." />
            )}
          </Fact>
          <Fact name="Context">
            {conversation.contextTokens === null ? (
              <Missing why="The agent does not report its context size." />
            ) : (
              `${conversation.contextTokens.toLocaleString()} tokens`
            )}
          </Fact>
        </Facts>
      </section>
    </div>
  )
}

function ContactPart({ id }: { id: number }) {
  const org = useOrg()
  const { data } = useLive({
    query: ContactShown,
    variables: { orgId: org.id, id },
    on: (change) => change.kind === 'CONTACT' && change.id === id,
  })
  const contact = data?.contact
  if (!contact) return null
  return (
    <section>
      <h3 className="mb-2 text-sm font-medium">The contact</h3>
      <Facts>
        {contact.identities.map((identity) => (
          <Fact key={identity.id} name={words(identity.transport)}>
            <Visible text={identity.displayName ?? identity.originId} />
            {identity.displayName && (
              <span className="block text-xs text-muted">
                <Visible text={identity.originId} />
              </span>
            )}
          </Fact>
        ))}
        <Fact name="First seen">
          <Time at={contact.createdAt} />
        </Fact>
        {contact.note && (
          <Fact name="Note">
            <span className="whitespace-pre-wrap">
              <Visible text={contact.note} />
            </span>
          </Fact>
        )}
      </Facts>
      <EraseContact id={id} name={contact.name} />
    </section>
  )
}

type Turn = NonNullable<ResultOf<typeof Turns>['turns']>['data'][number]

function TurnList({ conversationId }: { conversationId: number }) {
  const org = useOrg()
  const { data, loading, error, refetch } = useLive({
    query: Turns,
    variables: { orgId: org.id, conversationId },
    on: ['TURN'],
  })
  if (loading) return <Skeleton className="h-24" />
  if (error && !data?.turns) return <ProblemView error={error} retry={refetch} />
  const turns = data?.turns?.data ?? []
  if (turns.length === 0) return <p className="text-muted">The agent has not worked here yet.</p>
  return (
    <ol className="space-y-3">
      {turns.map((turn) => (
        <li key={turn.id} className="rounded-control border border-line p-3">
          <TurnPart turn={turn} />
        </li>
      ))}
    </ol>
  )
}

function TurnPart({ turn }: { turn: Turn }) {
  const { currency } = useOrg()
  const cost = costOf(turn.costMicro, currency)
  return (
    <>
      <div className="mb-2 flex items-center justify-between gap-2">
        <Status of="turn" value={turn.state} />
        <span className="text-xs text-muted">
          <Time at={turn.createdAt} as="stamp" />
        </span>
      </div>
      <Facts>
        <Fact name="Took">
          <Duration from={turn.startedAt} to={turn.endedAt} />
        </Fact>
        <Fact name="Tokens">
          {tokenWords(turn) ?? <Missing why="The agent does not report its tokens." />}
        </Fact>
        <Fact name="Cost">{cost ?? <Missing why="The agent does not report its cost." />}</Fact>
        {turn.firstSeq && (
          <Fact name="Begins">
            <Link
              to="."
              search={(before: object) => ({ ...before, seq: turn.firstSeq ?? undefined })}
              className="text-accent-text hover:underline"
            >
              at message {turn.firstSeq}
            </Link>
          </Fact>
        )}
        {turn.error && (
          <Fact name="Why">
            <Visible text={turn.error} />
          </Fact>
        )}
      </Facts>
    </>
  )
}

function Missing({ why }: { why: string }) {
  return (
    <span className="text-faint" data-tip={why}>
      <span aria-hidden>–</span>
      <span className="sr-only">{why}</span>
    </span>
  )
}
