// Filters for conversations, all stored in the address.
import { getRouteApi } from '@tanstack/react-router'
import { AgentFilter, ChannelFilter, Chip, ContactFilter, FilterMenu, SpanFilter } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { SavedViews } from '../../app/saved-views'
import { Button } from '../../ui/button'
import { SearchInput } from '../../ui/search-input'
import type { ConversationsSearch } from './search'

const route = getRouteApi('/inside/o/$org/conversations')

const STATUSES = [
  { value: 'OPEN', label: 'Open' },
  { value: 'PENDING', label: 'Waiting' },
  { value: 'RESOLVED', label: 'Resolved' },
  { value: 'ARCHIVED', label: 'Archived' },
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
  const flip = (name: 'unread' | 'mine' | 'waiting' | 'undelivered' | 'takenOver') =>
    set({ [name]: search[name] ? undefined : true })
  const { open: _, peek: __, tab: ___, ...filters } = search
  const any = Object.values(filters).some((value) => value !== undefined)
  const clear = () => set(Object.fromEntries(Object.keys(filters).map((name) => [name, undefined])) as Change)
  if (saidOf(search) !== undefined) {
    return (
      <div className="flex items-center gap-2 pb-2">
        <Find value={search.q} onValue={(q) => set({ q })} />
        <AgentFilter value={search.agent} onValue={(agent) => set({ agent })} />
        <Button size="sm" look="quiet" onClick={clear}>
          Clear
        </Button>
      </div>
    )
  }
  return (
    <div className="flex items-center gap-2 overflow-x-auto pb-2 max-sm:-mx-4 max-sm:px-4 sm:flex-wrap sm:overflow-visible">
      <Find value={search.q} onValue={(q) => set({ q })} />
      <SavedViews page="conversations" />
      <Chip on={search.unread ?? false} onToggle={() => flip('unread')}>
        Unread
      </Chip>
      <Chip on={search.waiting ?? false} onToggle={() => flip('waiting')}>
        Waiting for a decision
      </Chip>
      <Chip on={search.undelivered ?? false} onToggle={() => flip('undelivered')}>
        Not delivered
      </Chip>
      <Chip on={search.mine ?? false} onToggle={() => flip('mine')}>
        Mine
      </Chip>
      <Chip on={search.takenOver ?? false} onToggle={() => flip('takenOver')}>
        Taken over
      </Chip>
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
      {any && (
        <Button size="sm" look="quiet" onClick={clear}>
          Clear
        </Button>
      )}
    </div>
  )
}

/** The text to find in messages, as opposed to names. */
export const saidOf = ({ q, tab }: ConversationsSearch) => (tab === 'said' ? q : undefined)

/** Searches subjects, contacts, channels and short codes or, in the other tab, messages. */
function Find({ value, onValue }: { value: string | undefined; onValue: (q: string | undefined) => void }) {
  return (
    <div className="w-48 shrink-0 [&_.control]:h-7 [&_.control]:rounded-full [&_.control]:py-0 [&_.control]:text-sm coarse:[&_.control]:h-10">
      <SearchInput label="Search conversations" value={value} onValue={onValue} />
    </div>
  )
}
