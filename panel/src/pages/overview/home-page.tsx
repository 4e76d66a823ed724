// Signed in without an organization in the address: opens the first one, or explains how to get one.
import { Navigate } from '@tanstack/react-router'
import { invitedHow, useMailWay } from '../../app/mail'
import { useViewer } from '../../app/viewer'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'

export function HomePage() {
  const { memberships } = useViewer()
  const way = useMailWay()
  const first = memberships[0]
  if (first) return <Navigate to="/o/$org" params={{ org: first.organizationId }} replace />
  return (
    <>
      <PageHeader title="Welcome" />
      <Empty
        title="You belong to no organization yet"
        command="muster org create --name 'Your organization' --owner-email you@example.com"
      >
        {invitedHow(way)} The installation’s operator can also create an organization for you.
      </Empty>
    </>
  )
}
