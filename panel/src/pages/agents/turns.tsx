// An agent's turns: each with its cause, state, duration and cost.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ListTodo } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { conversationTitle } from '../../app/conversation-title'
import { cutWords } from '../../app/cut-words'
import { FilterMenu } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { costOf } from '../../app/spending/money'
import { useZone } from '../../ui/clock'
import { Empty } from '../../ui/empty'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Status, stateOf } from '../../ui/status'
import { type Column, Table } from '../../ui/table'
import { Duration, Time } from '../../ui/time'
import { TURN_STATES } from './search'
import { TurnPeek } from './turn-peek'
import { CAUSES, turnName } from './words'

const SIZE = 50

const TurnsQuery = graphql(`
  query AgentTurns($orgId: Id!, $agentId: Id!, $page: Int!, $limit: Int!, $state: TurnState) {
    turns(orgId: $orgId, agentId: $agentId, page: $page, limit: $limit, state: $state) {
      total
      data {
        id state isRetryable cause error conversationId firstSeq createdAt startedAt endedAt cancelRequestedAt cancelledBy cancelledWith
        inputTokens outputTokens cacheReadTokens cacheWriteTokens costMicro model agentRevision viewerCan
        conversation { id ref title contactName agent { id name } }
      }
    }
  }
`)

export type TurnRecord = NonNullable<ResultOf<typeof TurnsQuery>['turns']>['data'][number]

const COLUMNS: Column<TurnRecord>[] = [
  {
    id: 'state',
    head: 'State',
    width: '1fr',
    cell: ({ state, cause, createdAt, cancelRequestedAt, endedAt, cancelledBy, cancelledWith }) => (
      <span className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-0.5">
        <Status
          of="turn"
          value={state}
          tip={
            cutWords(cancelledBy, cancelledWith) ??
            (cancelRequestedAt && !endedAt ? 'Being cancelled' : undefined)
          }
        />
        <span className="text-sm text-muted sm:hidden">
          {CAUSES[cause]} · <Time at={createdAt} />
        </span>
      </span>
    ),
  },
  { id: 'cause', head: 'Started by', width: '8rem', from: 'sm', cell: ({ cause }) => CAUSES[cause] ?? cause },
  {
    id: 'conversation',
    head: 'Conversation',
    width: '1.4fr',
    from: 'md',
    cell: ({ conversation, conversationId }) => (
      <span className="truncate">{conversation ? conversationTitle(conversation) : conversationId}</span>
    ),
  },
  {
    id: 'started',
    head: 'When',
    width: '8rem',
    from: 'sm',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
  {
    id: 'duration',
    head: 'Duration',
    width: '5rem',
    align: 'end',
    cell: ({ startedAt, endedAt }) => <Duration from={startedAt} to={endedAt} />,
  },
  {
    id: 'tokens',
    head: 'Tokens',
    width: '6rem',
    from: 'lg',
    align: 'end',
    cell: ({ inputTokens, outputTokens }) => <Tokens input={inputTokens} output={outputTokens} />,
  },
  {
    id: 'cost',
    head: 'Cost',
    width: '7rem',
    from: 'md',
    align: 'end',
    cell: ({ costMicro }) => <Cost micro={costMicro} />,
  },
]

/** The columns that fit beside an open turn. */
const BESIDE = COLUMNS.filter(({ id }) => ['state', 'started', 'duration'].includes(id))

function Tokens({ input, output }: { input: string | null; output: string | null }) {
  if (input === null && output === null) {
    return (
      <span className="text-faint" data-tip="The agent does not count its tokens.">
        not reported
      </span>
    )
  }
  return <span className="tabular-nums">{(Number(input ?? 0) + Number(output ?? 0)).toLocaleString()}</span>
}

function Cost({ micro }: { micro: string | null }) {
  const { currency } = useOrg()
  const cost = costOf(micro, currency)
  if (cost) return <span className="tabular-nums">{cost}</span>
  return (
    <span className="text-faint" data-tip="The agent does not report its cost.">
      not reported
    </span>
  )
}

const STATES = TURN_STATES.map((value) => ({ value, label: stateOf('turn', value).word }))

export function Turns({ agentId }: { agentId: number }) {
  const { id: orgId } = useOrg()
  const search = useSearch({ from: '/inside/o/$org/agents/$id' })
  const navigate = useNavigate({ from: '/o/$org/agents/$id' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const page = search.page ?? 1
  const { timeZone } = useZone()
  const { data, error, loading, refetch } = useLive({
    query: TurnsQuery,
    variables: { orgId, agentId, page, limit: SIZE, state: search.state ?? null },
    on: ['TURN'],
  })
  const turns = data?.turns
  if (error && !turns) return <ProblemView error={error} retry={refetch} />
  if (loading || !turns) return <ListSkeleton />
  return (
    <>
      <div className="flex shrink-0 items-center gap-2 border-b border-line px-4 py-2 sm:px-6">
        <FilterMenu
          label="State"
          single
          options={STATES}
          value={search.state && [search.state]}
          onValue={(states) => set({ state: states?.[0], page: undefined, turn: undefined })}
        />
      </div>
      <WithPeek
        list={
          <>
            <Table
              label="Turns"
              items={[...turns.data]}
              idOf={idOf}
              nameOf={(turn) => `${turnName(turn, timeZone)}, ${stateOf('turn', turn.state).word}`}
              columns={search.turn ? BESIDE : COLUMNS}
              openId={search.turn}
              onOpen={({ id }) => set({ turn: id })}
              onActive={({ id }) => search.turn && set({ turn: id })}
              empty={
                search.state ? (
                  <Empty icon={ListTodo} title="No turns in this state">
                    Choose another state, or all of them.
                  </Empty>
                ) : (
                  <Empty
                    icon={ListTodo}
                    title="No turns yet"
                    command={`mutation {\n  startConversation(orgId: ${orgId}, input: { agentId: ${agentId}, text: "Hello" }) { id }\n}`}
                  >
                    A turn is one unit of an agent’s work: the messages received since the last one. Write to
                    it, and its first turn appears here.
                  </Empty>
                )
              }
            />
            <Pager page={page} size={SIZE} total={turns.total} onPage={(next) => set({ page: next })} />
          </>
        }
        peek={
          search.turn && (
            <TurnPeek
              key={search.turn}
              id={search.turn}
              turn={turns.data.find(({ id }) => id === search.turn)}
              onClose={() => set({ turn: undefined })}
            />
          )
        }
      />
    </>
  )
}

const idOf = ({ id }: TurnRecord) => id
