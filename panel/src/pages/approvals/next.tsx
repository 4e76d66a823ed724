// After a decision on an approval's own page: the way to the next pending one.
import { Link } from '@tanstack/react-router'
import { ArrowRight } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { buttonClass } from '../../ui/button'
import { Visible } from '../../ui/visible'

const NextQuery = graphql(`
  query NextApproval($orgId: Id!) {
    approvalFeed(orgId: $orgId, status: [PENDING], snoozed: false, sort: RISK, limit: 1) { data { id title } }
  }
`)

export function NextApproval() {
  const { id: org } = useOrg()
  const { data } = useLive({ query: NextQuery, variables: { orgId: org }, on: ['APPROVAL'] })
  if (!data) return null
  const next = data.approvalFeed?.data[0]
  if (!next) return <p className="mt-3 text-muted">Nothing else waits for you.</p>
  return (
    <Link
      to="/o/$org/approvals/$id"
      params={{ org, id: next.id }}
      className={`mt-3 max-w-full ${buttonClass()}`}
    >
      <span className="shrink-0">Next:</span>
      <span className="min-w-0 truncate">
        <Visible text={next.title} />
      </span>
      <ArrowRight size={15} aria-hidden className="shrink-0" />
    </Link>
  )
}
