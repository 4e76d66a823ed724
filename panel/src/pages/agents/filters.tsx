// Filters and order of the agents, all stored in the address.
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { FilterBar, FilterMenu, RecordFilter } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { stateOf } from '../../ui/status'
import { AGENT_STATUSES, type agentsSearch } from './search'

const ServersQuery = graphql(`
  query ServerNames($orgId: Id!) { servers(orgId: $orgId, page: 1, limit: 200, sort: NAME) { data { id name } } }
`)

export type AgentsSearch = ReturnType<typeof agentsSearch>

const STATES = AGENT_STATUSES.map((value) => ({ value, label: stateOf('agent', value).word }))
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
  const { q, status, server } = search
  const servers = data?.servers?.data ?? []
  return (
    <FilterBar
      apart
      filters={{ q, status, server }}
      onChange={onChange}
      search="Search agents"
      views="agents"
    >
      <FilterMenu label="State" options={STATES} value={status} onValue={(status) => onChange({ status })} />
      <RecordFilter
        label="Server"
        placeholder="Any server"
        choices={servers}
        name={servers.find(({ id }) => id === server)?.name}
        value={server}
        onValue={(server) => onChange({ server })}
      />
      <FilterMenu
        label="Order"
        single
        options={SORTS}
        value={search.sort && [search.sort]}
        onValue={(sort) => onChange({ sort: sort?.[0], order: undefined })}
      />
    </FilterBar>
  )
}
