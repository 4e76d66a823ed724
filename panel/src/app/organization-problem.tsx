// An organization that can't be shown: it requires a second factor, or the user is not a member.
import { Link } from '@tanstack/react-router'
import type { CombinedError } from '@urql/core'
import { ShieldCheck, Users } from 'lucide-react'
import { useEffect } from 'react'
import { problemOf } from '../api/errors'
import { buttonClass } from '../ui/button'
import { Empty } from '../ui/empty'
import { ProblemView } from '../ui/problem'
import { rememberOrganization } from './last-organization'

export default function OrganizationProblem({ error, retry }: { error: CombinedError; retry: () => void }) {
  const code = problemOf(error)?.code
  const isGone = code === 'NOT_A_MEMBER' || code === 'NOT_FOUND'
  useEffect(() => {
    if (isGone) rememberOrganization(null)
  }, [isGone])
  if (code === 'SECOND_FACTOR_REQUIRED') {
    return (
      <Empty
        icon={ShieldCheck}
        title="This organization asks for a second factor"
        action={
          <Link to="/account" search={{ tab: 'security' }} className={buttonClass('primary')}>
            Set it up
          </Link>
        }
      >
        It takes a minute and an app on your phone. Then this page opens.
      </Empty>
    )
  }
  if (isGone) {
    return (
      <Empty
        icon={Users}
        title="You do not belong to this organization"
        action={
          <Link to="/" className={buttonClass('primary')}>
            To your organizations
          </Link>
        }
      >
        It does not exist, or you are no longer a member. Ask an administrator for an invitation.
      </Empty>
    )
  }
  return <ProblemView error={error} retry={retry} />
}
