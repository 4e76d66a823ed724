// Texts about approvals. Pure, tested.
import type { Json } from '../../api/graphql'
import { cutWords } from '../cut-words'
import type { ApprovalRecord } from './fields'
import { levelOf } from './level'

interface KindWords {
  /** Short name for lists and filters. */
  name: string
  /** What happened and what is asked. */
  about: string
  /** The same once it has ended. */
  ended: string
  /** What each answer does. */
  meaning: string
}

export const KINDS: Record<ApprovalRecord['kind'], KindWords> = {
  ACTION: {
    name: 'Action',
    about: 'The agent wants to do this and waits.',
    ended: 'The agent asked to do this.',
    meaning:
      'Approve: the agent does exactly what is shown here, at once. Deny: it gets your comment, and continues without it.',
  },
  QUESTION: {
    name: 'Question',
    about: 'The agent asks you something and waits.',
    ended: 'The agent asked this.',
    meaning: 'The agent gets your answer word for word, and continues.',
  },
  ACCESS_REQUEST: {
    name: 'Unknown sender',
    about: 'A sender who is not on the channel’s list wrote to this agent.',
    ended: 'A sender who was not on the channel’s list wrote to this agent.',
    meaning:
      'Add the sender to the channel’s list first if the agent should answer. “Mark as resolved” only closes this request.',
  },
  AUTH_REQUIRED: {
    name: 'Model access refused',
    about: 'The agent can’t work until it has access to its model again.',
    ended: 'The agent had no access to its model.',
    meaning: 'Fix the credential first. “Mark as resolved” only closes this request.',
  },
  CHANNEL_ERROR: {
    name: 'Channel failed',
    about: 'Messages of this channel are not delivered.',
    ended: 'Messages of this channel were not delivered.',
    meaning: 'Fix the channel first. “Mark as resolved” only closes this request.',
  },
  COST_GUARD: {
    name: 'Spending',
    about: 'A spending limit is reached.',
    ended: 'A spending limit was reached.',
    meaning:
      'Look at the agent’s work first. If you allow more, waiting turns continue by themselves, up to the new limit. “Mark as resolved” only closes this request; waiting turns keep waiting.',
  },
  SERVER_ALERT: {
    name: 'Server',
    about: 'A server is overloaded or can’t be reached.',
    ended: 'A server was overloaded or could not be reached.',
    meaning: 'Look at the server first. “Mark as resolved” only closes this request.',
  },
}

/** What the approval is about, in the tense of its state. */
export const aboutOf = ({ kind, status }: Pick<ApprovalRecord, 'kind' | 'status'>): string =>
  status === 'PENDING' ? KINDS[kind].about : KINDS[kind].ended

/** Irreversible at any risk: categories of policies/risk.toml, and likely names of operators' own categories. */
const IRREVERSIBLE = /delet|destroy|money|pay|refund/i

type Weighed = Pick<ApprovalRecord, 'risk' | 'severity'> & { category?: string | null }

/** Whether a slip would be bad enough to make approving slower. */
export function isHighRisk({ risk, severity, category }: Weighed): boolean {
  const level = levelOf({ risk, severity })
  return level === 'HIGH' || level === 'CRITICAL' || IRREVERSIBLE.test(category ?? '')
}

/** "Risk 85 of 100: critical". */
export function riskWords({ risk, severity }: Weighed): string {
  const level = levelOf({ risk, severity }).toLowerCase()
  return risk === null ? `Severity: ${level}` : `Risk ${risk} of 100: ${level}`
}

/** `data_loss` in the risk rules → "Data loss". */
export function categoryWords(category: string): string {
  const plain = category.replaceAll(/[_.-]+/g, ' ').trim()
  return plain.charAt(0).toLocaleUpperCase() + plain.slice(1)
}

type Ended = Pick<ApprovalRecord, 'status' | 'outcome' | 'decidedBy' | 'question' | 'answer' | 'decidedVia'> &
  Partial<Pick<ApprovalRecord, 'withdrawnBy' | 'withdrawnWith'>>

const VERBS: Record<NonNullable<ApprovalRecord['outcome']>, string> = {
  APPROVED: 'Approved',
  DENIED: 'Denied',
  ANSWERED: 'Answered',
  MANUAL: 'Marked as resolved',
  DISMISSED: 'Dismissed',
  EXPIRED: 'Expired',
  WITHDRAWN: 'Withdrawn',
}

/** The outcome, by whom and where: "Approved by Ada Admin in a chat". Says "you" for `viewerId`. */
export function outcomeWords(ended: Ended, viewerId?: number): string {
  const { status, outcome, decidedBy } = ended
  if (status === 'PENDING') return 'Waiting'
  if (outcome === 'EXPIRED' || status === 'EXPIRED') return 'Expired without a decision'
  if (outcome === 'WITHDRAWN')
    return `Withdrawn: ${cutWords(ended.withdrawnBy, ended.withdrawnWith) ?? 'the agent no longer waits'}`
  const verb = outcome ? VERBS[outcome] : 'Closed'
  const by = deciderWords(decidedBy, viewerId)
  const where = ended.decidedVia === 'CHANNEL' ? ' in a chat' : ''
  return by ? `${verb} by ${by}${where}` : verb
}

function deciderWords(by: Ended['decidedBy'], viewerId?: number): string | null {
  if (!by) return null
  if (by.kind === 'SYSTEM') return 'Muster'
  if (by.kind === 'USER' && by.id !== null && by.id === viewerId) return 'you'
  return by.name ?? 'someone'
}

/** The answer in readable form. */
export function answerWords({ question, answer }: Pick<Ended, 'question' | 'answer'>): string {
  if (!answer) return ''
  const labels = answer.options.map((id) => question?.options.find((option) => option.id === id)?.label ?? id)
  return [labels.join(', '), answer.text].filter(Boolean).join(' – ')
}

/** One line for lists: the tool and the start of its input. */
export function inputLine({
  request,
  question,
  body,
}: Pick<ApprovalRecord, 'request' | 'question' | 'body'>) {
  if (request) {
    const input = request.input === null ? '' : JSON.stringify(request.input)
    return [request.tool, input].filter(Boolean).join(' ').slice(0, 300)
  }
  return (question?.text ?? body ?? '').slice(0, 300)
}

/** All texts in a JSON value, including keys: any of them may hide characters. */
export function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, item]) => [name, ...textsIn(item)])
}
