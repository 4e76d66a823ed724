// The messages around an agent's request: enough context to see the reason.
import { Link } from '@tanstack/react-router'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { lineOf } from '../../app/thread/content'
import { cx } from '../../ui/cx'
import { Skeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'

const Around = graphql(`
  query AroundApproval($orgId: Id!, $conversationId: Id!, $aroundSeq: Int!) {
    messages(orgId: $orgId, conversationId: $conversationId, aroundSeq: $aroundSeq, limit: 8) {
      data { id seq role kind content authorName createdAt }
    }
  }
`)

export function ConversationAround({ conversationId, seq }: { conversationId: number; seq: number }) {
  const org = useOrg()
  const allowed = org.can('agent.output.view')
  const { data, loading, error } = useLive({
    query: Around,
    variables: { orgId: org.id, conversationId, aroundSeq: seq },
    on: ({ kind }) => kind === 'MESSAGE',
    pause: !allowed,
  })
  const messages = data?.messages?.data ?? []
  return (
    <section aria-label="The conversation around it">
      <div className="mb-1.5 flex items-center justify-between gap-2">
        <h4 className="text-sm font-medium">The conversation around it</h4>
        <Link
          to="/o/$org/conversations/$id"
          params={{ org: org.id, id: conversationId }}
          search={{ seq }}
          className="text-sm text-accent-text hover:underline"
        >
          Open it here
        </Link>
      </div>
      {!allowed && <p className="text-muted">Your role does not show what agents and people say.</p>}
      {error && <p className="text-muted">It could not be read.</p>}
      {loading && allowed && <Skeleton className="h-24" />}
      <ol className="divide-y divide-line rounded-control border border-line empty:hidden">
        {messages.map((message) => (
          <li
            key={message.id}
            className={cx(
              'px-3 py-2 text-sm',
              message.seq === seq && 'border-l-3 border-l-accent bg-selected',
            )}
          >
            <div className="flex justify-between gap-2 text-xs text-muted">
              <span className="min-w-0 truncate">
                <Visible text={message.authorName ?? roleWords(message.role)} />
              </span>
              <Time at={message.createdAt} as="stamp" />
            </div>
            <p className={cx('line-clamp-3', message.kind !== 'TEXT' && 'text-muted')}>
              <Visible text={lineOf(message.kind, message.content)} />
            </p>
          </li>
        ))}
      </ol>
    </section>
  )
}

function roleWords(role: string): string {
  return { ASSISTANT: 'The agent', SYSTEM: 'Muster', TOOL: 'Tool' }[role] ?? 'Someone'
}
