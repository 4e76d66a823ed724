// Filters for the inbox, all stored in the address.
import { getRouteApi } from '@tanstack/react-router'
import { KINDS } from '../../app/approvals/words'
import { AgentFilter, Chip, FilterBar, FilterMenu } from '../../app/filters'
import type { ApprovalsSearch } from './search'

const route = getRouteApi('/inside/o/$org/approvals')

const ENDED = [
  { value: 'RESOLVED', label: 'Decided' },
  { value: 'DISMISSED', label: 'Dismissed' },
  { value: 'EXPIRED', label: 'Expired' },
] as const
const SEVERITIES = [
  { value: 'CRITICAL', label: 'Critical' },
  { value: 'HIGH', label: 'High and above' },
  { value: 'MEDIUM', label: 'Medium and above' },
] as const
const SORTS = [
  { value: 'RISK', label: 'Riskiest first' },
  { value: 'EXPIRES', label: 'Expiring first' },
  { value: 'CREATED', label: 'Newest first' },
] as const
const KIND_OPTIONS = (Object.keys(KINDS) as (keyof typeof KINDS)[]).map((value) => ({
  value,
  label: KINDS[value].name,
}))

export function useInboxSearch(): [ApprovalsSearch, (change: Partial<ApprovalsSearch>) => void] {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  return [
    search,
    (change) =>
      void navigate({ search: (before) => ({ ...before, peek: undefined, ...change }), replace: true }),
  ]
}

export function InboxFilters() {
  const [search, set] = useInboxSearch()
  const decided = search.status !== undefined && !search.status.includes('PENDING')
  const { peek: _, tab: __, ...filters } = search
  return (
    <FilterBar apart filters={filters} onChange={set} search="Search approvals" views="approvals">
      <Chip
        on={search.mine ?? false}
        onToggle={() => set({ mine: search.mine ? undefined : true, assignee: undefined })}
      >
        Assigned to me
      </Chip>
      <Chip
        on={decided}
        onToggle={() =>
          set({
            status: decided ? undefined : ['RESOLVED', 'DISMISSED', 'EXPIRED'],
            snoozed: undefined,
            sort: undefined,
          })
        }
      >
        Decided
      </Chip>
      <Chip
        on={search.snoozed ?? false}
        onToggle={() => set({ snoozed: search.snoozed ? undefined : true, status: undefined })}
      >
        Snoozed
      </Chip>
      <FilterMenu label="Kind" options={KIND_OPTIONS} value={search.kind} onValue={(kind) => set({ kind })} />
      <FilterMenu
        label="Severity"
        single
        options={SEVERITIES}
        value={search.severity ? [search.severity as never] : undefined}
        onValue={(value) => set({ severity: value?.[0] })}
      />
      <AgentFilter value={search.agent} onValue={(agent) => set({ agent })} />
      {decided && (
        <FilterMenu
          label="Ended"
          options={ENDED}
          value={search.status?.length === 3 ? undefined : search.status}
          onValue={(status) => set({ status: status ?? ['RESOLVED', 'DISMISSED', 'EXPIRED'] })}
        />
      )}
      <FilterMenu
        label="Order"
        single
        options={decided ? SORTS.slice(2) : SORTS}
        value={search.sort ? [search.sort] : undefined}
        onValue={(value) => set({ sort: value?.[0] })}
      />
      {search.conversation && (
        <Chip on onToggle={() => set({ conversation: undefined })}>
          One conversation ×
        </Chip>
      )}
    </FilterBar>
  )
}
