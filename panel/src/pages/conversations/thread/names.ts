// Names of a thread's participants. Pure.
import type { MessageRecord } from '../../../app/thread/fields'

export interface Names {
  agent: string
  agentAvatar: string | null
  /** The conversation's channel sends nothing until someone changes it. */
  isChannelOff: boolean
  viewer: { id: number; name: string; avatarUrl: string | null }
}

export function authorOf(message: MessageRecord, names: Names): string {
  if (message.authorUserId === names.viewer.id) return 'You'
  if (message.authorName) return message.authorName
  return { ASSISTANT: names.agent, SYSTEM: 'Muster', TOOL: 'Tool', USER: 'Someone' }[message.role]
}
