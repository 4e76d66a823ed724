// Channels: how people outside the panel reach agents. Listed by agent, each with its state.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Hash, Plus } from 'lucide-react'
import { lazy, Suspense } from 'react'
import { fetched } from '../../api/chunk'
import { graphql, type ResultOf } from '../../api/graphql'
import { useFeed } from '../../api/use-feed'
import { AgentFilter, Chip, FilterBar } from '../../app/filters'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { GatedForm, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { ChannelState } from './state'
import { DIRECTIONS, labelOf, transportName } from './transports'

const ChannelsQuery = graphql(`
  query Channels($orgId: Id!, $after: String, $limit: Int, $agentId: Id, $search: String, $active: Boolean) {
    channelFeed(orgId: $orgId, after: $after, limit: $limit, agentId: $agentId, search: $search, active: $active) {
      next
      data {
        id name transport scope direction target isActive inactiveReason lastActivityAt link { state cause since }
        agent { id name }
      }
    }
  }
`)

type Row = NonNullable<ResultOf<typeof ChannelsQuery>['channelFeed']>['data'][number]

const ChannelPeek = lazyPart(() => import('./channel-peek'), 'ChannelPeek')
void ChannelPeek.preload()
const CreateChannel = lazy(() =>
  fetched(async () => ({ default: (await import('./create-channel')).CreateChannel })),
)

const COLUMNS: Column<Row>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '1.6fr',
    cell: ({ name, target, scope }) => (
      <span className="min-w-0">
        <span className="flex items-center gap-2">
          <span className="truncate font-medium">
            <Visible text={name} />
          </span>
          {scope === 'INTERNAL' && <Badge>For members</Badge>}
        </span>
        {target && (
          <span className="block truncate text-sm text-muted">
            <Visible text={target} />
          </span>
        )}
      </span>
    ),
  },
  {
    id: 'agent',
    head: 'Agent',
    width: '1fr',
    from: 'sm',
    cell: ({ agent }) => (
      <span className="truncate">{agent ? <Visible text={agent.name} /> : 'Deleted'}</span>
    ),
  },
  {
    id: 'transport',
    head: 'Transport',
    width: '7rem',
    from: 'md',
    cell: ({ transport }) => transportName(transport),
  },
  {
    id: 'direction',
    head: 'Direction',
    width: '9.5rem',
    from: 'lg',
    cell: ({ direction }) => labelOf(DIRECTIONS, direction),
  },
  { id: 'state', head: 'State', width: '9rem', cell: (channel) => <ChannelState {...channel} /> },
  {
    id: 'last',
    head: 'Last message',
    width: '7.5rem',
    from: 'md',
    cell: ({ lastActivityAt }) => <Time at={lastActivityAt} />,
  },
]

export function ChannelsPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/channels' })
  const navigate = useNavigate({ from: '/o/$org/channels' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const filters = { q: search.q, agent: search.agent, inactive: search.inactive }
  const feed = useFeed({
    query: ChannelsQuery,
    variables: {
      orgId: org.id,
      agentId: search.agent ?? null,
      search: search.q ?? null,
      active: search.inactive ? false : null,
    },
    pageOf,
    idOf,
    on: ['CHANNEL', 'AGENT'],
  })
  const make = {
    id: 'channels.new',
    label: 'New channel',
    group: 'Channels',
    keys: 'c',
    also: 'create',
    refused: useRefused('agent.edit'),
    run: () => set({ open: 'new' }),
  }
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  const close = () => set({ open: undefined })
  const narrowed = Boolean(search.q || search.agent || search.inactive)
  return (
    <>
      <PageHeader
        title="Channels"
        doc="channels/README.md"
        about="How people outside the panel reach agents."
        actions={create}
      >
        <FilterBar filters={filters} onChange={set} search="Search channels">
          <AgentFilter value={search.agent} onValue={(agent) => set({ agent })} />
          <Chip
            on={search.inactive ?? false}
            onToggle={() => set({ inactive: search.inactive ? undefined : true })}
          >
            Inactive
          </Chip>
        </FilterBar>
      </PageHeader>
      {feed.error && feed.items.length === 0 ? (
        <ProblemView error={feed.error} retry={feed.refetch} />
      ) : feed.loading ? (
        <ListSkeleton />
      ) : (
        <WithPeek
          list={
            <Table
              label="Channels"
              items={feed.items}
              idOf={idOf}
              nameOf={nameOf}
              columns={COLUMNS}
              openId={search.peek}
              onOpen={({ id }) => set({ peek: id })}
              onActive={({ id }) => search.peek && set({ peek: id })}
              onEnd={feed.loadMore}
              hasMore={feed.hasMore}
              empty={
                narrowed ? (
                  <Empty
                    icon={Hash}
                    title="No channel matches"
                    action={
                      <Button onClick={() => set({ q: undefined, agent: undefined, inactive: undefined })}>
                        Show all channels
                      </Button>
                    }
                  />
                ) : (
                  <Empty
                    icon={Hash}
                    title="No channels yet"
                    action={create}
                    command={`curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\\n  -d '{"name": "support", "agent_id": 1, "transport": "TELEGRAM", "bot_token": "…"}' \\\n  ${location.origin}/v1/org/${org.id}/channel`}
                  >
                    A channel connects an agent to a bot in Telegram, Discord or Slack, a mailbox, a code
                    host, a calendar, a shared drive or a webhook. What people write there becomes a
                    conversation here, and the answers go back to them.
                  </Empty>
                )
              }
            />
          }
          peek={
            search.peek && (
              <ChannelPeek key={search.peek} id={search.peek} onClose={() => set({ peek: undefined })} />
            )
          }
        />
      )}
      {search.open === 'new' && (
        <GatedForm may="agent.edit" onClose={close}>
          <Suspense>
            <CreateChannel
              onClose={close}
              onCreated={(id) =>
                set({ open: undefined, peek: id, q: undefined, agent: undefined, inactive: undefined })
              }
            />
          </Suspense>
        </GatedForm>
      )}
    </>
  )
}

const pageOf = (data: ResultOf<typeof ChannelsQuery>) => data.channelFeed
const idOf = ({ id }: Row) => id
const nameOf = ({ name, agent }: Row) => `${name}, ${agent?.name ?? 'deleted agent'}`
