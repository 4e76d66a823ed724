// One conversation: its messages, live output, the agent's activity, and the composer.
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useEffect, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { listen } from '../../api/listen'
import { useLive } from '../../api/use-live'
import { draftOf, saveDraft } from '../../app/drafts'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { runNamed } from '../../keys/registry'
import { useActions } from '../../keys/use-actions'
import { useRefused } from '../../permissions/gate'
import { PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { Skeleton } from '../../ui/skeleton'
import { FindBar } from './find'
import { ConversationHeader } from './header'
import { ConversationQuery, type ConversationRecord } from './record'
import { AgentDown } from './thread/agent-down'
import { Composer } from './thread/composer'
import { draftPlace } from './thread/outbox'
import { quoted } from './thread/quote'
import { addressee, TakeOver } from './thread/take-over'
import { ThreadView } from './thread/thread'
import type { Upload } from './thread/uploads'
import { WorkLine } from './thread/work-line'

const SidePanel = lazyPart(() => import('./side-panel'), 'SidePanel')

const route = getRouteApi('/inside/o/$org/conversations/$id')

const TurnChanged = graphql(`
  subscription ConversationTurnChanged($orgId: Id!, $conversationId: Id!) {
    turnChanged(orgId: $orgId, conversationId: $conversationId) { id state startedAt }
  }
`)

export function ConversationPage() {
  const org = useOrg()
  const client = useClient()
  const { id } = route.useParams()
  const { data, error, refetch } = useLive({
    query: ConversationQuery,
    variables: { orgId: org.id, id },
    on: (change) =>
      (change.kind === 'CONVERSATION' && change.id === id) ||
      change.kind === 'AGENT' ||
      change.kind === 'CHANNEL',
  })
  // A subscription for this conversation only, so that the agent's activity shows at once.
  useEffect(
    () => listen(client, TurnChanged, { orgId: org.id, conversationId: id }, refetch),
    [client, org.id, id, refetch],
  )
  const conversation = data?.conversation
  if (conversation) return <Loaded conversation={conversation} />
  return (
    <>
      <PageHeader title="Conversation" />
      {error ? (
        <ProblemView error={error} retry={refetch} />
      ) : (
        <div className="space-y-4 p-6">
          <Skeleton className="w-1/2" />
          <Skeleton className="h-20" />
        </div>
      )}
    </>
  )
}

function Loaded({ conversation }: { conversation: ConversationRecord }) {
  const org = useOrg()
  const { user } = useViewer()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const [finding, find] = useState(search.q !== undefined)
  const [edits, setEdits] = useState(0)
  const [files, setFiles] = useState<Upload[]>([])
  const { panel, seq, q } = search
  const onPanel = (next: 'details' | 'turns' | undefined) =>
    void navigate({ search: (before) => ({ ...before, panel: next }), replace: true, resetScroll: false })
  const onQ = useCallback(
    (next: string) =>
      void navigate({
        search: (before) => ({ ...before, q: next || undefined }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  )
  const place = draftPlace(conversation.id)
  const refused = useRefused('agent.interact', conversation)
  const onQuote = useCallback(
    (text: string) => {
      if (refused) return refused()
      saveDraft(org.id, place, quoted(draftOf(org.id, place), text))
      setEdits((before) => before + 1)
    },
    [org.id, place, refused],
  )
  // Later than the page, and before the service may be down.
  useEffect(() => void SidePanel.preload(), [])
  // The composer restarts with the changed draft.
  useEffect(() => {
    if (edits > 0) runNamed('conversation.write')
  }, [edits])
  const closeFind = () => {
    find(false)
    onQ('')
  }
  const group = 'Conversation'
  useActions([
    { id: 'conversation.find', label: 'Find in this conversation', group, keys: '/', run: () => find(true) },
    {
      id: 'conversation.details',
      label: panel ? 'Hide the details' : 'Show the details',
      group,
      keys: 'i',
      run: () => onPanel(panel ? undefined : 'details'),
    },
  ])
  const { takenOverBy, takenOverByName, status } = conversation
  const heldByOther = takenOverBy !== null && takenOverBy !== user.id
  return (
    <div className="flex min-h-0 grow overflow-x-clip">
      <div className="flex min-h-0 min-w-0 grow flex-col">
        <ConversationHeader
          conversation={conversation}
          panel={panel}
          onPanel={onPanel}
          onFind={() => find(true)}
        />
        <TakeOver conversation={conversation} />
        <AgentDown conversation={conversation} />
        {finding && (
          <FindBar conversation={conversation} q={q ?? ''} at={seq} onQ={onQ} onClose={closeFind} />
        )}
        <ThreadView
          conversation={conversation}
          onEdit={(message) => {
            setFiles((before) => [...before, ...message.files])
            setEdits(edits + 1)
          }}
          onQuote={onQuote}
        />
        <WorkLine conversation={conversation} />
        <Composer
          key={edits}
          files={files}
          onFiles={setFiles}
          conversation={conversation}
          to={addressee(conversation, user.id)}
          closed={
            status === 'ARCHIVED'
              ? 'This conversation is archived. Reopen it to write.'
              : heldByOther
                ? `${takenOverByName ?? 'Someone'} answers here. Take over to write yourself.`
                : undefined
          }
        />
      </div>
      {panel && <SidePanel conversation={conversation} panel={panel} onClose={() => onPanel(undefined)} />}
    </div>
  )
}
