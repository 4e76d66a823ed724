// Filters for the audit log, all stored in the address.
import { X } from 'lucide-react'
import { useSpan } from '../../app/filters'
import { SavedViews } from '../../app/saved-views'
import { Select } from '../../ui/inputs'
import { SearchInput } from '../../ui/search-input'
import { spaced } from './words'

export interface AuditSearch {
  q?: string
  actor?: number
  actorKind?: 'USER' | 'SERVICE_TOKEN' | 'SYSTEM' | 'ANONYMOUS'
  operation?: string
  permission?: string
  outcome?: string
  target?: number
  targetKind?: string
  from?: string
  to?: string
  page?: number
  entry?: number
}

/** The address as `auditLog` arguments. */
export function variablesOf(search: AuditSearch) {
  return {
    search: search.q ?? null,
    actorId: search.actor ?? null,
    actorKind: search.actorKind ?? null,
    operation: search.operation ?? null,
    permission: (search.permission ?? null) as never,
    outcome: (search.outcome ?? null) as never,
    targetId: search.target ?? null,
    targetKind: search.targetKind ?? null,
    from: search.from ?? null,
    to: search.to ?? null,
  } satisfies Partial<Record<string, unknown>>
}

export type Change = (change: Partial<AuditSearch>) => void

const OUTCOMES = [
  { value: 'ANY', label: 'Any outcome' },
  { value: 'ALLOWED', label: 'Done' },
  { value: 'REFUSED', label: 'Refused' },
  { value: 'FAILED', label: 'Failed' },
] as const
const ACTORS = [
  { value: 'ANY', label: 'Anyone' },
  { value: 'USER', label: 'People' },
  { value: 'SERVICE_TOKEN', label: 'Service tokens' },
  { value: 'SYSTEM', label: 'The service' },
  { value: 'ANONYMOUS', label: 'Not signed in' },
] as const
export function AuditFilters({ search, onChange }: { search: AuditSearch; onChange: Change }) {
  const chips = chipsOf(search)
  return (
    <div className="flex flex-wrap items-center gap-2 pb-2.5">
      <SearchInput label="Search the audit log" value={search.q} onValue={(q) => onChange({ q })} />
      <Select
        aria-label="Outcome"
        className="w-auto"
        value={search.outcome ?? 'ANY'}
        options={OUTCOMES}
        onValue={(outcome) => onChange({ outcome: outcome === 'ANY' ? undefined : outcome })}
      />
      <Select
        aria-label="Who"
        className="w-auto"
        value={search.actorKind ?? 'ANY'}
        options={ACTORS}
        onValue={(kind) => onChange({ actorKind: kind === 'ANY' ? undefined : kind })}
      />
      <Span search={search} onChange={onChange} />
      <SavedViews page="audit" tall />
      {chips.map(({ label, gone }) => (
        <button
          key={label}
          type="button"
          className="inline-flex h-7 items-center gap-1 rounded-full bg-accent-soft px-2.5 text-sm text-accent-text coarse:h-10"
          aria-label={`Remove the filter: ${label}`}
          onClick={() => onChange(gone)}
        >
          <span className="max-w-56 truncate">{label}</span>
          <X size={13} aria-hidden />
        </button>
      ))}
    </div>
  )
}

function chipsOf(search: AuditSearch): { label: string; gone: Partial<AuditSearch> }[] {
  const { operation, permission, actor, target, targetKind } = search
  return [
    operation && { label: spaced(operation), gone: { operation: undefined } },
    permission && { label: permission, gone: { permission: undefined } },
    actor && { label: `Actor ${actor}`, gone: { actor: undefined } },
    (targetKind || target) && {
      label: `${spaced(targetKind ?? 'record')}${target ? ` ${target}` : 's'}`,
      gone: { target: undefined, targetKind: undefined },
    },
  ].filter((chip) => typeof chip === 'object')
}

function Span({ search: { from, to }, onChange }: { search: AuditSearch; onChange: Change }) {
  const { value, choose, options } = useSpan({ from, to }, onChange)
  return <Select aria-label="When" className="w-auto" value={value} options={options} onValue={choose} />
}
