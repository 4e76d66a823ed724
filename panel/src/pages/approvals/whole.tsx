// The complete approval, for the peek and its page.
import {
  AnswerMeanings,
  ApprovalFacts,
  ApprovalHead,
  ApprovalSubject,
  InputDigest,
} from '../../app/approvals/details'
import type { ApprovalRecord } from '../../app/approvals/fields'
import { Assignee, SnoozeMenu } from '../../app/approvals/handling'
import { ConversationAround } from './around'

interface Props {
  approval: ApprovalRecord
  seq?: number
  withTitle?: boolean
}

export function WholeApproval({ approval, seq, withTitle }: Props) {
  const at = seq ?? approval.messageSeq
  const isOpen = approval.status === 'PENDING'
  return (
    <div className="space-y-5 p-4">
      <ApprovalHead approval={approval} withTitle={withTitle} />
      <ApprovalSubject approval={approval} />
      <ApprovalFacts approval={approval} />
      {approval.request?.digest && <InputDigest digest={approval.request.digest} />}
      {isOpen && (
        <div className="flex flex-wrap items-end gap-3 [&>:first-child]:min-w-56 [&>:first-child]:grow">
          <Assignee approval={approval} />
          <SnoozeMenu approval={approval} />
        </div>
      )}
      {approval.conversationId && at && (
        <ConversationAround conversationId={approval.conversationId} seq={at} />
      )}
      {isOpen && <AnswerMeanings approval={approval} />}
    </div>
  )
}
