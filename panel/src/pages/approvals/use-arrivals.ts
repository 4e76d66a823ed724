// Announces how many approvals arrived. A list in use keeps its order, so sighted users get a separate sign.
import { type ReactNode, useCallback, useEffect, useRef } from 'react'
import { onChange } from '../../api/live'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { useAnnounced } from '../../ui/announce'

const words = (come: number[]) => (come.length === 1 ? '1 new approval' : `${come.length} new approvals`)

/** Announces approvals created while the list is shown that match its filters. Loading more pages is not an arrival. */
export function useArrivals(items: ApprovalRecord[]): ReactNode {
  const [region, announce] = useAnnounced(words)
  const created = useRef(new Set<number>())
  const shown = useRef(items)
  shown.current = items
  // The list reloads after the event, or was already loading before it.
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: some items may be new
  useEffect(look, [items, look])
  return region
}
