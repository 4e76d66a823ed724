// Reads out how many approvals have come into the list. The order of a list that is in use holds still, so the eye
// gets another sign.
import { type ReactNode, useCallback, useEffect, useRef } from 'react'
import { onChange } from '../../api/live'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { useAnnounced } from '../../ui/announce'

const words = (come: number[]) => (come.length === 1 ? '1 new approval' : `${come.length} new approvals`)

/** Those that are asked while it is shown, and that its filters let in. Other pages of it are no news. */
export function useArrivals(items: ApprovalRecord[]): ReactNode {
  const [region, announce] = useAnnounced(words)
  const created = useRef(new Set<number>())
  const shown = useRef(items)
  shown.current = items
  // The list is read after the news, or was just being read before it.
  const look = useCallback(() => {
    announce(shown.current.map(({ id }) => id).filter((id) => created.current.delete(id)))
  }, [announce])
  useEffect(
    () =>
      onChange(
        ({ kind, op }) => kind === 'APPROVAL' && op === 'CREATED',
        ({ id }) => {
          if (id === null) return
          created.current.add(id)
          look()
        },
      ),
    [look],
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: some of them may be new
  useEffect(look, [items, look])
  return region
}
