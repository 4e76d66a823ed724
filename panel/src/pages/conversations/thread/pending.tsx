// The user's messages that are not in the thread yet.
import { Paperclip } from 'lucide-react'
import { useClient } from 'urql'
import { draftOf, saveDraft } from '../../../app/drafts'
import { useOrg } from '../../../app/organization'
import { Button } from '../../../ui/button'
import { discard, draftPlace, type Pending, sendAgain } from './outbox'

export function PendingMessages({
  messages,
  onEdit,
}: {
  messages: Pending[]
  onEdit: (message: Pending) => void
}) {
  const org = useOrg()
  const client = useClient()
  const edit = (key: string) => {
    const back = discard(key)
    if (!back) return
    const place = draftPlace(back.conversationId)
    saveDraft(org.id, place, [draftOf(org.id, place), back.text].filter(Boolean).join('\n'))
    onEdit(back)
  }
  return messages.map(({ key, text, files, state, problem }) => (
    <div key={key} className="px-4 pt-3 sm:px-6">
      <div className="ml-auto w-fit max-w-[min(42rem,88%)]">
        <div className="rounded-card bg-selected px-3 py-2 opacity-75">
          <p className="whitespace-pre-wrap">{text}</p>
          {files.length > 0 && (
            <p className="mt-1 flex items-center gap-1 text-xs text-muted">
              <Paperclip size={12} aria-hidden /> {files.length === 1 ? '1 file' : `${files.length} files`}
            </p>
          )}
        </div>
        {state === 'sending' ? (
          <p role="status" className="pulsing mt-0.5 text-right text-xs text-muted">
            Sending…
          </p>
        ) : (
          <div className="mt-1 flex flex-wrap items-center justify-end gap-2">
            <p role="alert" className="min-w-0 text-xs text-danger-text">
              Not sent. {problem}
            </p>
            <Button size="sm" onClick={() => sendAgain(client, org.id, key)}>
              Send again
            </Button>
            <Button size="sm" look="quiet" onClick={() => edit(key)}>
              Edit
            </Button>
          </div>
        )}
      </div>
    </div>
  ))
}
