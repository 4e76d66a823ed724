// The overview's numbers and lists: each line links to its record.
import { Link, type LinkProps } from '@tanstack/react-router'
import { CircleCheck, Rocket } from 'lucide-react'
import type { ReactNode } from 'react'
import { type FragmentOf, readFragment } from '../../api/graphql'
import { stateInWords } from '../../app/agent-state'
import { levelOf, raiserOf } from '../../app/approvals/level'
import { conversationTitle, withoutCode } from '../../app/conversation-title'
import { useOrg } from '../../app/organization'
import { Avatar } from '../../ui/avatar'
import { buttonClass } from '../../ui/button'
import { Count } from '../../ui/count'
import { Empty } from '../../ui/empty'
import { Status } from '../../ui/status'
import { Countdown, Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { AttentionAgent, AttentionApproval, AttentionConversation } from './attention'
import { Numbers, type Overview } from './numbers'

interface Props {
  overview: Overview
  approvals: readonly ({ id: number } & FragmentOf<typeof AttentionApproval>)[]
  failed: readonly ({ id: number } & FragmentOf<typeof AttentionAgent>)[]
  unread: readonly ({ id: number } & FragmentOf<typeof AttentionConversation>)[]
}

/** Items that need a person, most urgent first. */
export function Attention({ overview, approvals, failed, unread }: Props) {
  const link = { org: useOrg().id }
  const hasAgents = overview.agents?.some(({ count }) => count > 0)
  if (hasAgents && approvals.length + failed.length + unread.length === 0) {
    return (
      <>
        <Numbers overview={overview} />
        <Empty icon={CircleCheck} title="Nothing needs you">
          Pending approvals, failed agents and unread conversations appear here as they arise.
        </Empty>
      </>
    )
  }
  return (
    <>
      <Numbers overview={overview} />
      {!hasAgents && <Begin />}
      {approvals.length > 0 && (
        <Lines
          title="Pending approvals"
          all={
            <Link to="/o/$org/approvals" params={link} search={{ tab: 'all' }}>
              All {overview.pendingApprovals?.total.toLocaleString()}
            </Link>
          }
        >
          {approvals.map((approval) => (
            <ApprovalLine key={approval.id} data={approval} />
          ))}
        </Lines>
      )}
      {failed.length > 0 && (
        <Lines
          title="Failed agents"
          all={
            <Link to="/o/$org/agents" params={link} search={{ status: ['ERROR'] }}>
              All failed agents
            </Link>
          }
        >
          {failed.map((agent) => (
            <AgentLine key={agent.id} data={agent} />
          ))}
        </Lines>
      )}
      {unread.length > 0 && (
        <Lines
          title="Unread conversations"
          all={
            <Link to="/o/$org/conversations" params={link} search={{ unread: true }}>
              All unread
            </Link>
          }
        >
          {unread.map((conversation) => (
            <ConversationLine key={conversation.id} data={conversation} />
          ))}
        </Lines>
      )}
    </>
  )
}

function Begin() {
  const { id, can } = useOrg()
  if (!can('agent.create')) {
    return (
      <Empty icon={Rocket} title="No agents yet">
        An owner or an administrator connects a server and starts the first one. What agents do and ask then
        appears here.
      </Empty>
    )
  }
  return (
    <Empty
      icon={Rocket}
      title="Start your first agent"
      action={
        <Link to="/o/$org/start" params={{ org: id }} className={buttonClass('primary')}>
          Get started
        </Link>
      }
    >
      An agent runs on a server of yours. Connect a server, start an agent, and ask it something: three steps,
      each checked as you go.
    </Empty>
  )
}

function Lines({ title, all, children }: { title: string; all: ReactNode; children: ReactNode }) {
  return (
    <section className="mb-8">
      <div className="mb-2 flex items-baseline justify-between gap-2">
        <h2 className="font-semibold">{title}</h2>
        <span className="text-sm text-accent-text hover:underline">{all}</span>
      </div>
      <ul className="divide-y divide-line overflow-hidden rounded-card border border-line">{children}</ul>
    </section>
  )
}

function ApprovalLine({ data }: { data: FragmentOf<typeof AttentionApproval> }) {
  const approval = readFragment(AttentionApproval, data)
  const { id, title, agent, expiresAt, assigneeName } = approval
  const raiser = raiserOf(agent)
  const org = useOrg().id
  return (
    <Line
      link={{ to: '/o/$org/approvals/$id', params: { org, id } } as LinkProps}
      picture={<Avatar {...raiser} square />}
    >
      <Main title={<Visible text={title} />}>
        {raiser.name}
        {assigneeName && <> · for {assigneeName}</>}
      </Main>
      {expiresAt && (
        <span className="hidden shrink-0 text-sm text-muted sm:block">
          <Countdown to={expiresAt} before="expires in " over="expired" />
        </span>
      )}
      <Status of="severity" value={levelOf(approval)} />
    </Line>
  )
}

function AgentLine({ data }: { data: FragmentOf<typeof AttentionAgent> }) {
  const { id, name, avatarUrl, status, statusReason, lastActionAt } = readFragment(AttentionAgent, data)
  const org = useOrg().id
  return (
    <Line
      link={{ to: '/o/$org/agents/$id', params: { org, id } } as LinkProps}
      picture={<Avatar name={name} url={avatarUrl} square />}
    >
      <Main title={name}>{stateInWords(status, statusReason).what}</Main>
      <span className="hidden shrink-0 text-sm text-muted sm:block">
        <Time at={lastActionAt} />
      </span>
      <Status of="agent" value={status} />
    </Line>
  )
}

function ConversationLine({ data }: { data: FragmentOf<typeof AttentionConversation> }) {
  const { id, ref, title, unread, lastActivityAt, contactName, agent, lastMessage } = readFragment(
    AttentionConversation,
    data,
  )
  const org = useOrg().id
  return (
    <Line
      link={{ to: '/o/$org/conversations/$id', params: { org, id } } as LinkProps}
      picture={<Avatar name={agent?.name ?? '?'} url={agent?.avatarUrl} square />}
    >
      <Main title={conversationTitle({ title, contactName, agent, ref })}>
        {lastMessage?.preview ? withoutCode(lastMessage.kind, lastMessage.preview) : agent?.name}
      </Main>
      <span className="shrink-0 text-sm text-muted">
        <Time at={lastActivityAt} as="short" />
      </span>
      <Count value={unread ?? 0} label="unread" />
    </Line>
  )
}

function Line({ link, picture, children }: { link: LinkProps; picture: ReactNode; children: ReactNode }) {
  return (
    <li>
      <Link {...link} className="flex min-h-14 items-center gap-3 px-4 py-2 -outline-offset-2 hover:bg-hover">
        {picture}
        {children}
      </Link>
    </li>
  )
}

function Main({ title, children }: { title: ReactNode; children: ReactNode }) {
  return (
    <span className="min-w-0 grow">
      <span className="block truncate font-medium">{title}</span>
      <span className="block truncate text-sm text-muted">{children}</span>
    </span>
  )
}
