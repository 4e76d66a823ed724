// Filters and order of the agents, all stored in the address.
import { useMemo } from 'react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { SavedViews } from '../../app/saved-views'
import { Button } from '../../ui/button'
import { Select } from '../../ui/inputs'
import { SearchInput } from '../../ui/search-input'
import { stateOf } from '../../ui/status'
import { AGENT_STATUSES, type agentsSearch } from './search'

const ServersQuery = graphql(`
  query ServerNames($orgId: Id!) { servers(orgId: $orgId, page: 1, limit: 200, sort: NAME) { data { id name } } }
`)

export type AgentsSearch = ReturnType<typeof agentsSearch>

const SORTS = [
  { value: 'NAME', label: 'By name' },
  { value: 'STATUS', label: 'By state' },
  { value: 'ACTIVITY', label: 'By activity' },
  { value: 'CREATED', label: 'Newest first' },
] as const

interface Props {
  search: AgentsSearch
  onChange: (change: Partial<AgentsSearch>) => void
}

export function Filters({ search, onChange }: Props) {
  const { id: orgId } = useOrg()
  const { data } = useLive({ query: ServersQuery, variables: { orgId }, on: ['SERVER'] })
  const servers = useMemo(
    () => [
      { value: '', label: 'All servers' },
      ...(data?.servers?.data ?? []).map(({ id, name }) => ({ value: String(id), label: name })),
    ],
    [data],
  )
  const states = search.status ?? []
  const any = search.q || states.length > 0 || search.server
  return (
    <div className="grid shrink-0 grid-cols-3 items-center gap-2 border-b border-line px-4 py-2 sm:flex sm:flex-wrap sm:px-6">
      <div className="col-span-3">
        <SearchInput label="Search agents" value={search.q} onValue={(q) => onChange({ q })} />
      </div>
      <Select
        aria-label="State"
        className="w-full sm:w-36"
        value={states[0] ?? ''}
        options={[
          { value: '', label: 'All states' },
          ...AGENT_STATUSES.map((state) => ({ value: state, label: stateOf('agent', state).word })),
        ]}
        onValue={(state) =>
          onChange({
            status: AGENT_STATUSES.includes(state as never) ? [state as (typeof states)[number]] : undefined,
          })
        }
      />
      <Select
        aria-label="Server"
        className="w-full sm:w-40"
        value={search.server ? String(search.server) : ''}
        options={servers}
        onValue={(server) => onChange({ server: server ? Number(server) : undefined })}
      />
      <Select
        aria-label="Order"
        className="w-full sm:w-36"
        value={search.sort ?? 'NAME'}
        options={SORTS}
        onValue={(sort) => onChange({ sort: sort === 'NAME' ? undefined : sort, order: undefined })}
      />
      <SavedViews page="agents" tall />
      {any && (
        <Button look="quiet" onClick={() => onChange({ q: undefined, status: undefined, server: undefined })}>
          Clear filters
        </Button>
      )}
    </div>
  )
}
