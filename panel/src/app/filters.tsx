// The filters above a list. The address holds the selection. A plain `Chip` is a toggle.
import type { TypedDocumentNode } from '@urql/core'
import { ChevronDown, type LucideIcon } from 'lucide-react'
import { type ReactNode, useCallback, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../api/graphql'
import type { Kind } from '../api/live'
import { useLive } from '../api/use-live'
import { Button, pillClass } from '../ui/button'
import { Empty } from '../ui/empty'
import { Menu } from '../ui/menu'
import { type Choice, Picker, type PickerProps } from '../ui/picker'
import { SearchInput } from '../ui/search-input'
import { words } from '../ui/status'
import { useOrg } from './organization'
import { SavedViews } from './saved-views'

/** The names of the filters that narrow the list. */
export const narrowing = (filters: object) =>
  Object.entries(filters).flatMap(([name, value]) => (value === undefined ? [] : [name]))
const without = <Filters extends object>(filters: Filters) =>
  Object.fromEntries(narrowing(filters).map((name) => [name, undefined])) as Partial<Filters>

interface BarProps<Filters> {
  /** The filters in the address. */
  filters: Filters
  onChange: (change: Partial<Filters>) => void
  /** Shows a field for the filter `q`: its name. */
  search?: string
  /** The page whose filters people save. */
  views?: string
  /** Below the tabs of a page, outside of its header. */
  apart?: boolean
  children?: ReactNode
}

/** The row of filters, the same on every page, with a button that removes all. */
export function FilterBar<Filters extends object>(props: BarProps<Filters>) {
  const { filters, onChange, search, views, apart, children } = props
  const bar = (
    <div className="flex items-center gap-2 overflow-x-auto pb-2 max-sm:-mx-4 max-sm:px-4 sm:flex-wrap sm:overflow-visible">
      {search && (
        <SearchInput
          label={search}
          value={(filters as { q?: string }).q}
          onValue={(q) => onChange({ q } as object as Partial<Filters>)}
        />
      )}
      {views && <SavedViews page={views} />}
      {children}
      {narrowing(filters).length > 0 && (
        <Button size="sm" look="quiet" onClick={() => onChange(without(filters))}>
          Clear
        </Button>
      )}
    </div>
  )
  return apart ? <div className="shrink-0 border-b border-line px-4 pt-2 sm:px-6">{bar}</div> : bar
}

interface NothingProps<Filters> {
  icon: LucideIcon
  title?: string
  filters: Filters
  onChange: (change: Partial<Filters>) => void
}

/** In place of a list that filters leave empty. */
export function NothingMatches<Filters extends object>(props: NothingProps<Filters>) {
  const { icon, title = 'Nothing matches', filters, onChange } = props
  const clear = <Button onClick={() => onChange(without(filters))}>Clear the filters</Button>
  return (
    <Empty icon={icon} title={title} action={clear}>
      Change or clear the filters.
    </Empty>
  )
}

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
    <button type="button" aria-pressed={on} onClick={onToggle} className={pillClass(on)}>
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
        <button type="button" className={pillClass(chosen.length > 0)}>
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
  query AgentNamed($orgId: Id!, $id: Id!) { named: agent(orgId: $orgId, id: $id) { id name } }
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

interface Named {
  named: { name: string } | null
}

interface RecordProps {
  value: number | undefined
  onValue: (id: number | undefined) => void
}

/** The name of the record in the address, which has only its id. */
function useNamed(
  query: TypedDocumentNode<Named, { orgId: number; id: number }>,
  id: number | undefined,
  kind: Kind,
) {
  const variables = { orgId: useOrg().id, id: id ?? 0 }
  return useLive({ query, variables, on: [kind], pause: id === undefined }).data?.named?.name
}

/** Filters by agent. */
export function AgentFilter({ value, onValue }: RecordProps) {
  const found = { search: useAgentSearch(), name: useNamed(AgentNamed, value, 'AGENT') }
  return <RecordFilter label="Agent" placeholder="Any agent" value={value} onValue={onValue} {...found} />
}

const ChannelsFound = graphql(`
  query ChannelsFound($orgId: Id!) { channels(orgId: $orgId) { id name transport } }
`)
const ChannelNamed = graphql(`
  query ChannelNamed($orgId: Id!, $id: Id!) { named: channel(orgId: $orgId, id: $id) { id name } }
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
  const found = { search, name: useNamed(ChannelNamed, value, 'CHANNEL') }
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
  query ContactNamed($orgId: Id!, $id: Id!) { named: contact(orgId: $orgId, id: $id) { id name } }
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
  const found = { search, name: useNamed(ContactNamed, value, 'CONTACT') }
  return <RecordFilter label="Contact" placeholder="Anyone" value={value} onValue={onValue} {...found} />
}

interface RecordFilterProps extends RecordProps, Pick<PickerProps, 'choices' | 'search' | 'placeholder'> {
  label: string
  name: string | undefined
}

export function RecordFilter({ label, name, value, onValue, ...found }: RecordFilterProps) {
  return (
    <div className="w-36 shrink-0 [&_.control]:h-7 [&_.control]:rounded-full [&_.control]:py-0 [&_.control]:text-sm coarse:[&_.control]:h-10 [&_.control:placeholder-shown]:pr-8">
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

/** Filters by a time span up to now. The address holds its start, so that a link shows the same span tomorrow. */
export function SpanFilter({ span: { from, to }, onSpan }: { span: Span; onSpan: (span: Span) => void }) {
  const [chosen, setChosen] = useState<{ value: string; from: string | undefined } | null>(null)
  // A saved view or Back may have replaced the selected span.
  const isChosen = chosen !== null && chosen.from === from && !to
  const value = !from && !to ? undefined : isChosen ? chosen.value : 'OWN'
  const choose = (next: string | undefined) => {
    const hours = SPANS.find((span) => span.value === next)?.hours
    const begin = hours ? new Date(Date.now() - hours * 3_600_000).toISOString() : undefined
    setChosen(next && begin ? { value: next, from: begin } : null)
    onSpan({ from: begin, to: undefined })
  }
  return (
    <FilterMenu
      label="When"
      single
      options={SPANS.filter((span) => span.hours || value === 'OWN')}
      value={value === undefined ? undefined : [value]}
      onValue={(next) => choose(next?.[0])}
    />
  )
}
