// A conversation in the list: the contact, the last message, pending items.
import { Hand, ShieldQuestion } from 'lucide-react'
import { withoutCode } from '../../app/conversation-title'
import { Avatar } from '../../ui/avatar'
import { Badge } from '../../ui/badge'
import { Count } from '../../ui/count'
import { cx } from '../../ui/cx'
import { useFade } from '../../ui/fade'
import { Status, words } from '../../ui/status'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { type ConversationRowRecord, nameOf } from './record'

/** Labels for messages without text. */
const KINDS: Record<string, string> = {
  APPROVAL: 'Asks for a decision',
  TOOL_CALL: 'Calls a tool',
  TOOL_RESULT: 'Has a tool’s result',
  THINKING: 'Thinks',
}
const WHO: Record<string, string> = { ASSISTANT: '', USER: '', SYSTEM: '', TOOL: 'Tool: ' }

export function ConversationRowView({ conversation }: { conversation: ConversationRowRecord }) {
  const { agent, lastMessage, pendingApprovals, takenOverBy, takenOverByName, openTurns, status } =
    conversation
  const unread = conversation.unread ?? 0
  const [said, state] = [useFade<HTMLParagraphElement>(), useFade<HTMLSpanElement>()]
  const working = openTurns.find(({ state }) => state === 'RUNNING')
  const where = [
    agent?.name,
    conversation.channelName ??
      (conversation.transport === 'INTERNAL' ? null : words(conversation.transport)),
  ]
    .filter(Boolean)
    .join(' · ')
  return (
    <div role="gridcell" tabIndex={-1} className="flex min-h-16 items-center gap-3 px-4 py-2 sm:px-6">
      <Avatar name={agent?.name ?? '?'} url={agent?.avatarUrl} square />
      <div className="min-w-0 grow">
        <div className="flex min-w-0 items-baseline gap-2">
          <span className={cx('min-w-0 truncate', unread > 0 ? 'font-semibold' : 'font-medium')}>
            <Visible text={nameOf(conversation)} />
          </span>
          <span className="hidden min-w-0 shrink-[2] truncate text-xs text-muted sm:inline">
            <Visible text={where} />
          </span>
        </div>
        <p
          ref={said}
          className={cx('truncate rounded-control text-sm', unread > 0 ? 'text-ink' : 'text-muted')}
        >
          {lastMessage ? (
            <>
              {WHO[lastMessage.role]}
              <Visible
                text={
                  withoutCode(lastMessage.kind, lastMessage.preview ?? '') ||
                  KINDS[lastMessage.kind] ||
                  words(lastMessage.kind)
                }
              />
            </>
          ) : (
            'Nothing has been said yet'
          )}
        </p>
      </div>
      <div className="flex shrink-0 flex-col items-end gap-1 text-xs text-muted">
        <Time at={lastMessage?.createdAt ?? conversation.lastActivityAt} as="short" />
        <span ref={state} className="flex items-center gap-1.5 rounded-control">
          {takenOverBy !== null && (
            <Badge
              tone="warn"
              icon={Hand}
              tip={`${takenOverByName ?? 'Someone'} answers instead of the agent`}
            >
              <span className="max-w-24 truncate">{takenOverByName ?? 'Taken over'}</span>
            </Badge>
          )}
          {pendingApprovals > 0 && (
            <Badge tone="warn" icon={ShieldQuestion} tip="The agent waits for a decision">
              <span className="max-sm:sr-only">Needs a decision</span>
              <span aria-hidden className="sm:hidden">
                {pendingApprovals}
              </span>
            </Badge>
          )}
          {working && pendingApprovals === 0 && <Status of="turn" value="RUNNING" />}
          {(status === 'RESOLVED' || status === 'ARCHIVED') && <Status of="conversation" value={status} />}
          <Count value={unread} label="unread" />
        </span>
      </div>
    </div>
  )
}
