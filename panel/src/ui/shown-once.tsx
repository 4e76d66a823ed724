// A token or command that is shown once. Esc and stray clicks don't close it: the user confirms that it is stored.
import { type ReactNode, useState } from 'react'
import { Button } from './button'
import { Checkbox } from './choices'
import { Copy } from './copy'
import { Dialog } from './dialog'
import { Notice } from './notice'

interface Props {
  open: boolean
  title: string
  about: string
  /** The secrets with their labels. */
  secrets: { label: string; text: string }[]
  onDone: () => void
  /** Already used: nothing has to be stored. */
  used?: boolean
  /** Live status: whether it was used, for example. */
  children?: ReactNode
}

export function ShownOnce({ open, title, about, secrets, onDone, used = false, children }: Props) {
  const [stored, setStored] = useState(false)
  const done = () => {
    setStored(false)
    onDone()
  }
  return (
    <Dialog
      open={open}
      onClose={done}
      title={title}
      about={about}
      width="md"
      firm
      footer={
        <Button look="primary" disabled={!stored && !used} onClick={done}>
          Done
        </Button>
      }
    >
      <div className="space-y-4">
        {secrets.map(({ label, text }) => (
          <div key={label}>
            <p className="mb-1 text-sm font-medium">{label}</p>
            <div className="flex items-start gap-1 rounded-control border border-line bg-sunken py-2 pr-1 pl-3">
              <pre
                role="group"
                tabIndex={0}
                aria-label={label}
                className="max-h-56 grow select-all overflow-auto whitespace-pre-wrap font-mono text-sm break-all"
              >
                {text}
              </pre>
              <Copy text={text} label={`Copy: ${label}`} />
            </div>
          </div>
        ))}
        {children}
        {!used && (
          <>
            <Notice tone="warn">This is shown once. Muster keeps no copy that it could show again.</Notice>
            <Checkbox checked={stored} onChecked={setStored} label="I have stored it" />
          </>
        )}
      </div>
    </Dialog>
  )
}
