// The order that the head of a column of agents selects. Pure, tested.
import type { AgentsSearch } from './filters'

type Sort = NonNullable<AgentsSearch['sort']>
type Order = AgentsSearch['order']

/** The service's direction of each key, unless the address has one. */
const OWN: Record<Sort, NonNullable<Order>> = {
  NAME: 'asc',
  STATUS: 'asc',
  ACTIVITY: 'desc',
  CREATED: 'desc',
}

export const directionOf = (sort: Sort, order: Order) => order ?? OWN[sort]

/** Another key in its own direction; the same key in the other direction. */
export function sortedBy(next: Sort, sort: Sort, order: Order): Pick<AgentsSearch, 'sort' | 'order'> {
  const reversed = directionOf(sort, order) === 'asc' ? ('desc' as const) : ('asc' as const)
  const isOwn = next !== sort || reversed === OWN[next]
  return { sort: next === 'NAME' ? undefined : next, order: isOwn ? undefined : reversed }
}
