// Describes the delivery of a message through a channel. Pure, tested.
import type { MessageRecord } from '../../../app/thread/fields'
import type { ConversationRecord } from '../record'

export type MessageDelivery = NonNullable<MessageRecord['delivery']>

export interface DeliveryWords {
  is: 'waiting' | 'sent' | 'failed' | 'unsent'
  said: string
  /** An explanation or the next step. */
  more?: string
  canRetry?: boolean
}

const FAILURES: Record<NonNullable<MessageDelivery['code']>, string> = {
  refused: 'The other side refused the message.',
  target_gone: 'The chat or address does not accept our messages. Ask the person.',
  unknown_outcome: 'No one knows whether the message arrived. Check first: sent again, it may arrive twice.',
  gave_up: 'Every attempt failed. Correct the cause, then send it again.',
  bounced: 'The message came back. Correct the address.',
  earlier_part: 'An earlier part of the message failed.',
}

/** Whether a channel sends nothing until someone changes it. */
export const isOff = (channel: ConversationRecord['channel']): boolean =>
  channel !== null &&
  (channel.direction === 'INBOUND' || (!channel.isActive && channel.inactiveReason === 'MANUAL'))

export function deliveryWords({ status, code, error }: MessageDelivery, isOff = false): DeliveryWords {
  switch (status) {
    case 'PENDING':
      return {
        is: 'waiting',
        said: error ? 'Not sent yet; Muster tries again' : 'Waits to be sent',
        more: error ?? undefined,
      }
    case 'SENDING':
      return { is: 'waiting', said: 'On its way' }
    case 'SENT':
      return { is: 'sent', said: 'Sent' }
    case 'DELIVERED':
      return { is: 'sent', said: 'Delivered' }
    case 'READ':
      return { is: 'sent', said: 'Read' }
    case 'SKIPPED':
      return { is: 'unsent', said: 'Not sent', more: 'The channel was switched off, or does not send.' }
    default: {
      // A bounced message can't be sent again unchanged.
      const isRetryable = code !== 'bounced'
      const next = isRetryable && isOff && 'The channel is off: switch it on to send this again.'
      const more = [code && FAILURES[code], error, next].filter(Boolean).join(' ')
      return { is: 'failed', said: 'Not sent', more: more || undefined, canRetry: isRetryable && !isOff }
    }
  }
}
