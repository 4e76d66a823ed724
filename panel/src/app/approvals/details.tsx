// The subject of an approval: the exact input, with hidden characters revealed, and what each answer means.
import { Link } from '@tanstack/react-router'
import { Ban } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { Badge } from '../../ui/badge'
import { Copy } from '../../ui/copy'
import { JsonTree } from '../../ui/json-tree'
import { Notice } from '../../ui/notice'
import { Fact, Facts } from '../../ui/panel'
import { Status } from '../../ui/status'
import { Countdown, Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { hiddenCount } from '../../ui/visible-text'
import { conversationTitle } from '../conversation-title'
import { useOrg } from '../organization'
import type { ApprovalRecord } from './fields'
import { levelOf } from './level'
import { aboutOf, categoryWords, KINDS, riskWords, textsIn } from './words'

/** `withTitle`: below a heading that may cut it. */
export function ApprovalHead({ approval, withTitle }: { approval: ApprovalRecord; withTitle?: boolean }) {
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center gap-2">
        <Status of="approval" value={approval.outcome ?? approval.status} />
        <Status of="severity" value={levelOf(approval)} tip={riskWords(approval)} />
        <Badge>{KINDS[approval.kind].name}</Badge>
      </div>
      {withTitle && (
        <h3 className="text-lg font-semibold">
          <Visible text={approval.title} />
        </h3>
      )}
      <p className="text-muted">{aboutOf(approval)}</p>
    </div>
  )
}

/** The input that would run, or the question. */
export function ApprovalSubject({ approval }: { approval: ApprovalRecord }) {
  const { request, question, body } = approval
  const shown = [
    // The title repeats the question's first line.
    question?.text ?? approval.title,
    ...(question?.options ?? []).flatMap(({ label, description }) => [label, description ?? '']),
    body ?? '',
    request?.tool ?? '',
    ...textsIn(request?.input ?? null),
  ]
  const hidden = shown.reduce((count, text) => count + hiddenCount(text), 0)
  return (
    <div className="space-y-4">
      {hidden > 0 && (
        <Notice tone="warn">
          {hidden === 1 ? 'One hidden character stands' : `${hidden} hidden characters stand`} in this text
          and
          {hidden === 1 ? ' is' : ' are'} marked. Such characters can make a text look like another one.
        </Notice>
      )}
      {question?.text && question.text !== approval.title && (
        <p className="whitespace-pre-wrap">
          <Visible text={question.text} />
        </p>
      )}
      {body &&
        body.trim() !== (question?.text ?? approval.title).trim() &&
        body.trim() !== approval.title.trim() && (
          <p className="whitespace-pre-wrap">
            <Visible text={body} />
          </p>
        )}
      {request && (
        <section aria-label="What would run" className="space-y-2">
          <h4 className="text-sm font-medium">What would run</h4>
          {request.tool && (
            <p className="rounded-control border border-line bg-sunken px-3 py-2 font-mono text-sm">
              <Visible text={request.tool} />
            </p>
          )}
          {request.input === null ? (
            <p className="text-muted">It has no input.</p>
          ) : (
            <JsonTree value={request.input} label="Input" />
          )}
        </section>
      )}
    </div>
  )
}

/** Tells inputs apart that look the same, because their secrets are hidden. */
export function InputDigest({ digest }: { digest: string }) {
  return (
    <div className="flex items-center gap-2 text-xs text-muted">
      <span className="min-w-0">
        SHA-256 of the whole input, secrets included: <code className="font-mono break-all">{digest}</code>
      </span>
      <Copy text={digest} label="Copy the digest" />
    </div>
  )
}

/** The agent, the time and the risk. */
export function ApprovalFacts({ approval }: { approval: ApprovalRecord }) {
  const org = useOrg()
  const { agent, conversationId, messageSeq, expiresAt, status } = approval
  return (
    <Facts>
      {agent && (
        <Fact name="Agent">
          <Link
            to="/o/$org/agents/$id"
            params={{ org: org.id, id: agent.id }}
            className="text-accent-text hover:underline"
          >
            <Visible text={agent.name} />
          </Link>
        </Fact>
      )}
      {approval.risk !== null && <Fact name="Risk">{`${approval.risk} of 100`}</Fact>}
      {approval.category && <Fact name="Category">{categoryWords(approval.category)}</Fact>}
      <Fact name="Raised">
        <Time at={approval.createdAt} />
      </Fact>
      {status === 'PENDING' && (
        <Fact name="Expires">
          {expiresAt ? <Countdown to={expiresAt} over="now" /> : <span className="text-muted">never</span>}
        </Fact>
      )}
      {conversationId && (
        <Fact name="Conversation">
          <ConversationLink approval={approval} id={conversationId} seq={messageSeq} />
        </Fact>
      )}
      {approval.channelId && (
        <Fact name="Channel">
          <Link
            to="/o/$org/channels"
            params={{ org: org.id }}
            search={{ peek: approval.channelId }}
            className="text-accent-text hover:underline"
          >
            Show the channel
          </Link>
        </Fact>
      )}
      {approval.serverId && (
        <Fact name="Server">
          <Link
            to="/o/$org/servers/$id"
            params={{ org: org.id, id: approval.serverId }}
            className="text-accent-text hover:underline"
          >
            Show the server
          </Link>
        </Fact>
      )}
    </Facts>
  )
}

const NameQuery = graphql(`
  query ConversationName($orgId: Id!, $id: Id!) {
    conversation(orgId: $orgId, id: $id) { id ref title contactName agent { id name } }
  }
`)

function ConversationLink({
  approval,
  id,
  seq,
}: {
  approval: ApprovalRecord
  id: number
  seq: number | null
}) {
  const org = useOrg()
  const { data } = useLive({
    query: NameQuery,
    variables: { orgId: org.id, id },
    on: (change) => change.kind === 'CONVERSATION' && change.id === id,
    pause: !org.can('conversation.view'),
  })
  const { agent, conversationRef: ref } = approval
  return (
    <Link
      to="/o/$org/conversations/$id"
      params={{ org: org.id, id }}
      search={seq ? { seq } : {}}
      className="text-accent-text hover:underline"
    >
      <Visible text={conversationTitle(data?.conversation ?? { agent, ref })} />
    </Link>
  )
}

export function AnswerMeanings({ approval }: { approval: ApprovalRecord }) {
  return (
    <section className="rounded-control bg-sunken px-3 py-2.5 text-sm text-muted">
      <h4 className="mb-0.5 flex items-center gap-1.5 font-medium text-ink">
        <Ban size={13} aria-hidden /> Final: a decision can’t be undone
      </h4>
      {KINDS[approval.kind].meaning}
      {approval.expiresAt &&
        (approval.kind === 'COST_GUARD'
          ? ' Without a decision it ends when there is something to spend again.'
          : ' Without a decision it expires, and the agent is notified.')}
    </section>
  )
}
