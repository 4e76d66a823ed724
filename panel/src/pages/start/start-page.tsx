// The first run: a server, an agent, a first answer. Each step reflects the current state, so it can be resumed, and
// steps done by others count too.
import { Link } from '@tanstack/react-router'
import { CircleCheck, Eye, EyeOff, PartyPopper, Rocket } from 'lucide-react'
import type { ReactNode } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { usePreferences } from '../../app/preferences'
import { Button, buttonClass } from '../../ui/button'
import { cx } from '../../ui/cx'
import { Empty } from '../../ui/empty'
import { PageBody, PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { AgentStep } from './agent-step'
import { AnswerStep } from './answer-step'
import { NextSteps } from './next-steps'
import { progressOf } from './progress'
import { RealAgent } from './real-agent'
import { ServerStep } from './server-step'

const StartQuery = graphql(`
  query FirstRun($orgId: Id!) {
    servers(orgId: $orgId, page: 1, limit: 20, sort: CREATED) { data { id name status hasProvisioningToken } }
    agentFeed(orgId: $orgId, sort: CREATED, limit: 20) {
      data { id name status statusReason statusDetail modelOverride mcpServers { id } server { id name } viewerCan }
    }
    conversationFeed(orgId: $orgId, limit: 100) {
      data { id agentId transport lastMessage { seq role } }
    }
    mine: conversationFeed(orgId: $orgId, mine: true, order: asc, limit: 100) {
      data { id agentId transport lastMessage { seq role } }
    }
  }
`)

export type FirstRun = ResultOf<typeof StartQuery>
export type StartServer = NonNullable<FirstRun['servers']>['data'][number]
export type StartAgent = NonNullable<FirstRun['agentFeed']>['data'][number]
export type StartTalk = NonNullable<FirstRun['conversationFeed']>['data'][number]

export function StartPage() {
  const org = useOrg()
  if (!org.can('agent.create')) return <ForOthers />
  return <FirstRunPage />
}

/** For users without the permission to set things up. */
function ForOthers() {
  const org = useOrg()
  return (
    <>
      <PageHeader title="Get started" />
      <Empty
        icon={Rocket}
        title="Others set this up"
        action={
          <Link to="/o/$org" params={{ org: org.id }} className={buttonClass('primary')}>
            To the overview
          </Link>
        }
      >
        Your role can’t connect servers or create agents. An owner or an administrator does that; what the
        agents do then appears here in the panel.
      </Empty>
    </>
  )
}

function FirstRunPage() {
  const org = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: StartQuery,
    variables: { orgId: org.id },
    on: ['SERVER', 'AGENT', 'CONVERSATION', 'MESSAGE'],
  })
  return (
    <>
      <PageHeader
        title="Get started"
        doc="first-agent.md"
        about="Three steps to the first answer. Each is checked as you go."
        actions={<PutAway />}
      />
      <PageBody narrow>
        {error && !data?.servers ? (
          <ProblemView error={error} retry={refetch} />
        ) : loading || !data ? (
          <ListSkeleton rows={3} />
        ) : (
          <Steps data={data} />
        )}
      </PageBody>
    </>
  )
}

/** Whether this person has put the page away, in this organization. */
function usePutAway() {
  const { id } = useOrg()
  const [{ startPutAway = [] }] = usePreferences()
  return startPutAway.includes(id)
}

/** Takes the page out of the navigation and the next steps out of the page, for this person and organization. The
 * palette still finds it. */
function PutAway() {
  const { id } = useOrg()
  const [, change] = usePreferences()
  const isAway = usePutAway()
  return (
    <Button
      icon={isAway ? Eye : EyeOff}
      onClick={() =>
        void change(({ startPutAway: away = [] }) => ({
          startPutAway: isAway ? away.filter((org) => org !== id) : [...away, id],
        }))
      }
    >
      {isAway ? 'Show in the navigation' : 'Put away'}
    </Button>
  )
}

function Steps({ data }: { data: FirstRun }) {
  const { servers, agents, talks, server, agent, answered } = progressOf(data)
  const done = [Boolean(server), Boolean(agent), Boolean(answered)]
  const now = done.indexOf(false)
  const asked = agents.find(({ id }) => id === answered?.agentId) ?? agent
  const isAway = usePutAway()
  return (
    <>
      <ol className="space-y-4">
        <Step
          number={1}
          title="Connect a server"
          state={stateOf(0, done, now)}
          done={server && `${server.name} is connected.`}
        >
          <ServerStep servers={servers} />
        </Step>
        <Step
          number={2}
          title="Start an agent"
          state={stateOf(1, done, now)}
          done={agent && `${agent.name} is running.`}
        >
          <AgentStep server={server} agents={agents} />
        </Step>
        <Step
          number={3}
          title="Ask it something"
          state={stateOf(2, done, now)}
          done={answered && 'It has answered.'}
          keep
        >
          {asked && (
            <AnswerStep agent={asked} talk={answered ?? talks.find(({ agentId }) => agentId === asked.id)} />
          )}
        </Step>
      </ol>
      {now === -1 && <Done agentId={agent?.id} conversationId={answered?.id} />}
      {answered && asked && !isAway && <NextSteps agentId={asked.id} />}
      {now === -1 && server && <RealAgent server={server} />}
    </>
  )
}

type State = 'done' | 'now' | 'later'
const stateOf = (step: number, done: boolean[], now: number): State =>
  done[step] ? 'done' : step === now ? 'now' : 'later'

interface StepProps {
  number: number
  title: string
  state: State
  /** The result of a finished step. */
  done: string | undefined | false
  /** Keeps the content after finishing, because it is worth seeing. */
  keep?: boolean
  children: ReactNode
}

function Step({ number, title, state, done, keep, children }: StepProps) {
  return (
    <li
      aria-current={state === 'now' ? 'step' : undefined}
      className={cx('rounded-card border p-4', state === 'now' ? 'border-accent-text' : 'border-line')}
    >
      <div className="flex items-center gap-3">
        <span
          aria-hidden
          className={cx(
            'flex size-7 shrink-0 items-center justify-center rounded-full text-sm font-semibold',
            state === 'done' && 'bg-ok-soft text-ok-text',
            state === 'now' && 'bg-accent text-on-accent',
            state === 'later' && 'bg-sunken text-muted',
          )}
        >
          {state === 'done' ? <CircleCheck size={16} /> : number}
        </span>
        <h2 className={cx('min-w-0 grow font-semibold', state === 'later' && 'text-muted')}>{title}</h2>
        {state === 'done' && (
          <span role="status" className="text-sm text-ok-text">
            {done}
          </span>
        )}
      </div>
      {(state === 'now' || (state === 'done' && keep)) && <div className="mt-3 sm:pl-10">{children}</div>}
    </li>
  )
}

function Done({
  agentId,
  conversationId,
}: {
  agentId: number | undefined
  conversationId: number | undefined
}) {
  const { id: org } = useOrg()
  return (
    <section className="mt-6 rounded-card bg-ok-soft p-4 text-ok-text" data-outlined>
      <h2 className="flex items-center gap-2 font-semibold">
        <PartyPopper size={16} aria-hidden /> All done
      </h2>
      <p className="mt-3 flex flex-wrap gap-2">
        {agentId && (
          <Link to="/o/$org/agents/$id" params={{ org, id: agentId }} className={buttonClass('primary')}>
            Open the agent
          </Link>
        )}
        {conversationId && (
          <Link to="/o/$org/conversations/$id" params={{ org, id: conversationId }} className={buttonClass()}>
            Open the conversation
          </Link>
        )}
        <Link to="/o/$org" params={{ org }} className={buttonClass()}>
          To the overview
        </Link>
      </p>
    </section>
  )
}
