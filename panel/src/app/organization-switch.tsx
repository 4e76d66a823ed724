// Shows the current organization and switches to another.
import { useNavigate } from '@tanstack/react-router'
import { ChevronsUpDown } from 'lucide-react'
import { Avatar } from '../ui/avatar'
import { Menu } from '../ui/menu'
import { useOrgIfAny } from './organization'
import { useViewer } from './viewer'

export function OrganizationSwitch() {
  const org = useOrgIfAny()
  const navigate = useNavigate()
  const { memberships } = useViewer()
  const name = org?.name ?? 'Muster'
  const inside = (
    <>
      <Avatar name={name} square />
      <span className="min-w-0 grow truncate text-left font-semibold">{name}</span>
      <ChevronsUpDown size={14} aria-hidden className="shrink-0 text-faint" />
    </>
  )
  return (
    <Menu
      align="start"
      entries={memberships.map(({ organizationId, organizationName, role }) => ({
        label: organizationName,
        about: role.charAt(0) + role.slice(1).toLowerCase(),
        checked: organizationId === org?.id,
        onSelect: () => void navigate({ to: '/o/$org', params: { org: organizationId } }),
      }))}
      trigger={
        <button
          type="button"
          className="flex h-9 min-w-0 max-w-60 items-center gap-2 rounded-control px-1.5 hover:bg-hover md:w-full md:max-w-none"
        >
          <span className="sr-only">Organization: </span>
          {inside}
        </button>
      }
    />
  )
}
