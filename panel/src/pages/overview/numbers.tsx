// The organization in a few numbers. Each leads to what it counts; what is not well is marked.
import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useOrg } from '../../app/organization'
import { cx } from '../../ui/cx'
import { Countdown } from '../../ui/time'

interface Overview {
  pendingApprovals: { total: number; mine: number; nextExpiresAt: string | null } | null
  agents: readonly { status: string; count: number }[] | null
  servers: { total: number; offline: number; pending: number } | null
  channelsInactive: number | null
  openConversations: number | null
  unreadConversations: number | null
  deliveriesFailed: number | null
}

export function Numbers({ overview }: { overview: Overview }) {
  const org = useOrg()
  const params = { org: org.id }
  const {
    pendingApprovals,
    agents,
    servers,
    channelsInactive,
    openConversations,
    unreadConversations,
    deliveriesFailed,
  } = overview
  const all = (agents ?? []).reduce((sum, { count }) => sum + count, 0)
  const running = agents?.find(({ status }) => status === 'RUNNING')?.count ?? 0
  const failed = agents?.find(({ status }) => status === 'ERROR')?.count ?? 0
  return (
    <div className="mb-8 space-y-2">
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-card border border-line bg-line lg:grid-cols-4">
        {pendingApprovals && (
          <Tile
            link={{ to: '/o/$org/approvals', params } as LinkProps}
            name="Approvals"
            value={pendingApprovals.total}
            marked={pendingApprovals.total > 0}
          >
            {pendingApprovals.nextExpiresAt ? (
              <Countdown
                to={pendingApprovals.nextExpiresAt}
                before="next expires in "
                over="one expires now"
              />
            ) : pendingApprovals.mine > 0 ? (
              `${pendingApprovals.mine} assigned to you`
            ) : (
              'none waiting'
            )}
          </Tile>
        )}
        {agents && (
          <Tile
            link={{ to: '/o/$org/agents', params } as LinkProps}
            name="Agents running"
            value={running}
            of={all}
            marked={failed > 0}
          >
            {[org.stopped && 'on hold', failed > 0 ? `${failed} failed` : !org.stopped && 'none failed']
              .filter(Boolean)
              .join(' · ')}
          </Tile>
        )}
        {openConversations !== null && (
          <Tile
            link={{ to: '/o/$org/conversations', params } as LinkProps}
            name="Open conversations"
            value={openConversations}
            marked={Boolean(deliveriesFailed)}
          >
            {deliveriesFailed ? `${deliveriesFailed} not delivered` : `${unreadConversations ?? 0} unread`}
          </Tile>
        )}
        {servers && (
          <Tile
            link={{ to: '/o/$org/servers', params } as LinkProps}
            name="Servers online"
            value={servers.total - servers.offline - servers.pending}
            of={servers.total || undefined}
            marked={servers.offline > 0}
          >
            {[
              servers.total === 0 && 'none yet',
              servers.offline > 0 && `${servers.offline} offline`,
              servers.pending > 0 && `${servers.pending} waiting to join`,
            ]
              .filter(Boolean)
              .join(' · ') || 'all reachable'}
          </Tile>
        )}
      </dl>
      {Boolean(channelsInactive) && (
        <Link to="/o/$org/channels" params={params} className="link text-sm">
          {channelsInactive === 1 ? '1 channel inactive' : `${channelsInactive} channels inactive`}
        </Link>
      )}
    </div>
  )
}

interface TileProps {
  link: LinkProps
  name: string
  value: number
  of?: number
  /** Something of it is not well. */
  marked: boolean
  children: ReactNode
}

function Tile({ link, name, value, of, marked, children }: TileProps) {
  return (
    <div className="relative bg-canvas p-4 hover:bg-hover">
      <dt className="text-sm text-muted">
        <Link {...link} className="after:absolute after:inset-0">
          {name}
        </Link>
      </dt>
      <dd>
        <span className="text-2xl font-semibold tabular-nums">{value}</span>
        {of !== undefined && <span className="text-muted tabular-nums"> of {of}</span>}
        <span className={cx('block text-sm', marked ? 'font-medium text-danger-text' : 'text-muted')}>
          {children}
        </span>
      </dd>
    </div>
  )
}
