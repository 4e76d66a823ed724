// The overview's lists: one line for each record, which leads to it.
import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type FragmentOf, graphql, readFragment } from '../../api/graphql'
import { stateInWords } from '../../app/agent-state'
import { conversationTitle } from '../../app/conversation-title'
import { useOrg } from '../../app/organization'
import { Avatar } from '../../ui/avatar'
import { Count } from '../../ui/badge'
import { Status } from '../../ui/status'
import { Countdown, Time } from '../../ui/time'
import { Visible } from '../../ui/visible'

export const AttentionApproval = graphql(`
  fragment AttentionApproval on Approval {
    id title severity risk expiresAt createdAt assigneeName
    agent { id name avatarUrl }
  }
`)
export const AttentionAgent = graphql(`
  fragment AttentionAgent on Agent {
    id name avatarUrl status statusReason lastActionAt
  }
`)
export const AttentionConversation = graphql(`
  fragment AttentionConversation on Conversation {
    id ref title unread lastActivityAt contactName
    agent { id name avatarUrl }
    lastMessage { seq preview }
  }
`)

export function Lines({ title, all, children }: { title: string; all: ReactNode; children: ReactNode }) {
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

export function ApprovalLine({ data }: { data: FragmentOf<typeof AttentionApproval> }) {
  const { id, title, severity, agent, expiresAt, assigneeName } = readFragment(AttentionApproval, data)
  const org = useOrg().id
  return (
    <Line
      link={{ to: '/o/$org/approvals/$id', params: { org, id } } as LinkProps}
      picture={<Avatar name={agent?.name ?? '?'} url={agent?.avatarUrl} square />}
    >
      <Main title={<Visible text={title} />}>
        {agent?.name ?? 'Muster'}
        {assigneeName && <> · for {assigneeName}</>}
      </Main>
      {expiresAt && (
        <span className="hidden shrink-0 text-sm text-muted sm:block">
          <Countdown to={expiresAt} before="expires in " over="expired" />
        </span>
      )}
      <Status of="severity" value={severity} />
    </Line>
  )
}

export function AgentLine({ data }: { data: FragmentOf<typeof AttentionAgent> }) {
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

export function ConversationLine({ data }: { data: FragmentOf<typeof AttentionConversation> }) {
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
        {lastMessage?.preview ?? agent?.name}
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
