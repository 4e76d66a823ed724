// Announces new messages at the end of the thread. The log itself is silent, because it also changes while older
// messages load and while the agent writes.
import { type ReactNode, useEffect, useRef } from 'react'
import type { MessageRecord } from '../../../app/thread/fields'
import { useAnnounced } from '../../../ui/announce'
import { announceable, arrivalWords } from './arrivals'
import type { Names } from './names'
import type { Thread } from './use-thread'
import { lastSeq } from './window'

/** `known`: the newest seq according to the conversation's record. */
export function useArrivals(
  { window: shown, loading }: Thread,
  known: number,
  isAtEnd: boolean,
  names: Names,
): ReactNode {
  const [region, announce] = useAnnounced<MessageRecord>((come) => arrivalWords(come, names))
  const isOpen = useRef(false)
  // Messages that were there on opening are not new.
  const reached = useRef(known)
  const viewer = names.viewer.id
  useEffect(() => {
    if (loading || shown.hasAfter) return
    const come = shown.messages.filter(({ seq }) => seq > reached.current)
    reached.current = Math.max(reached.current, lastSeq(shown))
    if (isOpen.current && isAtEnd) announce(announceable(come, viewer))
    isOpen.current = true
  }, [loading, shown, isAtEnd, viewer, announce])
  return region
}
