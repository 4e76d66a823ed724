// Filters for the audit log, all stored in the address.
import { X } from 'lucide-react'
import { authorOf } from '../../app/author'
import { FilterBar, FilterMenu, SpanFilter } from '../../app/filters'
import { pillClass } from '../../ui/button'
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
  { value: 'ALLOWED', label: 'Done' },
  { value: 'REFUSED', label: 'Refused' },
  { value: 'FAILED', label: 'Failed' },
] as const
const ACTORS = [
  { value: 'USER', label: 'People' },
  { value: 'SERVICE_TOKEN', label: 'Service tokens' },
  { value: 'SYSTEM', label: authorOf('SYSTEM', null) },
  { value: 'ANONYMOUS', label: authorOf('ANONYMOUS', null) },
] as const

interface Props {
  search: AuditSearch
  /** The name of the actor in the filter. */
  actor: string | undefined
  onChange: Change
}

export function AuditFilters({ search, actor, onChange }: Props) {
  const chips = chipsOf(search, actor)
  const { page: _, entry: __, ...filters } = search
  return (
    <FilterBar filters={filters} onChange={onChange} search="Search the audit log" views="audit">
      <FilterMenu
        label="Outcome"
        single
        options={OUTCOMES}
        value={search.outcome ? [search.outcome as never] : undefined}
        onValue={(outcome) => onChange({ outcome: outcome?.[0] })}
      />
      <FilterMenu
        label="Who"
        single
        options={ACTORS}
        value={search.actorKind && [search.actorKind]}
        onValue={(kind) => onChange({ actorKind: kind?.[0] })}
      />
      <SpanFilter span={search} onSpan={onChange} />
      {chips.map(({ label, gone }) => (
        <button
          key={label}
          type="button"
          className={pillClass(true)}
          aria-label={`Remove the filter: ${label}`}
          onClick={() => onChange(gone)}
        >
          <span className="max-w-56 truncate">{label}</span>
          <X size={13} aria-hidden />
        </button>
      ))}
    </FilterBar>
  )
}

function chipsOf(
  search: AuditSearch,
  name: string | undefined,
): { label: string; gone: Partial<AuditSearch> }[] {
  const { operation, permission, actor, target, targetKind } = search
  return [
    operation && { label: spaced(operation), gone: { operation: undefined } },
    permission && { label: permission, gone: { permission: undefined } },
    actor && { label: name ?? `Actor ${actor}`, gone: { actor: undefined } },
    (targetKind || target) && {
      label: `${spaced(targetKind ?? 'record')}${target ? ` ${target}` : 's'}`,
      gone: { target: undefined, targetKind: undefined },
    },
  ].filter((chip) => typeof chip === 'object')
}
