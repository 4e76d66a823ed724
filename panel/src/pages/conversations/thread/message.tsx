// One message of a thread.
import { Link } from '@tanstack/react-router'
import { AlertTriangle, Info, Mic, ShieldAlert } from 'lucide-react'
import { memo } from 'react'
import { useOrg } from '../../../app/organization'
import { contentOf } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'
import { Avatar } from '../../../ui/avatar'
import { Badge } from '../../../ui/badge'
import { cx } from '../../../ui/cx'
import { Markdown } from '../../../ui/markdown'
import { words } from '../../../ui/status'
import { Time } from '../../../ui/time'
import { Visible } from '../../../ui/visible'
import { Attachments } from './attachments'
import { Delivery } from './delivery'
import { InlineApproval } from './inline-approval'
import { TALK } from './items'
import { MessageActions } from './message-actions'
import { authorOf, type Names } from './names'
import { Fold, ToolCall } from './tool'

interface Props {
  message: MessageRecord
  result?: MessageRecord
  /** Continues the previous author's group: the name is not repeated. */
  follows: boolean
  marked: boolean
  names: Names
  /** The agent has not received it yet. */
  waits: boolean
  onQuote: (text: string) => void
}

export const Message = memo(function Message(props: Props) {
  const { message, result, follows, marked, names, waits, onQuote } = props
  const { text } = contentOf(message.content)
  return (
    <article
      data-seq={message.seq}
      data-through={result?.seq}
      data-message=""
      // Not an anchor for scrolling: loading older messages moves it into its call.
      data-loose={message.kind === 'TOOL_RESULT' || undefined}
      aria-label={`${authorOf(message, names)}, message ${message.seq}`}
      // A touch puts the focus in it, which shows its actions.
      tabIndex={-1}
      className={cx(
        'relative rounded-control outline-none px-3 sm:px-6',
        follows ? 'pt-1' : 'pt-3',
        marked && 'changed bg-selected',
      )}
    >
      <Body message={message} result={result} follows={follows} names={names} waits={waits} />
      {TALK.includes(message.kind) && text && (
        <MessageActions
          seq={message.seq}
          text={text}
          mine={message.authorUserId === names.viewer.id}
          onQuote={onQuote}
        />
      )}
    </article>
  )
})

function Body({ message, result, follows, names, waits }: Omit<Props, 'marked' | 'onQuote'>) {
  const content = contentOf(message.content)
  switch (message.kind) {
    case 'THINKING':
      return (
        <Fold summary="Thought" preview={content.text}>
          <p className="whitespace-pre-wrap text-muted">
            <Visible text={content.text} />
          </p>
        </Fold>
      )
    case 'TOOL_CALL':
      return <ToolCall call={message} result={result} />
    case 'TOOL_RESULT':
      return <ToolCall result={message} />
    case 'APPROVAL':
      return content.approvalId ? <InlineApproval id={content.approvalId} /> : <Quiet message={message} />
    case 'EVENT':
      return (
        <>
          <Quiet message={message} />
          {message.delivery && (
            <div className="mx-auto w-fit">
              <Delivery id={message.id} delivery={message.delivery} isOff={names.isChannelOff} mine={false} />
            </div>
          )}
        </>
      )
    case 'ERROR':
      return (
        <div className="flex items-start gap-2 rounded-control bg-danger-soft px-3 py-2 text-danger-text">
          <AlertTriangle size={15} aria-hidden className="mt-0.5 shrink-0" />
          <p className="min-w-0 whitespace-pre-wrap">
            <Visible text={content.text || content.code || 'Something failed.'} />
          </p>
        </div>
      )
    default:
      return <Said message={message} follows={follows} names={names} waits={waits} />
  }
}

/** A message by the agent, a member or a contact. */
function Said({ message, follows, names, waits }: Omit<Props, 'marked' | 'onQuote' | 'result'>) {
  const content = contentOf(message.content)
  const mine = message.authorUserId === names.viewer.id
  const isAgent = message.role === 'ASSISTANT' && message.authorUserId === null
  return (
    <div className={cx('flex gap-2.5', mine && 'flex-row-reverse')}>
      <span className={cx('w-6 shrink-0 max-sm:hidden', follows && 'invisible')}>
        {mine ? (
          <Avatar name={names.viewer.name} url={names.viewer.avatarUrl} />
        ) : (
          <Avatar name={authorOf(message, names)} url={isAgent ? names.agentAvatar : null} square={isAgent} />
        )}
      </span>
      <div className={cx('min-w-0', isAgent ? 'grow' : 'max-w-[min(42rem,88%)]')}>
        {!follows && (
          <div className={cx('mb-0.5 flex items-baseline gap-2 text-sm', mine && 'flex-row-reverse')}>
            <span className="min-w-0 truncate font-medium">
              <Visible text={authorOf(message, names)} />
            </span>
            {message.isUnproven && (
              <Badge
                tone="warn"
                icon={ShieldAlert}
                tip="The mail server did not verify that the mail is from this address. The agent is informed, too."
              >
                Sender not proven
              </Badge>
            )}
            <span className="shrink-0 text-xs text-faint">
              <Time at={message.createdAt} as="stamp" />
            </span>
          </div>
        )}
        <div
          className={cx(
            'min-w-0',
            !isAgent && 'w-fit max-w-full rounded-card px-3 py-2',
            !isAgent && (mine ? 'ml-auto bg-selected' : 'bg-sunken'),
          )}
        >
          {message.kind === 'VOICE' && (
            <p className="mb-1 flex items-center gap-1.5 text-xs text-muted">
              <Mic size={12} aria-hidden /> Recording
            </p>
          )}
          {content.subject && content.subject !== content.text && (
            <p className="mb-1 text-xs text-muted">
              <Visible text={content.subject} />
            </p>
          )}
          {content.text &&
            (message.kind === 'TEXT' && content.isMarkdown ? (
              <Markdown text={content.text} />
            ) : (
              <p className="whitespace-pre-wrap">
                <Visible text={content.text} />
              </p>
            ))}
          <Attachments files={message.attachments} />
        </div>
        {message.delivery ? (
          <Delivery id={message.id} delivery={message.delivery} isOff={names.isChannelOff} mine={mine} />
        ) : (
          <Reached message={message} mine={mine} waits={waits} />
        )}
      </div>
    </div>
  )
}

/** The delivery to the agent, shown only if notable. */
function Reached({ message, mine, waits }: { message: MessageRecord; mine: boolean; waits: boolean }) {
  const side = cx('mt-0.5 text-xs', mine && 'text-right')
  if (message.status === 'FAILED')
    return <p className={cx(side, 'text-danger-text')}>Not delivered to the agent</p>
  if (message.status === 'CANCELLED') return <p className={cx(side, 'text-muted')}>Withdrawn</p>
  return waits ? <p className={cx(side, 'text-muted')}>Waits for the agent</p> : null
}

function Quiet({ message }: { message: MessageRecord }) {
  const org = useOrg()
  const { text, event, conversationId } = contentOf(message.content)
  return (
    <p className="flex items-center justify-center gap-1.5 py-1 text-center text-sm text-muted">
      <Info size={13} aria-hidden className="shrink-0" />
      <span className="min-w-0">
        <Visible text={text || words(event ?? message.kind)} />
      </span>
      {conversationId && (
        <Link
          to="/o/$org/conversations/$id"
          params={{ org: org.id, id: conversationId }}
          className="link shrink-0"
        >
          Open<span className="sr-only"> the conversation</span>
        </Link>
      )}
      <span className="shrink-0 text-xs text-faint">
        <Time at={message.createdAt} as="stamp" />
      </span>
    </p>
  )
}
