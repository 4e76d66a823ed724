// How dangerous an approval is, and who raised it: one scale and one name on every page. Pure, tested.
import type { ApprovalRecord } from './fields'

export type Level = ApprovalRecord['severity']

/** The least risk of each level, as the service sets severities. */
const LEVELS: [from: number, level: Level][] = [
  [85, 'CRITICAL'],
  [70, 'HIGH'],
  [40, 'MEDIUM'],
]

/** The level of the risk. Approvals without a risk, such as questions and alerts, have only a severity. */
export function levelOf({ risk, severity }: Pick<ApprovalRecord, 'risk' | 'severity'>): Level {
  if (risk === null) return severity
  return LEVELS.find(([from]) => risk >= from)?.[1] ?? 'LOW'
}

/** The agent that asks, or Muster, which raises alerts. */
export const raiserOf = (agent: { name: string; avatarUrl?: string | null } | null) => ({
  name: agent?.name ?? 'Muster',
  url: agent?.avatarUrl,
})
