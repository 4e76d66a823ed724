// Whether a channel is active and connected; if not, why, and what to do.
import { CircleCheck, CirclePause, TriangleAlert, Unplug } from 'lucide-react'
import { Badge } from '../../ui/badge'
import { words } from '../../ui/status'

export interface State {
  isActive: boolean
  inactiveReason: string | null
  /** The connection to the vendor. Null for channels without one. */
  link: { state: string; cause: string | null } | null
}

interface Reason {
  word: string
  why: string
  todo: string
  /** Needs no action. */
  isQuiet?: boolean
}

const WAITS = 'Outgoing messages wait until then.'

const REASONS: Record<string, Reason> = {
  MANUAL: {
    word: 'Switched off',
    why: 'The channel was switched off. Nothing is received or sent.',
    todo: 'Switch the channel on when you need it again.',
    isQuiet: true,
  },
  AUTH_FAILED: {
    word: 'Sign-in refused',
    why: 'The other side refused the token or password.',
    todo: `Store a new one below, then switch the channel on. ${WAITS}`,
  },
  DELIVERY_FAILING: {
    word: 'Deliveries fail',
    why: 'No message was delivered for days.',
    todo: `Check the address below, then switch the channel on. ${WAITS}`,
  },
  GONE: {
    word: 'Gone',
    why: 'The other side says that the address no longer exists.',
    todo: `Correct the address below and switch the channel on, or delete the channel. ${WAITS}`,
  },
  AGENT_ARCHIVED: {
    word: 'Agent deleted',
    why: 'The agent was deleted.',
    todo: 'Restore the agent, or delete the channel and connect a new one to another agent.',
  },
  PLAN_LIMIT: {
    word: 'Over the limit',
    why: 'The agent has as many channels as an agent may have.',
    todo: 'Switch off or delete another channel, then switch this one on.',
  },
}

/** Why the channel is off and what to do, in a sentence or two. */
export function reasonOf(reason: string | null): string {
  if (!reason) return 'The channel is off. Switch it on when you need it.'
  const known = REASONS[reason]
  return known ? `${known.why} ${known.todo}` : `${words(reason)}. Switch the channel on to try again.`
}

/** Whether it is active but receives nothing. */
export const isDisconnected = ({ isActive, link }: State) => isActive && link?.state === 'DOWN'

export function ChannelState(state: State) {
  const { isActive, inactiveReason, link } = state
  if (isDisconnected(state)) {
    return (
      <Badge tone="warn" icon={Unplug} tip={link?.cause ?? undefined}>
        Not receiving
      </Badge>
    )
  }
  if (isActive) {
    return (
      <Badge tone="ok" icon={CircleCheck}>
        On
      </Badge>
    )
  }
  const known = inactiveReason ? REASONS[inactiveReason] : undefined
  const isQuiet = !inactiveReason || known?.isQuiet === true
  return (
    <Badge
      tone={isQuiet ? 'plain' : 'warn'}
      icon={isQuiet ? CirclePause : TriangleAlert}
      tip={reasonOf(inactiveReason)}
    >
      {inactiveReason ? (known?.word ?? words(inactiveReason)) : 'Off'}
    </Badge>
  )
}
