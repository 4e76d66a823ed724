// The types of events, in words.
export const EVENT_TYPES = [
  { type: 'agent.failed', label: 'An agent has failed' },
  { type: 'approval.raised', label: 'An approval was raised' },
  { type: 'approval.decided', label: 'An approval was decided, or no longer waits' },
  { type: 'conversation.message_added', label: 'A person or an agent has written' },
  { type: 'turn.ended', label: 'A turn of an agent has ended' },
  { type: 'channel.deactivated', label: 'A channel was switched off by the service' },
  { type: 'spending.reached', label: 'A spending limit was reached' },
] as const
