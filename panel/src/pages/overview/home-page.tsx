// Signed in, but no organization is chosen: goes to the first one, or says what to do without any.
import { Navigate } from '@tanstack/react-router'
import { useViewer } from '../../app/viewer'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'

export function HomePage() {
  const { memberships } = useViewer()
  const first = memberships[0]
  if (first) return <Navigate to="/o/$org" params={{ org: first.organizationId }} replace />
  return (
    <>
      <PageHeader title="Welcome" />
      <Empty
        title="You belong to no organization yet"
        command="muster org create --name 'Your organization' --owner-email you@example.com"
      >
        Ask somebody to invite you; the invitation comes by mail. Whoever operates this installation can also
        create an organization for you.
      </Empty>
    </>
  )
}
