// Which approvals the inbox shows, which of them are one row, and which can be decided together. Pure, tested.
import type { ApprovalRecord } from '../../app/approvals/fields'
import { isConnection } from '../../app/approvals/fix'
import { isHighRisk } from '../../app/approvals/words'

type Kind = ApprovalRecord['kind']
export type Tab = 'decisions' | 'alerts' | 'all'

/** An agent or its work depends on the answer. */
const DECISIONS: Kind[] = ['ACTION', 'QUESTION', 'COST_GUARD']
/** Something is wrong; the answer only takes it off the list. */
const ALERTS: Kind[] = ['ACCESS_REQUEST', 'AUTH_REQUIRED', 'CHANNEL_ERROR', 'SERVER_ALERT']

export const KINDS_OF: Record<Tab, Kind[] | null> = { decisions: DECISIONS, alerts: ALERTS, all: null }

const isAlert = ({ kind }: Pick<ApprovalRecord, 'kind'>) => ALERTS.includes(kind)

/** A chosen kind may be of either tab. */
export const tabOf = ({ tab = 'decisions', kind }: { tab?: Tab; kind?: Kind[] }): Tab => (kind ? 'all' : tab)

/** One row for equal alerts: the first stands for all. `equal` has all of each such row. */
export function groupAlerts(approvals: readonly ApprovalRecord[]) {
  const equal = new Map<number, ApprovalRecord[]>()
  const groups = new Map<string, ApprovalRecord[]>()
  const items = approvals.filter((approval) => {
    if (!isAlert(approval)) return true
    const { kind, title, agent, channelId, serverId, status, outcome } = approval
    const key = JSON.stringify([kind, title, agent?.id, channelId, serverId, status, outcome])
    const group = groups.get(key)
    if (group) {
      group.push(approval)
      return false
    }
    const first = [approval]
    groups.set(key, first)
    equal.set(approval.id, first)
    return true
  })
  return { items, equal }
}

/** Whether one press decides it: alerts, and actions whose approval need not be held. */
export function isQuick(approval: ApprovalRecord): boolean {
  if (approval.status !== 'PENDING' || !approval.viewerCan.includes('approval.resolve')) return false
  return isAlert(approval) || (approval.kind === 'ACTION' && !isHighRisk(approval) && !isConnection(approval))
}

/** The approvals to decide together: alerts, or actions. */
export function quickOnes(approvals: readonly ApprovalRecord[]): ApprovalRecord[] {
  const quick = approvals.filter(isQuick)
  const actions = quick.filter(({ kind }) => kind === 'ACTION')
  return actions.length > 1 ? actions : quick.filter(isAlert)
}

/** "2 wait for a decision, 1 alert is open": as many as the navigation counts. */
export function pendingWords({ decisions, alerts }: Record<'decisions' | 'alerts', number>): string {
  const parts = [
    (decisions > 0 || alerts === 0) &&
      `${decisions.toLocaleString()} ${decisions === 1 ? 'waits' : 'wait'} for a decision`,
    alerts > 0 && `${alerts.toLocaleString()} ${alerts === 1 ? 'alert is' : 'alerts are'} open`,
  ]
  return parts.filter(Boolean).join(', ')
}
