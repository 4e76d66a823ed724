// The lines of a log, rendered as far as they are in view. At the end, new lines stay in view.
import { useVirtualizer } from '@tanstack/react-virtual'
import { type Ref, useImperativeHandle, useLayoutEffect, useMemo, useRef } from 'react'
import { useZone } from '../../../ui/clock'
import { cx } from '../../../ui/cx'
import { Visible } from '../../../ui/visible'
import { type Item, keyOf, partsOf, type Source, wordsOfGap } from './log'

/** Closer to the end than this, in pixels, counts as the end. */
const NEAR_END = 32

export interface LinesHandle {
  show: (index: number) => void
}

interface Props {
  items: readonly Item[]
  finder: RegExp | null
  /** The index of the found item. */
  marked: number | undefined
  isFollowing: boolean
  onFollowing: (isFollowing: boolean) => void
  handle: Ref<LinesHandle>
}

export function Lines({ items, finder, marked, isFollowing, onFollowing, handle }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const top = useRef(0)
  const { timeZone } = useZone()
  const clock = useMemo(
    () => new Intl.DateTimeFormat(undefined, { timeZone, dateStyle: 'short', timeStyle: 'medium' }),
    [timeZone],
  )
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => 22,
    getItemKey: (index) => (items[index] ? keyOf(items[index]) : index),
    overscan: 20,
  })
  useImperativeHandle(handle, () => ({ show: (index) => virtual.scrollToIndex(index, { align: 'center' }) }))
  const newest = items.at(-1)
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines move the end
  useLayoutEffect(() => {
    if (isFollowing && items.length > 0) virtual.scrollToIndex(items.length - 1, { align: 'end' })
  }, [isFollowing, newest, items.length])

  const onScroll = () => {
    if (!box.current) return
    const { scrollTop, scrollHeight, clientHeight } = box.current
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END
    if (isFollowing && !isAtEnd && scrollTop < top.current - 1) onFollowing(false)
    if (!isFollowing && isAtEnd && scrollTop > top.current + 1) onFollowing(true)
    top.current = scrollTop
  }
  return (
    <div
      ref={box}
      tabIndex={0}
      role="log"
      aria-label="Log"
      // Too much to be read out: the state beside it says how much is new.
      aria-live="off"
      onScroll={onScroll}
      className="min-h-0 grow overflow-auto overscroll-contain py-2 font-mono text-sm outline-offset-[-2px] [overflow-anchor:none]"
    >
      <div className="relative w-full" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const item = items[index]
          return (
            item && (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className={cx('absolute inset-x-0 px-4 sm:px-6', index === marked && 'bg-selected')}
                style={{ transform: `translateY(${start}px)` }}
              >
                {item.is === 'gap' ? (
                  <p className="py-1 text-center font-sans text-xs text-muted">{wordsOfGap(item.missing)}</p>
                ) : (
                  <p className="flex flex-wrap gap-x-3 sm:flex-nowrap">
                    <time dateTime={item.line.time} className="shrink-0 text-faint tabular-nums">
                      {clock.format(new Date(item.line.time))}
                    </time>
                    <span className={cx('w-14 shrink-0', TONES[item.line.source])}>
                      {WORDS[item.line.source]}
                    </span>
                    <span className="min-w-0 grow whitespace-pre-wrap break-words">
                      {partsOf(item.line.text, finder).map(({ text, from, isHit }) =>
                        isHit ? (
                          <mark key={from} className="rounded bg-warn-soft text-warn-text">
                            <Visible text={text} />
                          </mark>
                        ) : (
                          <Visible key={from} text={text} />
                        ),
                      )}
                    </span>
                  </p>
                )}
              </div>
            )
          )
        })}
      </div>
    </div>
  )
}

const WORDS: Record<Source, string> = { STDERR: 'stderr', LAUNCH: 'launch', GATE: 'gate', MCP: 'mcp' }
const TONES: Record<Source, string> = {
  STDERR: 'text-muted',
  LAUNCH: 'text-accent-text',
  GATE: 'text-warn-text',
  MCP: 'text-danger-text',
}
