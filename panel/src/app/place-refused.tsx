// A page that the user may not see. Nothing is asked for it, so that the audit log records no refusal.
import { Lock } from 'lucide-react'
import { Empty } from '../ui/empty'
import { PageHeader } from '../ui/page'
import type { NavItem } from './places'

export default function PlaceRefused({ place: { label, needs } }: { place: NavItem }) {
  return (
    <>
      <PageHeader title={label} />
      <Empty icon={Lock} title="You may not see this">
        You do not have the permission <code className="font-mono">{needs}</code> in this organization. Ask an
        owner or an admin for another role.
      </Empty>
    </>
  )
}
