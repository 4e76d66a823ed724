// Schedules the erasure of a contact.
import { useState } from 'react'
import { graphql } from '../api/graphql'
import { useAct } from '../api/use-act'
import { Gate } from '../permissions/gate'
import { Button } from '../ui/button'
import { ConfirmDialog } from '../ui/confirm'
import { ErasureFields } from './erasures'
import { useOrg } from './organization'

const Erase = graphql(
  `
    mutation EraseContact($orgId: Id!, $contactId: Id!) {
      eraseContact(orgId: $orgId, contactId: $contactId) { ...ErasureFields }
    }
  `,
  [ErasureFields],
)

export function EraseContact({ id, name }: { id: number; name: string }) {
  const org = useOrg()
  const erase = useAct(Erase)
  const [asking, ask] = useState(false)
  return (
    <Gate may="organization.erase">
      <Button size="sm" className="mt-3" onClick={() => ask(true)}>
        Erase the contact
      </Button>
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Erase ${name}?`}
        action="Schedule the erasure"
        busy={erase.pending}
        onConfirm={async () => {
          const variables = { orgId: org.id, contactId: id }
          await erase(variables, { said: 'The erasure is scheduled: see Settings, Data' })
          ask(false)
        }}
      >
        After a grace period their name and addresses are replaced for good, and their raw e-mails deleted, so
        no answer reaches them through their conversations. The texts of messages stay.
      </ConfirmDialog>
    </Gate>
  )
}
