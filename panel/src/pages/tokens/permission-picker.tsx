// Selects permissions by meaning. Those no token may have, or the user lacks, are disabled.
import { useMemo, useState } from 'react'
import { useQuery } from 'urql'
import { graphql, type ResultOf } from '../../api/graphql'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { Checkbox } from '../../ui/choices'
import { FieldDocLink } from '../../ui/doc-link'
import { useOpenError } from '../../ui/field-error'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { words } from '../../ui/status'

const PermissionsQuery = graphql(`
  query Permissions {
    permissions { permission group meaning forServiceTokens }
  }
`)

type Info = NonNullable<ResultOf<typeof PermissionsQuery>['permissions']>[number]

interface Props {
  value: readonly string[]
  onValue: (value: string[]) => void
  error?: string | null
}

export function PermissionPicker({ value, onValue, error: found }: Props) {
  const refused = useOpenError(found, value)
  const org = useOrg()
  const [{ data, error }] = useQuery({ query: PermissionsQuery })
  const [filter, setFilter] = useState('')
  const groups = useMemo(() => groupsOf(data?.permissions ?? [], filter), [data, filter])
  if (error) return <ProblemView error={error} />
  if (!data) return <ListSkeleton rows={4} />
  const mayGive = ({ permission, forServiceTokens }: Info) =>
    forServiceTokens && org.viewerPermissions.includes(permission)
  const reading = (data.permissions ?? []).filter(
    (info) => mayGive(info) && info.permission.endsWith('.view'),
  )
  const toggle = (permission: string, on: boolean) =>
    onValue(on ? [...value, permission] : value.filter((known) => known !== permission))
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1.5 text-sm font-medium">May do</legend>
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <TextInput
          type="search"
          aria-label="Find a permission"
          placeholder="Find a permission"
          className="w-48 grow"
          value={filter}
          onValue={setFilter}
        />
        <Button size="sm" onClick={() => onValue(reading.map(({ permission }) => permission))}>
          Only read
        </Button>
        <Button size="sm" look="quiet" onClick={() => onValue([])}>
          None
        </Button>
        <FieldDocLink to="security.md#what-each-permission-is-worth" />
      </div>
      <div className="max-h-72 space-y-4 overflow-y-auto rounded-control border border-line p-3">
        {groups.map(([group, permissions]) => (
          <section key={group} aria-label={words(group)}>
            <h3 className="mb-1.5 text-sm font-semibold">{words(group)}</h3>
            <div className="space-y-2">
              {permissions.map((info) => (
                <Checkbox
                  key={info.permission}
                  label={info.meaning}
                  hint={hintOf(info, mayGive(info))}
                  disabled={!mayGive(info) && !value.includes(info.permission)}
                  checked={value.includes(info.permission)}
                  onChecked={(on) => toggle(info.permission, on)}
                />
              ))}
            </div>
          </section>
        ))}
        {groups.length === 0 && <p className="text-muted">No permission contains these words.</p>}
      </div>
      {refused && <Notice>{refused}</Notice>}
    </fieldset>
  )
}

function hintOf({ permission, forServiceTokens }: Info, mayGive: boolean): string {
  if (!forServiceTokens) return `${permission}: not for service tokens`
  return mayGive ? permission : `${permission}: you don’t have it yourself`
}

function groupsOf(all: readonly Info[], filter: string): [string, Info[]][] {
  const wanted = filter.trim().toLowerCase()
  const groups = new Map<string, Info[]>()
  for (const info of all) {
    if (!`${info.permission} ${info.meaning} ${info.group}`.toLowerCase().includes(wanted)) continue
    groups.set(info.group, [...(groups.get(info.group) ?? []), info])
  }
  return [...groups]
}
