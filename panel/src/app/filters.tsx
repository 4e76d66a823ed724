// Filters as small buttons with a menu. What is chosen stands in the address; `Chip` alone is yes or no.
import { ChevronDown } from 'lucide-react'
import { useCallback } from 'react'
import { useClient } from 'urql'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import { buttonClass } from '../ui/button'
import { cx } from '../ui/cx'
import { Menu } from '../ui/menu'
import { type Choice, Picker } from '../ui/picker'
import { useOrg } from './organization'

export function Chip({
  on,
  onToggle,
  children,
}: {
  on: boolean
  onToggle: () => void
  children: React.ReactNode
}) {
  return (
    <button
      type="button"
      aria-pressed={on}
      onClick={onToggle}
      className={buttonClass(
        'secondary',
        'sm',
        cx('rounded-full', on && 'border-accent-text! bg-selected! text-accent-text!'),
      )}
    >
      {children}
    </button>
  )
}

interface SeveralProps<Value extends string> {
  label: string
  options: readonly { value: Value; label: string }[]
  value: readonly Value[] | undefined
  onValue: (value: Value[] | undefined) => void
  /** One at most. */
  single?: boolean
}

export function FilterMenu<Value extends string>({
  label,
  options,
  value,
  onValue,
  single,
}: SeveralProps<Value>) {
  const chosen = options.filter((option) => value?.includes(option.value))
  const toggle = (option: Value) => {
    if (single) return onValue(value?.includes(option) ? undefined : [option])
    const next = value?.includes(option)
      ? value.filter((each) => each !== option)
      : [...(value ?? []), option]
    onValue(next.length > 0 ? next : undefined)
  }
  return (
    <Menu
      align="start"
      trigger={
        <button
          type="button"
          className={buttonClass(
            'secondary',
            'sm',
            cx('rounded-full', chosen.length > 0 && 'border-accent-text! bg-selected! text-accent-text!'),
          )}
        >
          {label}
          {chosen.length > 0 &&
            `: ${chosen.length > 2 ? chosen.length : chosen.map((each) => each.label).join(', ')}`}
          <ChevronDown size={13} aria-hidden />
        </button>
      }
      entries={options.map((option) => ({
        label: option.label,
        checked: value?.includes(option.value) ?? false,
        onSelect: () => toggle(option.value),
      }))}
    />
  )
}

const AgentsFound = graphql(`
  query AgentsFound($orgId: Id!, $search: String) {
    agentFeed(orgId: $orgId, search: $search, limit: 20) { data { id name status } }
  }
`)
const AgentNamed = graphql(`
  query AgentNamed($orgId: Id!, $id: Id!) { agent(orgId: $orgId, id: $id) { id name } }
`)

/** Finds agents by a part of their name. */
export function useAgentSearch(): (text: string) => Promise<Choice[]> {
  const org = useOrg()
  const client = useClient()
  return useCallback(
    async (text: string) => {
      const { data } = await client.query(AgentsFound, { orgId: org.id, search: text || null }).toPromise()
      return (data?.agentFeed?.data ?? []).map(({ id, name, status }) => ({
        id,
        name,
        detail: status === 'RUNNING' ? null : status.toLowerCase(),
      }))
    },
    [client, org.id],
  )
}

/** Chooses an agent for a filter; the address has its id alone. */
export function AgentFilter({
  value,
  onValue,
}: {
  value: number | undefined
  onValue: (id: number | undefined) => void
}) {
  const org = useOrg()
  const search = useAgentSearch()
  const { data } = useLive({
    query: AgentNamed,
    variables: { orgId: org.id, id: value ?? 0 },
    on: ['AGENT'],
    pause: value === undefined,
  })
  const name = data?.agent?.name ?? (value === undefined ? '' : `No. ${value}`)
  return (
    <div className="w-44 [&_.control]:h-7 [&_.control]:rounded-full [&_.control]:py-0 [&_.control]:text-sm coarse:[&_.control]:h-10">
      <Picker
        aria-label="Agent"
        value={value === undefined ? null : { id: value, name }}
        search={search}
        clearable
        placeholder="Any agent"
        onValue={(choice) => onValue(choice ? Number(choice.id) : undefined)}
      />
    </div>
  )
}
