// The senders allowed on a channel. Each change applies at once and can be undone.
import { Plus, X } from 'lucide-react'
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button, IconButton } from '../../ui/button'
import { Field } from '../../ui/field'
import { TextInput } from '../../ui/inputs'
import { Panel } from '../../ui/panel'
import { Visible } from '../../ui/visible'
import { AddOrigin, type Channel, RemoveOrigin } from './channel'

export function Whitelist({ channel }: { channel: Channel }) {
  const { id: orgId } = useOrg()
  const [add, remove] = [useAct(AddOrigin), useAct(RemoveOrigin)]
  const [typed, type] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const send = (originId: string) => ({ orgId, id: channel.id, originId })
  const submit = async () => {
    const originId = typed.trim()
    const wrong = refusal(originId, boundsOf('AddWhitelistOriginInput.originId'))
    if (wrong) return setProblem(wrong)
    const known = channel.whitelist.includes(originId)
    const { error } = await add(send(originId), {
      quiet: true,
      said: known ? `${originId} was on the list already` : `${originId} may write`,
      undo: known ? undefined : () => remove(send(originId)),
    })
    setProblem(error ? (Object.values(fieldErrors(error))[0] ?? wordsOf(error)) : null)
    if (!error) type('')
  }
  const take = (originId: string) =>
    void remove(send(originId), {
      said: `${originId} may no longer write`,
      undo: () => add(send(originId), { said: `${originId} may write again` }),
    })
  return (
    <Panel title="Who may write" doc="channels/README.md#who-may-write" about={aboutOf(channel)}>
      <ul className="mb-3 divide-y divide-line rounded-card border border-line empty:hidden">
        {channel.whitelist.map((origin) => (
          <li key={origin} className="flex items-center gap-2 py-1 pr-1 pl-3">
            <span className="min-w-0 grow break-all font-mono text-sm">
              <Visible text={origin} />
            </span>
            <Gate on={channel} may="agent.edit">
              <IconButton
                icon={X}
                size="sm"
                label={`Remove ${origin} from the list`}
                onClick={() => take(origin)}
              />
            </Gate>
          </li>
        ))}
      </ul>
      <form
        className="flex items-end gap-2"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (!add.pending) void submit()
        }}
      >
        <Field
          label="Add a sender"
          hint="As the transport writes it: an e-mail address, a user’s id, a name."
          error={problem}
          className="grow"
        >
          <TextInput
            value={typed}
            onValue={(text) => {
              type(text)
              setProblem(null)
            }}
            disabled={!channel.viewerCan.includes('agent.edit')}
            autoComplete="off"
            spellCheck={false}
          />
        </Field>
        <span className="self-start pt-6">
          <Gate on={channel} may="agent.edit">
            <Button type="submit" icon={Plus} busy={add.pending}>
              Add
            </Button>
          </Gate>
        </span>
      </form>
    </Panel>
  )
}

function aboutOf({ whitelist, direction, webhook }: Channel): string {
  if (whitelist.length > 0) return 'Only these senders reach the agent through this channel.'
  if (direction === 'OUTBOUND') return 'The list is empty.'
  if (webhook) {
    const isOpen = webhook.hasInboundSecret
    return isOpen ? 'The list is empty: every signed message is accepted.' : 'The list is empty.'
  }
  return 'No one may write yet. When someone writes to the agent, they are refused and shown here with their id.'
}
