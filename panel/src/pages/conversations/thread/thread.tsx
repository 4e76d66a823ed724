// The messages: the loaded part, streams, and pending ones. The reading position never moves by itself.
import { useLocation } from '@tanstack/react-router'
import { ArrowDown, MessageSquare } from 'lucide-react'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useOrg } from '../../../app/organization'
import { useViewer } from '../../../app/viewer'
import { useActions } from '../../../keys/use-actions'
import { Button } from '../../../ui/button'
import { useZone } from '../../../ui/clock'
import { Empty } from '../../../ui/empty'
import { ProblemView } from '../../../ui/problem'
import { Skeleton } from '../../../ui/skeleton'
import type { ConversationRecord } from '../record'
import { isOff } from './delivery-words'
import { itemsOf } from './items'
import { Message } from './message'
import type { Names } from './names'
import { onSent, type Pending, usePending } from './outbox'
import { PendingMessages } from './pending'
import { retryableTurn } from './retry'
import { RetryTurn } from './retry-turn'
import { type Position, positionOf, savePosition } from './scroll-positions'
import { Streaming } from './streaming'
import { useArrivals } from './use-arrivals'
import { useReading } from './use-reading'
import { useScroll } from './use-scroll'
import { useStreams } from './use-streams'
import { useThread } from './use-thread'
import { begunTurns, isWaiting } from './waits'
import { EMPTY, lastSeq } from './window'

interface Props {
  conversation: ConversationRecord
  /** Moves a message back into the composer. */
  onEdit: (message: Pending) => void
  /** Quotes a text in the composer. Stable. */
  onQuote: (text: string) => void
}

export function ThreadView({ conversation, onEdit, onQuote }: Props) {
  const org = useOrg()
  const { user } = useViewer()
  const { timeZone } = useZone()
  // The history entry and the message in its address, from one source: they change together.
  const entry = useLocation({
    select: ({ state, search }) =>
      `${state.__TSR_key ?? state.key ?? ''} ${(search as { seq?: unknown }).seq ?? ''}`,
  })
  const seq = Number(entry.split(' ')[1]) || undefined
  const thread = useThread(org.id, conversation.id, conversation.lastSeq)
  const { window: shown, newest } = thread
  const pending = usePending(org.id, conversation.id)
  const isWorking = conversation.openTurns.length > 0
  const streams = useStreams(org.id, conversation.id, shown.messages, isWorking)
  const [marked, mark] = useState<number | null>(null)
  // Where the unread messages started on opening.
  const [newFrom] = useState(() => (conversation.unread ? (conversation.readSeq ?? 0) + 1 : null))
  const seen = useRef(conversation.unread ? (conversation.readSeq ?? 0) : conversation.lastSeq)
  const reading = useRef<() => void>(() => {})
  const scroll = useScroll({
    hasAfter: shown.hasAfter,
    onNearTop: thread.older,
    onNearBottom: thread.newer,
    onMoved: () => reading.current(),
  })
  const look = useReading(org.id, conversation.id, conversation.readSeq, scroll.lastInView)
  reading.current = look

  useOpening({ entry, seq, newFrom, thread, scroll, mark })
  useEffect(
    () => onSent((message, id) => id === conversation.id && thread.sent(message)),
    [conversation.id, thread.sent],
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: new messages may be in view
  useEffect(look, [shown.messages, look])

  const dayOf = useCallback(
    (at: string) => new Intl.DateTimeFormat(undefined, { timeZone, dateStyle: 'full' }).format(new Date(at)),
    [timeZone],
  )
  const items = useMemo(() => itemsOf(shown.messages, newFrom, dayOf), [shown.messages, newFrom, dayOf])
  const names = useMemo<Names>(
    () => ({
      agent: conversation.agent?.name ?? 'The agent',
      agentAvatar: conversation.agent?.avatarUrl ?? null,
      isChannelOff: isOff(conversation.channel),
      viewer: user,
    }),
    [conversation.agent, conversation.channel, user],
  )
  const begun = useMemo(
    () => begunTurns(shown.messages, conversation.openTurns),
    [shown.messages, conversation.openTurns],
  )
  // Nothing to retry while messages follow, or are on their way.
  const failed = isWorking || shown.hasAfter || pending.length > 0 ? null : retryableTurn(shown.messages)
  const arrivals = useArrivals(thread, conversation.lastSeq, scroll.isAtEnd, names)
  if (scroll.isAtEnd && !shown.hasAfter) seen.current = Math.max(seen.current, lastSeq(shown))
  const unseen = Math.max(0, Math.max(newest, conversation.lastSeq) - seen.current)
  const toNewest = async () => {
    await thread.go()
    scroll.toEnd()
  }
  // The user's own new message scrolls into view.
  const last = useRef(toNewest)
  last.current = toNewest
  const count = useRef(pending.length)
  useEffect(() => {
    if (pending.length > count.current) void last.current()
    count.current = pending.length
  }, [pending.length])
  useActions([
    {
      id: 'conversation.newest',
      label: 'Go to the newest message',
      group: 'Conversation',
      keys: ['shift+g', 'end'],
      run: () => void toNewest(),
    },
  ])
  if (thread.error && shown === EMPTY)
    return <ProblemView error={thread.error} retry={() => void thread.go(seq)} />
  return (
    <div className="relative flex min-h-0 grow flex-col">
      <div
        ref={scroll.scroller}
        tabIndex={0}
        role="log"
        aria-label="Messages"
        aria-live="off"
        onScroll={scroll.onScroll}
        className="min-h-0 grow overflow-y-auto overscroll-contain outline-offset-[-2px] [overflow-anchor:none]"
      >
        <div ref={scroll.content} className="max-w-4xl pt-2 pb-5">
          {thread.loading ? (
            <ThreadSkeleton />
          ) : (
            shown.messages.length === 0 && pending.length === 0 && streams.size === 0 && <NothingSaid />
          )}
          {shown.hasBefore && <p className="py-3 text-center text-xs text-faint">Older messages…</p>}
          {items.map((item) =>
            item.is === 'day' ? (
              <Line key={item.key}>{dayOf(item.at)}</Line>
            ) : item.is === 'new' ? (
              <Line key={item.key} isNew>
                New
              </Line>
            ) : (
              <Message
                key={item.key}
                message={item.message}
                result={item.result}
                follows={item.follows}
                marked={marked === item.message.seq || (marked !== null && marked === item.result?.seq)}
                names={names}
                waits={streams.size === 0 && isWaiting(item.message, begun)}
                onQuote={onQuote}
              />
            ),
          )}
          {!shown.hasAfter && <Streaming streams={streams} agent={names.agent} />}
          {failed && <RetryTurn conversation={conversation} turn={failed} />}
          {!shown.hasAfter && <PendingMessages messages={pending} onEdit={onEdit} />}
        </div>
      </div>
      {(!scroll.isAtEnd || shown.hasAfter) && !thread.loading && (
        <div className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center">
          <Button
            size="sm"
            look={unseen > 0 ? 'primary' : 'secondary'}
            icon={ArrowDown}
            keys="shift+g"
            className="arrive pointer-events-auto rounded-full shadow-raised"
            onClick={() => void toNewest()}
          >
            {unseen > 0 ? `${unseen} new` : 'Newest'}
          </Button>
        </div>
      )}
      <span role="status" className="sr-only">
        {unseen > 0 && !scroll.isAtEnd && `${unseen} new ${unseen === 1 ? 'message' : 'messages'} below`}
      </span>
      {arrivals}
    </div>
  )
}

interface Opening {
  entry: string
  seq: number | undefined
  newFrom: number | null
  thread: ReturnType<typeof useThread>
  scroll: ReturnType<typeof useScroll>
  mark: (seq: number | null) => void
}

/** The opening position: the address's message, the last position, the first unread message, or the end. */
function useOpening({ entry, seq, newFrom, thread, scroll, mark }: Opening): void {
  const { go } = thread
  const { show, toEnd, place, onScroll } = scroll
  const target = useRef<{ seq: number; offset?: number; mark: boolean } | null>(null)
  /** Scrolls to the message as soon as it is rendered. */
  const apply = useCallback(() => {
    const wanted = target.current
    const row = wanted && rowOf(wanted.seq)
    if (!wanted || !row) return
    target.current = null
    show(row, wanted.offset)
    onScroll()
    if (!wanted.mark) return
    mark(wanted.seq)
    setTimeout(() => mark(null), 3_000)
  }, [show, onScroll, mark])
  useEffect(() => {
    const before = positionOf(entry)
    const wanted = wantedOf(before, seq, newFrom)
    let isOpen = false
    let isGone = false
    const open = async () => {
      target.current = wanted
      if (wanted) show(wanted.seq, wanted.offset)
      await go(wanted?.seq)
      if (isGone) return
      isOpen = true
      if (wanted) apply()
      else toEnd()
    }
    void open()
    return () => {
      isGone = true
      if (isOpen) savePosition(entry, place())
    }
  }, [entry, seq, newFrom, go, place, show, toEnd, apply])
  useLayoutEffect(apply)
}

function wantedOf(before: Position | undefined, seq: number | undefined, newFrom: number | null) {
  if (before) return before.seq === null ? null : { seq: before.seq, offset: before.offset, mark: false }
  if (seq) return { seq, mark: true }
  return newFrom !== null && newFrom > 1 ? { seq: newFrom, offset: 120, mark: false } : null
}

/** The row of a message: a tool result is inside its call's row. */
function rowOf(seq: number): number | null {
  const row =
    document.querySelector<HTMLElement>(`[data-message][data-seq="${seq}"]`) ??
    document.querySelector<HTMLElement>(`[data-message][data-through="${seq}"]`)
  return row ? Number(row.dataset.seq) : null
}

function Line({ isNew, children }: { isNew?: boolean; children: string }) {
  return (
    <div className="flex items-center gap-3 px-4 pt-4 pb-1 sm:px-6">
      <span aria-hidden className={`h-px grow ${isNew ? 'bg-accent' : 'bg-line'}`} />
      <span className={`text-xs ${isNew ? 'font-medium text-accent-text' : 'text-muted'}`}>{children}</span>
      <span aria-hidden className={`h-px grow ${isNew ? 'bg-accent' : 'bg-line'}`} />
    </div>
  )
}

function ThreadSkeleton() {
  return (
    <div role="status" className="space-y-5 px-6 py-6">
      <span className="sr-only">Loading…</span>
      <Skeleton className="w-2/5" />
      <Skeleton className="ml-auto w-1/3" />
      <Skeleton className="h-16 w-3/5" />
    </div>
  )
}

function NothingSaid() {
  return (
    <Empty icon={MessageSquare} title="Nothing has been said yet">
      Write the first message below. The agent answers in its next turn.
    </Empty>
  )
}
