// The inbox's shortcuts.
import { useClient } from 'urql'
import type { DecideHandle } from '../../app/approvals/decide'
import {
  cancelAll,
  DELAY_MS,
  decide,
  draftPlace,
  isBeingSent,
  otherDecidedAt,
} from '../../app/approvals/decisions'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { useSnooze } from '../../app/approvals/handling'
import { isSlip } from '../../app/approvals/slip'
import { snoozeChoices } from '../../app/approvals/snooze'
import { isHighRisk } from '../../app/approvals/words'
import { draftOf } from '../../app/drafts'
import { useOrg } from '../../app/organization'
import { useActions } from '../../keys/use-actions'
import { useRefused } from '../../permissions/gate'

/** Pending, with no decision being sent. */
export const isOpen = ({ status, id }: ApprovalRecord) => status === 'PENDING' && !isBeingSent(id)

interface KeyProps {
  current: ApprovalRecord | undefined
  /** The open approval is rendered. The list may not have it, or not yet. */
  peeked: boolean
  handle: React.RefObject<DecideHandle | null>
  next: () => void
  show: (id: number | undefined, replace?: boolean) => void
}

/** A, D, C and S act on the open or active approval, Z on all that count down. */
export function useKeys({ current, peeked, handle, next, show }: KeyProps): void {
  const org = useOrg()
  const client = useClient()
  const refused = useRefused('approval.resolve', current)
  const open = current && isOpen(current)
  const quick = (option: 'approve' | 'deny') => {
    const now = performance.now()
    if (current && isSlip({ clicks: 0, now, shownAt: now, decidedAt: otherDecidedAt(current.id) })) return
    if (peeked) return option === 'approve' ? handle.current?.approve() : handle.current?.deny()
    if (!current || !open) return
    // A risky approval, a question or a non-action must be read before it is answered.
    const slow = current.kind !== 'ACTION' || (option === 'approve' && isHighRisk(current))
    if (slow) return show(current.id, false)
    const said = option === 'approve' ? 'Approve' : 'Deny'
    // Include the comment typed so far.
    const text = draftOf(org.id, draftPlace(current.id)).trim()
    decide(client, org.id, current.id, { how: 'ANSWER', options: [option], text, said }, DELAY_MS)
    next()
  }
  const comment = () => {
    if (peeked) return handle.current?.comment()
    if (!current || !open) return
    show(current.id, false)
    setTimeout(() => handle.current?.comment(), 300)
  }
  const group = 'Approval'
  useActions([
    {
      id: 'approvals.approve',
      label: 'Approve or resolve',
      group,
      keys: 'a',
      refused,
      run: () => quick('approve'),
    },
    { id: 'approvals.deny', label: 'Deny or dismiss', group, keys: 'd', refused, run: () => quick('deny') },
    { id: 'approvals.comment', label: 'Answer with words', group, keys: 'c', refused, run: comment },
    {
      id: 'approvals.cancel',
      label: 'Cancel all pending decisions',
      group,
      keys: 'z',
      run: cancelAll,
    },
  ])
  useSnoozeKey(current, () => {
    if (!peeked) next()
  })
}

/** `hidden`: called when the approval is about to leave the list. */
function useSnoozeKey(current: ApprovalRecord | undefined, hidden: () => void): void {
  const snooze = useSnooze(current ?? NOTHING)
  useActions([
    {
      id: 'approvals.snooze',
      label: 'Snooze for an hour',
      group: 'Approval',
      keys: 's',
      run: () => {
        if (current?.status !== 'PENDING') return
        const choices = snoozeChoices(new Date(), current.expiresAt)
        const choice =
          choices.find(({ label, refused }) => label === 'For an hour' && !refused) ??
          choices.find(({ refused }) => !refused)
        if (!choice) return
        void snooze(choice.until, `Hidden: ${choice.label.toLowerCase()}`)
        hidden()
      },
    },
  ])
}

const NOTHING = { id: 0, snoozedUntil: null } as ApprovalRecord
