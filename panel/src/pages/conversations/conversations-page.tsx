// All conversations the user may read, latest activity first.
import { MessageSquare, Plus } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useFeed } from '../../api/use-feed'
import { NothingMatches, narrowing } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { useActions } from '../../keys/use-actions'
import { Gate, GatedForm, useRefused } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { List } from '../../ui/list'
import { PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Tabs } from '../../ui/tabs'
import { ConversationFilters, saidOf, useListSearch } from './filters'
import { MessageHits } from './message-hits'
import { NewConversation } from './new-dialog'
import { ConversationRow, type ConversationRowRecord, nameOf } from './record'
import { ConversationRowView } from './row'
import type { ConversationsSearch } from './search'

const Feed = graphql(
  `
    query ConversationsFeed(
      $orgId: Id!
      $after: String
      $limit: Int
      $agentId: Id
      $channelId: Id
      $contactId: Id
      $status: [ConversationStatus!]
      $mine: Boolean
      $unread: Boolean
      $waiting: Boolean
      $undelivered: Boolean
      $takenOver: Boolean
      $search: String
      $from: Timestamp
      $to: Timestamp
    ) {
      conversationFeed(
        orgId: $orgId
        after: $after
        limit: $limit
        agentId: $agentId
        channelId: $channelId
        contactId: $contactId
        status: $status
        mine: $mine
        unread: $unread
        waiting: $waiting
        undelivered: $undelivered
        takenOver: $takenOver
        search: $search
        from: $from
        to: $to
      ) {
        data { ...ConversationRow }
        next
        total
      }
    }
  `,
  [ConversationRow],
)

const TABS = [
  { id: 'names', label: 'Names and subjects' },
  { id: 'said', label: 'What was said' },
]

const idOf = ({ id }: ConversationRowRecord) => id
const pageOf = (data: ResultOf<typeof Feed>) => data.conversationFeed
const readOut = (conversation: ConversationRowRecord) =>
  [
    nameOf(conversation),
    conversation.agent?.name,
    conversation.unread ? `${conversation.unread} unread` : null,
    conversation.pendingApprovals ? 'waits for a decision' : null,
  ]
    .filter(Boolean)
    .join(', ')

function filtersOf(search: ConversationsSearch, orgId: number) {
  return {
    orgId,
    agentId: search.agent ?? null,
    channelId: search.channel ?? null,
    contactId: search.contact ?? null,
    status: search.status ?? null,
    mine: search.mine ?? null,
    unread: search.unread ?? null,
    waiting: search.waiting ?? null,
    undelivered: search.undelivered ?? null,
    takenOver: search.takenOver ?? null,
    search: search.q ?? null,
    from: search.from ?? null,
    to: search.to ?? null,
  }
}

export function ConversationsPage() {
  const [search, set] = useListSearch()
  const [total, setTotal] = useState<number>()
  const said = saidOf(search)
  const refused = useRefused('agent.interact')
  const begin = () => set({ open: 'new' })
  const close = () => set({ open: undefined })
  useActions([
    {
      id: 'conversations.new',
      label: 'New conversation',
      group: 'Conversations',
      keys: 'n',
      refused,
      run: begin,
    },
  ])
  return (
    <>
      <PageHeader
        title="Conversations"
        doc="panel.md#taking-over"
        about={about(said === undefined ? total : undefined)}
        actions={
          <Gate may="agent.interact">
            <Button look="primary" icon={Plus} keys="n" tip="New conversation" onClick={begin}>
              New
            </Button>
          </Gate>
        }
      >
        <ConversationFilters />
        {search.q !== undefined && (
          <Tabs label="Where to search" tabs={TABS} current={said === undefined ? 'names' : 'said'} />
        )}
      </PageHeader>
      {said !== undefined ? (
        <MessageHits q={said} agent={search.agent} />
      ) : (
        <Conversations search={search} onTotal={setTotal} empty={<Nothing begin={begin} />} />
      )}
      {search.open === 'new' && (
        <GatedForm may="agent.interact" onClose={close}>
          <NewConversation agent={null} onClose={close} />
        </GatedForm>
      )}
    </>
  )
}

interface ConversationsProps {
  search: ConversationsSearch
  onTotal: (total: number | undefined) => void
  empty: ReactNode
}

function Conversations({ search, onTotal, empty }: ConversationsProps) {
  const org = useOrg()
  const feed = useFeed({
    query: Feed,
    variables: filtersOf(search, org.id),
    pageOf,
    idOf,
    on: ['CONVERSATION', 'APPROVAL', 'TURN'],
  })
  useEffect(() => onTotal(feed.total), [feed.total, onTotal])
  if (feed.error && feed.items.length === 0) return <ProblemView error={feed.error} retry={feed.refetch} />
  if (feed.loading) return <ListSkeleton />
  return (
    <List
      label="Conversations"
      items={feed.items}
      idOf={idOf}
      nameOf={readOut}
      rowHeight={65}
      row={(conversation) => <ConversationRowView conversation={conversation} />}
      linkOf={({ id }) => ({ to: '/o/$org/conversations/$id', params: { org: org.id, id } }) as never}
      question={feed.question}
      hasMore={feed.hasMore}
      onEnd={feed.loadMore}
      empty={empty}
    />
  )
}

function about(total: number | undefined): string {
  if (total === undefined) return 'What people and agents write to each other'
  return total === 1 ? '1 conversation' : `${total.toLocaleString()} conversations`
}

function Nothing({ begin }: { begin: () => void }) {
  const [{ open: _, tab: __, ...filters }, set] = useListSearch()
  const title = filters.unread ? 'Nothing is unread' : undefined
  if (narrowing(filters).length > 0)
    return <NothingMatches icon={MessageSquare} title={title} filters={filters} onChange={set} />
  return (
    <Empty
      icon={MessageSquare}
      title="No conversations yet"
      action={
        <Gate may="agent.interact">
          <Button look="primary" icon={Plus} onClick={begin}>
            New conversation
          </Button>
        </Gate>
      }
      command={'mutation { startConversation(orgId: …, input: { agentId: …, text: "Hello" }) { id } }'}
    >
      A conversation is between an agent and a person: here in the panel, or outside through a channel such as
      mail. Start one to see how an agent works.
    </Empty>
  )
}
