// How to deliver an invitation without mail: the operator prints its link and passes it on.
import { notNotified, useMailWay } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { CodeBlock } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import type { Role } from './roles'
import { shellQuote } from './shell-quote'

interface Props {
  invitation: { email: string; role: Role }
  onClose: () => void
}

export function HandOver({ invitation: { email, role }, onClose }: Props) {
  const { id } = useOrg()
  const line = `muster member invite --org ${id} --role ${role} --link --email ${shellQuote(email)}`
  return (
    <Dialog
      open
      onClose={onClose}
      title="Hand over the link yourself"
      about={notNotified(useMailWay(), email)}
      width="md"
      footer={
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <div className="space-y-3">
        <p>The installation’s operator prints the link with this command, on Muster’s machine:</p>
        <CodeBlock text={line} label="the line that prints the link" />
        <p className="text-muted">
          Give the link only to {email}: anyone with the link can join, once, within a week. Earlier links
          stop working.
        </p>
      </div>
    </Dialog>
  )
}
