// The organization in numbers. Each links to exactly the records it counts; problems are highlighted.
import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useOrg } from '../../app/organization'
import { cx } from '../../ui/cx'
import { Countdown } from '../../ui/time'

export interface Overview {
  pendingApprovals: { total: number; mine: number; nextExpiresAt: string | null } | null
  agents: readonly { status: string; count: number }[] | null
  servers: { total: number; offline: number; pending: number } | null
  channelsInactive: number | null
  openConversations: number | null
  unreadConversations: number | null
  undeliveredConversations: number | null
}

export function Numbers({ overview }: { overview: Overview }) {
  const org = useOrg()
  const { pendingApprovals: approvals, agents, servers, channelsInactive: inactive } = overview
  const { openConversations, unreadConversations: unread, undeliveredConversations: undelivered } = overview
  const of = (status: string) => agents?.find((each) => each.status === status)?.count ?? 0
  return (
    <div className="mb-8 space-y-2">
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-card border border-line bg-line lg:grid-cols-4">
        {approvals && (
          <Tile name="Approvals" value={approvals.total} to="approvals" search={{ tab: 'all' }}>
            {approvals.nextExpiresAt && (
              <Part to="approvals" search={{ tab: 'all', sort: 'EXPIRES' }} marked>
                <Countdown to={approvals.nextExpiresAt} before="next expires in " over="one expires now" />
              </Part>
            )}
            {approvals.mine > 0 && (
              <Part to="approvals" search={{ tab: 'all', mine: true }}>
                {approvals.mine.toLocaleString()} assigned to you
              </Part>
            )}
            {approvals.total === 0 && 'none waiting'}
          </Tile>
        )}
        {agents && (
          <Tile
            name="Agents running"
            value={of('RUNNING')}
            of={agents.reduce((sum, { count }) => sum + count, 0)}
            to="agents"
            search={{ status: ['RUNNING'] }}
          >
            {org.stopped && 'on hold'}
            {of('ERROR') > 0 && (
              <Part to="agents" search={{ status: ['ERROR'] }} marked>
                {of('ERROR')} failed
              </Part>
            )}
            {of('ERROR') === 0 && !org.stopped && 'none failed'}
          </Tile>
        )}
        {openConversations !== null && (
          <Tile
            name="Open conversations"
            value={openConversations}
            to="conversations"
            search={{ status: ['OPEN', 'PENDING'] }}
          >
            {Boolean(undelivered) && (
              <Part to="conversations" search={{ undelivered: true }} marked>
                {undelivered?.toLocaleString()} not delivered
              </Part>
            )}
            <Part to="conversations" search={{ unread: true }}>
              {(unread ?? 0).toLocaleString()} unread
            </Part>
          </Tile>
        )}
        {servers && (
          <Tile
            name="Servers online"
            value={servers.total - servers.offline - servers.pending}
            of={servers.total || undefined}
            to="servers"
          >
            {servers.offline > 0 && (
              <Part to="servers" search={{ status: 'OFFLINE' }} marked>
                {servers.offline} offline
              </Part>
            )}
            {servers.pending > 0 && (
              <Part to="servers" search={{ status: 'PENDING' }}>
                {servers.pending} waiting to join
              </Part>
            )}
            {servers.total === 0 && 'none yet'}
            {servers.total > 0 && servers.offline + servers.pending === 0 && 'all reachable'}
          </Tile>
        )}
      </dl>
      {Boolean(inactive) && (
        <Part to="channels" search={{ inactive: true }} marked>
          {inactive === 1 ? '1 channel inactive' : `${inactive} channels inactive`}
        </Part>
      )}
    </div>
  )
}

interface ListLink {
  /** A list page of the organization. */
  to: 'approvals' | 'agents' | 'conversations' | 'servers' | 'channels'
  /** The filter for the counted records. */
  search?: Record<string, unknown>
}

function useLinkTo({ to, search = {} }: ListLink): LinkProps {
  return { to: `/o/$org/${to}`, params: { org: useOrg().id }, search } as LinkProps
}

interface TileProps extends ListLink {
  name: string
  value: number
  of?: number
  /** Notable parts, with their own numbers and links. */
  children: ReactNode
}

function Tile({ name, value, of, children, ...place }: TileProps) {
  return (
    <div className="relative bg-canvas p-4 hover:bg-hover">
      <dt className="text-sm text-muted">
        <Link {...useLinkTo(place)} className="after:absolute after:inset-0">
          {name}
        </Link>
      </dt>
      <dd>
        <span className="text-2xl font-semibold tabular-nums">{value.toLocaleString()}</span>
        {of !== undefined && <span className="text-muted tabular-nums"> of {of.toLocaleString()}</span>}
        <span className="flex flex-wrap gap-x-3 text-sm text-muted">{children}</span>
      </dd>
    </div>
  )
}

/** A number above the tile's own link. `marked` highlights a problem. */
function Part({ marked, children, ...place }: ListLink & { marked?: boolean; children: ReactNode }) {
  return (
    <Link
      {...useLinkTo(place)}
      className={cx(
        'relative z-1 text-sm hover:underline',
        marked ? 'font-medium text-danger-text' : 'text-muted',
      )}
    >
      {children}
    </Link>
  )
}
