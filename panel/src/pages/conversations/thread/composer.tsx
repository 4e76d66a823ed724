// The message composer. It names the recipient; Enter sends, Shift+Enter starts a new line; unsent text is kept.
import { Paperclip, Send, X } from 'lucide-react'
import { type Dispatch, type ReactNode, type SetStateAction, useRef } from 'react'
import { useClient } from 'urql'
import { useOrg } from '../../../app/organization'
import { sendOnEnter } from '../../../app/thread/send-on-enter'
import { useDraft } from '../../../app/thread/use-draft'
import { useActions } from '../../../keys/use-actions'
import { Gate, useRefused } from '../../../permissions/gate'
import { Button, IconButton } from '../../../ui/button'
import { bytes } from '../../../ui/bytes'
import { TextArea } from '../../../ui/inputs'
import { sayProblem } from '../../../ui/toast-store'
import { Visible } from '../../../ui/visible'
import type { ConversationRecord } from '../record'
import { draftPlace, post } from './outbox'
import { MAX_BYTES, MAX_FILES, type Upload, uploadOf } from './uploads'

const MAX_CHARACTERS = 65_536

interface Props {
  conversation: ConversationRecord
  /** The recipient, and what sending does. */
  to: string
  files: Upload[]
  onFiles: Dispatch<SetStateAction<Upload[]>>
  /** Why the composer is disabled. */
  closed?: ReactNode
}

export function Composer({ conversation, to, files, onFiles: setFiles, closed }: Props) {
  const org = useOrg()
  const client = useClient()
  const [text, write] = useDraft(org.id, draftPlace(conversation.id))
  const picker = useRef<HTMLInputElement>(null)
  const box = useRef<HTMLFormElement>(null)
  const refused = useRefused('agent.interact', conversation)
  const attach = (added: Iterable<File>) => {
    const fit = [...added].filter((file) => {
      if (file.size <= MAX_BYTES) return true
      sayProblem(`${file.name} is ${bytes(file.size)}. A file may have ${bytes(MAX_BYTES)} at most.`)
      return false
    })
    if (files.length + fit.length > MAX_FILES) sayProblem(`A message takes ${MAX_FILES} files at most.`)
    setFiles((before) => [...before, ...fit.map(uploadOf)].slice(0, MAX_FILES))
  }
  const ready = (text.trim() !== '' || files.length > 0) && [...text].length <= MAX_CHARACTERS
  const send = () => {
    if (!ready || refused) return refused?.()
    post(client, org.id, conversation.id, text, files)
    write('')
    setFiles([])
  }
  useActions([
    {
      id: 'conversation.write',
      label: 'Write a message',
      group: 'Conversation',
      keys: 'c',
      refused,
      run: () => box.current?.querySelector('textarea')?.focus(),
    },
  ])
  if (closed)
    return <div className="shrink-0 border-t border-line px-4 py-3 text-muted sm:px-6">{closed}</div>
  // Its parts are as wide as the messages above.
  return (
    <form
      ref={box}
      aria-label="Write a message"
      className="shrink-0 border-t border-line bg-canvas px-3 pt-2 pb-3 sm:px-6 sm:*:max-w-212"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        if (!refused) attach(event.dataTransfer.files)
      }}
    >
      <p className="mb-1 truncate text-xs text-muted" id="composer-to">
        {to}
      </p>
      <Files files={files} onRemove={(key) => setFiles(files.filter((file) => file.key !== key))} />
      <Gate on={conversation} may="agent.interact">
        <div className="flex items-end gap-1.5">
          <TextArea
            aria-label="Message"
            aria-describedby="composer-to"
            value={text}
            onValue={write}
            rows={1}
            maxRows={10}
            readOnly={refused !== null}
            placeholder={refused ? 'Your role does not allow writing here' : 'Write a message'}
            onKeyDown={sendOnEnter}
            onPaste={(event) => {
              if (event.clipboardData.files.length === 0 || refused) return
              event.preventDefault()
              attach(event.clipboardData.files)
            }}
          />
          <IconButton icon={Paperclip} label="Add files" onClick={() => picker.current?.click()} />
          <IconButton icon={Send} label="Send" look="primary" keys="enter" type="submit" disabled={!ready} />
        </div>
      </Gate>
      {[...text].length > MAX_CHARACTERS && (
        <p role="alert" className="mt-1 text-xs font-medium text-danger-text">
          At most {MAX_CHARACTERS} characters; these are {[...text].length}. Send the rest as a file.
        </p>
      )}
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => {
          attach(event.target.files ?? [])
          event.target.value = ''
        }}
      />
    </form>
  )
}

function Files({ files, onRemove }: { files: Upload[]; onRemove: (key: string) => void }) {
  if (files.length === 0) return null
  return (
    <ul className="mb-1.5 flex flex-wrap gap-1.5" aria-label="Files to send">
      {files.map(({ key, name, file }) => (
        <li
          key={key}
          className="flex max-w-full items-center gap-1.5 rounded-full bg-sunken py-0.5 pr-0.5 pl-2.5 text-sm"
        >
          <span className="min-w-0 truncate">
            <Visible text={name} />
          </span>
          <span className="shrink-0 text-xs text-muted">{bytes(file.size)}</span>
          <Button
            size="sm"
            look="quiet"
            aria-label={`Remove ${name}`}
            className="size-6 px-0"
            onClick={() => onRemove(key)}
          >
            <X size={13} aria-hidden />
          </Button>
        </li>
      ))}
    </ul>
  )
}
