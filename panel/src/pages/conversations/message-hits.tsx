// Messages that contain the words, across all conversations, newest first; each links to its place.
import { SearchX } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useFeed } from '../../api/use-feed'
import { useOrg } from '../../app/organization'
import { Empty } from '../../ui/empty'
import { List } from '../../ui/list'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { Snippet } from './snippet'

const Said = graphql(`
  query FindMessages($orgId: Id!, $q: String!, $agentId: Id, $after: String, $limit: Int) {
    findMessages(orgId: $orgId, q: $q, agentId: $agentId, after: $after, limit: $limit) {
      data {
        conversationId ref title agentId agentName
        hit { id seq kind createdAt snippet ranges }
      }
      next
    }
  }
`)

type Found = NonNullable<ResultOf<typeof Said>['findMessages']>['data'][number]

const idOf = ({ hit }: Found) => hit.id
const pageOf = (data: ResultOf<typeof Said>) => data.findMessages
const titleOf = ({ title, ref }: Found) => title ?? `#${ref}`

export function MessageHits({ q, agent }: { q: string; agent: number | undefined }) {
  const org = useOrg()
  const feed = useFeed({
    query: Said,
    variables: { orgId: org.id, q, agentId: agent ?? null },
    pageOf,
    idOf,
    // Results stay fixed while someone reads them; they reload only after a lost connection.
    on: [],
  })
  if (feed.error && feed.items.length === 0) return <ProblemView error={feed.error} retry={feed.refetch} />
  if (feed.loading) return <ListSkeleton />
  return (
    <List
      label="Messages"
      items={feed.items}
      idOf={idOf}
      nameOf={(found) => `${titleOf(found)}: ${found.hit.snippet}`}
      rowHeight={65}
      row={(found) => <Row found={found} />}
      linkOf={({ conversationId, hit }) =>
        ({
          to: '/o/$org/conversations/$id',
          params: { org: org.id, id: conversationId },
          search: { seq: hit.seq, q },
        }) as never
      }
      question={feed.question}
      hasMore={feed.hasMore}
      onEnd={feed.loadMore}
      empty={
        <Empty icon={SearchX} title="Nothing matches">
          No message contains all of these words. Only whole words are found: try fewer, or other ones.
        </Empty>
      }
    />
  )
}

function Row({ found }: { found: Found }) {
  const { agentName, hit } = found
  return (
    <div role="gridcell" tabIndex={-1} className="flex min-h-16 items-center gap-3 px-4 py-2 sm:px-6">
      <div className="min-w-0 grow">
        <div className="flex min-w-0 items-baseline gap-2">
          <span className="min-w-0 truncate font-medium">
            <Visible text={titleOf(found)} />
          </span>
          <span className="hidden min-w-0 shrink-[2] truncate text-xs text-muted sm:inline">
            <Visible text={agentName} />
          </span>
        </div>
        <p className="truncate text-sm text-muted">
          <Snippet hit={hit} />
        </p>
      </div>
      <span className="shrink-0 text-xs text-muted">
        <Time at={hit.createdAt} as="short" />
      </span>
    </div>
  )
}
