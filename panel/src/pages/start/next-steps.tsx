// The steps after the first answer that make the agent useful. Each is a link, and is checked even if others do it.
import { Link } from '@tanstack/react-router'
import { Circle, CircleCheck } from 'lucide-react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { buttonClass } from '../../ui/button'
import { nextSteps } from './next'
import { isOfDemo } from './suggestions'

const NextQuery = graphql(`
  query NextSteps($orgId: Id!, $agentId: Id!) {
    organization(orgId: $orgId) { id modelCredentials { id } }
    agent(orgId: $orgId, id: $agentId) {
      id modelOverride hasModelCredential approvalAskThreshold approvalBlockThreshold approvalCategories
    }
    skills(orgId: $orgId, page: 1, limit: 200) { data { id assignmentCount } }
    channelFeed(orgId: $orgId, limit: 1) { data { id } }
    members(orgId: $orgId, page: 1, limit: 1) { total }
    invitations(orgId: $orgId, page: 1, limit: 1) { total }
  }
`)

export function NextSteps({ agentId }: { agentId: number }) {
  const { id: org } = useOrg()
  const { data } = useLive({
    query: NextQuery,
    variables: { orgId: org, agentId },
    on: ['ORGANIZATION', 'AGENT', 'SKILL', 'CHANNEL', 'MEMBER', 'INVITATION'],
  })
  if (!data) return null
  const { organization, agent, skills, channelFeed, members, invitations } = data
  const isSet = (value: number | null | undefined) => value !== null && value !== undefined
  const steps = nextSteps(
    {
      isOfDemo: isOfDemo(agent),
      hasModelCredential: Boolean(organization?.modelCredentials.length || agent?.hasModelCredential),
      hasAssignedSkill: Boolean(skills?.data.some(({ assignmentCount }) => assignmentCount > 0)),
      hasApprovalRules:
        isSet(agent?.approvalAskThreshold) ||
        isSet(agent?.approvalBlockThreshold) ||
        Boolean(agent?.approvalCategories.length),
      hasChannel: Boolean(channelFeed?.data.length),
      hasOthers: (members?.total ?? 1) > 1 || (invitations?.total ?? 0) > 0,
    },
    org,
    agentId,
  )
  const done = steps.filter(({ isDone }) => isDone).length
  return (
    <section aria-label="Next steps" className="mt-6">
      <h2 className="mb-2 flex items-baseline justify-between gap-2 font-semibold">
        Next steps
        <span role="status" className="text-sm font-normal text-muted">
          {done} of {steps.length} done
        </span>
      </h2>
      <ul className="divide-y divide-line rounded-card border border-line">
        {steps.map(({ id, title, about, action, isDone, link }) => (
          <li key={id} className="flex flex-wrap items-center gap-3 px-4 py-2.5">
            {isDone ? (
              <CircleCheck size={18} aria-hidden className="shrink-0 text-ok-text" />
            ) : (
              <Circle size={18} aria-hidden className="shrink-0 text-faint" />
            )}
            <span className="min-w-0 grow basis-48">
              <span className="block font-medium">
                {title}
                {isDone && <span className="sr-only">: done</span>}
              </span>
              <span className="block text-sm text-muted">{about}</span>
            </span>
            <Link {...link} className={buttonClass(isDone ? 'quiet' : 'secondary')}>
              {isDone ? 'Show' : action}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
