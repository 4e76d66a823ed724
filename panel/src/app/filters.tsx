// Filters as small buttons with menus. The address holds the selection. A plain `Chip` is a toggle.
import { ChevronDown } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import { buttonClass } from '../ui/button'
import { cx } from '../ui/cx'
import { Menu } from '../ui/menu'
import { type Choice, Picker, type PickerProps } from '../ui/picker'
import { words } from '../ui/status'
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
  /** At most one option. */
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

/** Finds agents by part of their name. */
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

interface RecordProps {
  value: number | undefined
  onValue: (id: number | undefined) => void
}

/** Filters by agent. */
export function AgentFilter({ value, onValue }: RecordProps) {
  const org = useOrg()
  const { data } = useLive({
    query: AgentNamed,
    variables: { orgId: org.id, id: value ?? 0 },
    on: ['AGENT'],
    pause: value === undefined,
  })
  const found = { search: useAgentSearch(), name: data?.agent?.name }
  return <RecordFilter label="Agent" placeholder="Any agent" value={value} onValue={onValue} {...found} />
}

const ChannelsFound = graphql(`
  query ChannelsFound($orgId: Id!) { channels(orgId: $orgId) { id name transport } }
`)
const ChannelNamed = graphql(`
  query ChannelNamed($orgId: Id!, $id: Id!) { channel(orgId: $orgId, id: $id) { id name } }
`)

/** Filters by channel. */
export function ChannelFilter({ value, onValue }: RecordProps) {
  const org = useOrg()
  const client = useClient()
  const search = useCallback(
    async (text: string) => {
      // The service searches channels by agent only, so read all when the list opens and filter them here.
      const requestPolicy = text ? 'cache-first' : 'network-only'
      const { data } = await client.query(ChannelsFound, { orgId: org.id }, { requestPolicy }).toPromise()
      const wanted = text.trim().toLocaleLowerCase()
      return (data?.channels ?? [])
        .map(({ id, name, transport }) => ({ id, name, detail: words(transport) }))
        .filter(({ name, detail }) => `${name} ${detail}`.toLocaleLowerCase().includes(wanted))
    },
    [client, org.id],
  )
  const { data } = useLive({
    query: ChannelNamed,
    variables: { orgId: org.id, id: value ?? 0 },
    on: ['CHANNEL'],
    pause: value === undefined,
  })
  const found = { search, name: data?.channel?.name }
  return <RecordFilter label="Channel" placeholder="Any channel" value={value} onValue={onValue} {...found} />
}

const ContactsFound = graphql(`
  query ContactsFound($orgId: Id!, $search: String) {
    contacts(orgId: $orgId, search: $search, page: 1, limit: 20) {
      data { id name identities { id originId } }
    }
  }
`)
const ContactNamed = graphql(`
  query ContactNamed($orgId: Id!, $id: Id!) { contact(orgId: $orgId, id: $id) { id name } }
`)

/** Filters by contact: an outside person who writes to agents. */
export function ContactFilter({ value, onValue }: RecordProps) {
  const org = useOrg()
  const client = useClient()
  const search = useCallback(
    async (text: string) => {
      const { data } = await client.query(ContactsFound, { orgId: org.id, search: text || null }).toPromise()
      return (data?.contacts?.data ?? []).map(({ id, name, identities }) => ({
        id,
        name,
        detail: identities[0]?.originId,
      }))
    },
    [client, org.id],
  )
  const { data } = useLive({
    query: ContactNamed,
    variables: { orgId: org.id, id: value ?? 0 },
    on: ['CONTACT'],
    pause: value === undefined,
  })
  const found = { search, name: data?.contact?.name }
  return <RecordFilter label="Contact" placeholder="Anyone" value={value} onValue={onValue} {...found} />
}

interface RecordFilterProps extends RecordProps, Pick<PickerProps, 'search' | 'placeholder'> {
  label: string
  name: string | undefined
}

/** The address holds only the id, so the name is looked up. */
function RecordFilter({ label, name, value, onValue, ...found }: RecordFilterProps) {
  return (
    <div className="w-44 [&_.control]:h-7 [&_.control]:rounded-full [&_.control]:py-0 [&_.control]:text-sm coarse:[&_.control]:h-10">
      <Picker
        aria-label={label}
        value={value === undefined ? null : { id: value, name: name ?? `No. ${value}` }}
        clearable
        onValue={(choice) => onValue(choice ? Number(choice.id) : undefined)}
        {...found}
      />
    </div>
  )
}

const SPANS = [
  { value: 'ALL', label: 'At any time', hours: null },
  { value: 'HOUR', label: 'In the last hour', hours: 1 },
  { value: 'DAY', label: 'In the last 24 hours', hours: 24 },
  { value: 'WEEK', label: 'In the last 7 days', hours: 168 },
  { value: 'MONTH', label: 'In the last 30 days', hours: 720 },
  { value: 'OWN', label: 'From the address', hours: null },
] as const

interface Span {
  from?: string
  to?: string
}

/** A time span up to now. The address holds its start, so that a link shows the same span tomorrow. */
export function useSpan({ from, to }: Span, onSpan: (span: Span) => void) {
  const [chosen, setChosen] = useState<{ value: string; from: string | undefined } | null>(null)
  // A saved view or Back may have replaced the selected span.
  const isChosen = chosen !== null && chosen.from === from && !to
  const value = !from && !to ? 'ALL' : isChosen ? chosen.value : 'OWN'
  const choose = (next: string) => {
    const hours = SPANS.find((span) => span.value === next)?.hours
    const begin = hours ? new Date(Date.now() - hours * 3_600_000).toISOString() : undefined
    setChosen({ value: next, from: begin })
    onSpan({ from: begin, to: undefined })
  }
  return { value, choose, options: SPANS.filter((span) => span.value !== 'OWN' || value === 'OWN') }
}

/** Filters by time span. */
export function SpanFilter({ span, onSpan }: { span: Span; onSpan: (span: Span) => void }) {
  const { value, choose, options } = useSpan(span, onSpan)
  const chosen = value === 'ALL' ? undefined : [value]
  const spans = options.filter((option) => option.value !== 'ALL')
  return (
    <FilterMenu
      label="When"
      single
      options={spans}
      value={chosen}
      onValue={(next) => choose(next?.[0] ?? 'ALL')}
    />
  )
}
