// Puts the organization back to the general rules, as it was before its first version.
import { Undo2 } from 'lucide-react'
import { useState } from 'react'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { sayProblem } from '../../ui/toast-store'
import { PublishDialog } from './publish-dialog'
import type { General, Policy } from './queries'

export function NoRules({ policy, general }: { policy: Policy; general: General }) {
  const [asking, ask] = useState(false)
  const action = {
    id: 'policies.clear',
    label: 'Go back to no own rules…',
    group: 'Policies',
    refused: useRefused('policy.edit'),
    run: () => ask(true),
  }
  if (!policy.text || !policy.files[0]?.editable || !general?.ok) return null
  const close = () => ask(false)
  return (
    <div className="flex justify-end px-4 py-2 sm:px-6">
      <ActionButton size="sm" icon={Undo2} action={action} />
      {asking && (
        <PublishDialog
          title="Go back to no own rules"
          action="Go back"
          version={policy.version}
          before={policy.text}
          text=""
          changes={general.changes}
          onClose={close}
          onPublished={close}
          onConflict={() => {
            close()
            sayProblem('Another version was published meanwhile. Nothing was changed.')
          }}
        />
      )}
    </div>
  )
}
