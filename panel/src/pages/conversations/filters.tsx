// Filters for conversations, all stored in the address.
import { getRouteApi } from '@tanstack/react-router'
import {
  AgentFilter,
  ChannelFilter,
  Chip,
  ContactFilter,
  FilterBar,
  FilterMenu,
  SpanFilter,
} from '../../app/filters'
import { useOrg } from '../../app/organization'
import type { ConversationsSearch } from './search'

const route = getRouteApi('/inside/o/$org/conversations')

const STATUSES = [
  { value: 'OPEN', label: 'Open' },
  { value: 'PENDING', label: 'Waiting' },
  { value: 'RESOLVED', label: 'Resolved' },
  { value: 'ARCHIVED', label: 'Archived' },
] as const

const ONLY = [
  { value: 'waiting', label: 'Waiting for a decision' },
  { value: 'undelivered', label: 'Not delivered' },
  { value: 'mine', label: 'Mine' },
  { value: 'takenOver', label: 'Taken over' },
] as const

type Change = Partial<ConversationsSearch>

export function useListSearch(): [ConversationsSearch, (change: Change) => void] {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  return [
    search,
    (change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true }),
  ]
}

export function ConversationFilters() {
  const org = useOrg()
  const [search, set] = useListSearch()
  const { open: _, peek: __, tab: ___, ...filters } = search
  const bar = { filters, onChange: set, search: 'Search conversations' }
  if (saidOf(search) !== undefined) {
    return (
      <FilterBar {...bar}>
        <AgentFilter value={search.agent} onValue={(agent) => set({ agent })} />
      </FilterBar>
    )
  }
  return (
    <FilterBar {...bar} views="conversations">
      <Chip on={search.unread ?? false} onToggle={() => set({ unread: search.unread ? undefined : true })}>
        Unread
      </Chip>
      <FilterMenu
        label="Only"
        options={ONLY}
        value={ONLY.map(({ value }) => value).filter((name) => search[name])}
        onValue={(names) =>
          set(Object.fromEntries(ONLY.map(({ value }) => [value, names?.includes(value) ? true : undefined])))
        }
      />
      <FilterMenu
        label="Status"
        options={STATUSES}
        value={search.status}
        onValue={(status) => set({ status })}
      />
      <SpanFilter span={search} onSpan={set} />
      <AgentFilter value={search.agent} onValue={(agent) => set({ agent })} />
      <ChannelFilter value={search.channel} onValue={(channel) => set({ channel })} />
      {org.can('contact.view') && (
        <ContactFilter value={search.contact} onValue={(contact) => set({ contact })} />
      )}
    </FilterBar>
  )
}

/** The text to find in messages, as opposed to subjects, contacts, channels and short codes. */
export const saidOf = ({ q, tab }: ConversationsSearch) => (tab === 'said' ? q : undefined)
