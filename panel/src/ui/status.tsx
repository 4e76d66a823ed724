// Record states as badges: each has one word, icon and colour, defined here.
import {
  Ban,
  CircleCheck,
  CircleDashed,
  CirclePause,
  CirclePlay,
  CircleStop,
  CircleX,
  Clock,
  Hourglass,
  Loader,
  type LucideIcon,
  MessageCircleQuestion,
  ShieldAlert,
  ShieldQuestion,
  TriangleAlert,
  Unplug,
} from 'lucide-react'
import { Badge, type Tone } from './badge'

interface State {
  word: string
  tone: Tone
  icon: LucideIcon
  moving?: boolean
}

const AGENT: Record<string, State> = {
  RUNNING: { word: 'Running', tone: 'ok', icon: CirclePlay },
  SPAWNING: { word: 'Starting', tone: 'info', icon: Loader, moving: true },
  PAUSED: { word: 'Paused', tone: 'warn', icon: CirclePause },
  STOPPING: { word: 'Stopping', tone: 'plain', icon: Loader, moving: true },
  STOPPED: { word: 'Stopped', tone: 'plain', icon: CircleStop },
  ERROR: { word: 'Failed', tone: 'danger', icon: CircleX },
}
const APPROVAL: Record<string, State> = {
  PENDING: { word: 'Waiting', tone: 'warn', icon: ShieldQuestion },
  APPROVED: { word: 'Approved', tone: 'ok', icon: CircleCheck },
  DENIED: { word: 'Denied', tone: 'danger', icon: Ban },
  ANSWERED: { word: 'Answered', tone: 'ok', icon: CircleCheck },
  RESOLVED: { word: 'Resolved', tone: 'ok', icon: CircleCheck },
  DISMISSED: { word: 'Dismissed', tone: 'plain', icon: Ban },
  WITHDRAWN: { word: 'Withdrawn', tone: 'plain', icon: Ban },
  MANUAL: { word: 'Resolved by hand', tone: 'plain', icon: CircleCheck },
  EXPIRED: { word: 'Expired', tone: 'plain', icon: Clock },
}
const TURN: Record<string, State> = {
  QUEUED: { word: 'Queued', tone: 'plain', icon: Hourglass },
  RUNNING: { word: 'Working', tone: 'info', icon: Loader, moving: true },
  WAITING_APPROVAL: { word: 'Waits for a decision', tone: 'warn', icon: ShieldQuestion },
  WAITING_LIMIT: { word: 'Waits for a limit', tone: 'warn', icon: Clock },
  DONE: { word: 'Done', tone: 'ok', icon: CircleCheck },
  FAILED: { word: 'Failed', tone: 'danger', icon: CircleX },
  CANCELLED: { word: 'Cancelled', tone: 'plain', icon: Ban },
  INTERRUPTED: { word: 'Interrupted', tone: 'danger', icon: Unplug },
}
const SERVER: Record<string, State> = {
  ONLINE: { word: 'Online', tone: 'ok', icon: CircleCheck },
  OFFLINE: { word: 'Offline', tone: 'danger', icon: Unplug },
  PENDING: { word: 'Waiting to join', tone: 'info', icon: Hourglass },
  DEGRADED: { word: 'Overloaded', tone: 'warn', icon: TriangleAlert },
}
const CONVERSATION: Record<string, State> = {
  OPEN: { word: 'Open', tone: 'info', icon: CircleDashed },
  PENDING: { word: 'Waiting', tone: 'warn', icon: Hourglass },
  RESOLVED: { word: 'Resolved', tone: 'ok', icon: CircleCheck },
  ARCHIVED: { word: 'Archived', tone: 'plain', icon: Ban },
}
const SEVERITY: Record<string, State> = {
  CRITICAL: { word: 'Critical', tone: 'danger', icon: ShieldAlert },
  HIGH: { word: 'High', tone: 'danger', icon: ShieldAlert },
  MEDIUM: { word: 'Medium', tone: 'warn', icon: TriangleAlert },
  LOW: { word: 'Low', tone: 'plain', icon: MessageCircleQuestion },
}
const KINDS = {
  agent: AGENT,
  approval: APPROVAL,
  turn: TURN,
  server: SERVER,
  conversation: CONVERSATION,
  severity: SEVERITY,
}

/** The badge of a state. An unknown state shows its own name. */
export function Status({ of, value, tip }: { of: keyof typeof KINDS; value: string; tip?: string }) {
  const { word, tone, icon, moving } = stateOf(of, value)
  return (
    <Badge tone={tone} icon={icon} moving={moving} tip={tip}>
      {word}
    </Badge>
  )
}

export function stateOf(of: keyof typeof KINDS, value: string): State {
  return KINDS[of][value] ?? { word: words(value), tone: 'plain', icon: CircleDashed }
}

/** `WAITING_LIMIT` → `Waiting limit`, `EMAIL` → `E-mail`, `MCP_SERVER` → `MCP server`. */
export function words(name: string): string {
  const lower = name.replaceAll(/[_.]/g, ' ').toLowerCase()
  const spelled = lower
    .replaceAll(/\b(api|http|ip|mcp|sse|ssh)\b/g, (short) => short.toUpperCase())
    .replaceAll(/\bemail\b/g, 'e-mail')
  return spelled.charAt(0).toUpperCase() + spelled.slice(1)
}
