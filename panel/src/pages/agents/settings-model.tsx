// An agent's model, mode and model credential. The credential is write-only.
import { useState } from 'react'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { PROVIDERS } from '../../app/models'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { Select, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { type Choice, Picker } from '../../ui/picker'
import { type SecretEdit, SecretField, secretInput } from '../../ui/secret-field'
import { SectionField, SectionForm } from '../../ui/section-form'
import { SuggestedInput } from '../../ui/suggested-input'
import type { AgentSettings } from './settings'
import { useAgentSection, useUpdateAgent } from './use-agent-section'

const CHOICES = [
  { value: 'INHERIT', label: 'The organization’s' },
  { value: 'OWN', label: 'The agent’s own' },
  { value: 'NONE', label: 'None' },
] as const

const HINTS = {
  INHERIT: 'The organization’s default for the agent’s provider, set under Settings → Models and money.',
  OWN: 'A key for this agent only.',
  NONE: 'The agent has no access to a model except through its own program.',
}

export function Model({ agent }: { agent: AgentSettings }) {
  const model = useAgentSection(agent, ['modelOverride', 'modeOverride'])
  const access = useAgentSection(agent, [
    'credentialChoice',
    'modelCredentialProvider',
    'modelCredentialBaseUrl',
  ])
  const own = access.values.credentialChoice === 'OWN'
  return (
    <>
      <SectionForm title="Model" form={model}>
        <SectionField
          form={model}
          name="modelOverride"
          label="Model"
          hint={
            agent.offeredModels
              ? 'The models that the agent offers. Empty: the image’s default.'
              : 'The model’s name in the program. Offered models are known after the first run. Empty: the image’s default.'
          }
          optional
          asText={(value) => (value ? String(value) : 'the image’s default')}
        >
          <OfferedInput
            offered={agent.offeredModels}
            placeholder="The image’s default"
            value={model.values.modelOverride}
            onValue={(value) => model.set('modelOverride', value)}
          />
        </SectionField>
        <SectionField
          form={model}
          name="modeOverride"
          label="Mode"
          doc="agents.md#starting-and-changes-while-it-runs"
          hint={
            agent.offeredModes?.length
              ? 'The modes that the agent offers. Applies to each conversation from the next turn. Empty: the agent’s choice.'
              : 'The mode’s id in the program. Offered modes are known after the first run. Empty: the agent’s choice.'
          }
          optional
          asText={(value) => (value ? String(value) : 'the agent’s choice')}
        >
          <OfferedInput
            offered={agent.offeredModes}
            placeholder="The agent’s choice"
            value={model.values.modeOverride}
            onValue={(value) => model.set('modeOverride', value)}
          />
        </SectionField>
        {agent.modeProblem && <Notice tone="warn">{agent.modeProblem}</Notice>}
      </SectionForm>
      <SectionForm
        title="Model credential"
        doc="money.md#model-credentials"
        about="The key that the server sends to the model’s provider. The agent never sees the key."
        form={access}
      >
        <SectionField
          form={access}
          name="credentialChoice"
          label="Credential"
          hint={HINTS[access.values.credentialChoice]}
        >
          <Select
            value={access.values.credentialChoice}
            options={CHOICES}
            onValue={(choice) => access.set('credentialChoice', choice)}
          />
        </SectionField>
        {own && (
          <div className="grid gap-4 sm:grid-cols-2">
            <SectionField
              form={access}
              name="modelCredentialProvider"
              label="Provider"
              hint="Such as anthropic or openai."
            >
              <SuggestedInput
                suggestions={PROVIDERS}
                value={access.values.modelCredentialProvider ?? ''}
                onValue={(value) => access.set('modelCredentialProvider', value || null)}
              />
            </SectionField>
            <SectionField form={access} name="modelCredentialBaseUrl" label="API address" optional>
              <TextInput
                type="url"
                value={access.values.modelCredentialBaseUrl ?? ''}
                onValue={(value) => access.set('modelCredentialBaseUrl', value || null)}
                autoComplete="off"
                spellCheck={false}
              />
            </SectionField>
          </div>
        )}
      </SectionForm>
      {agent.credentialChoice === 'OWN' && <Secret agent={agent} />}
    </>
  )
}

interface InputProps {
  id?: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
  offered: AgentSettings['offeredModels']
  placeholder: string
  value: string | null
  onValue: (value: string | null) => void
}

/** A list of the offered values. Free text if none are known, since other values could not be selected. */
function OfferedInput({ offered, placeholder, value, onValue, ...field }: InputProps) {
  if (!offered || offered.length === 0) {
    return (
      <TextInput
        {...field}
        value={value ?? ''}
        onValue={(text) => onValue(text || null)}
        autoComplete="off"
        spellCheck={false}
      />
    )
  }
  const choices: Choice[] = offered.map(({ id, name, current }) => ({
    id,
    name,
    detail: current ? 'in use' : undefined,
  }))
  const chosen =
    value === null ? null : (choices.find(({ id }) => id === value) ?? { id: value, name: value })
  return (
    <Picker
      {...field}
      value={chosen}
      choices={choices}
      clearable
      placeholder={placeholder}
      onValue={(choice) => onValue(choice ? String(choice.id) : null)}
    />
  )
}

/** The secret can't conflict: it is never read, only replaced. */
function Secret({ agent }: { agent: AgentSettings }) {
  const { id: orgId } = useOrg()
  const update = useUpdateAgent()
  const [edit, setEdit] = useState<SecretEdit>({ kind: 'keep' })
  const [problem, setProblem] = useState<string | null>(null)
  const save = async () => {
    const { error } = await update(
      { orgId, id: agent.id, input: { modelCredential: secretInput(edit) } },
      { quiet: true, said: edit.kind === 'remove' ? 'The key is removed' : 'The key is stored' },
    )
    setProblem(error ? (fieldErrors(error).modelCredential ?? wordsOf(error)) : null)
    if (!error) setEdit({ kind: 'keep' })
  }
  return (
    <Panel title="The agent’s own key">
      <form
        className="space-y-3 rounded-card border border-line p-4"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <SecretField label="Key" isSet={agent.hasModelCredential} edit={edit} onEdit={setEdit} />
        {problem && <Notice>{problem}</Notice>}
        {edit.kind !== 'keep' && (
          <div className="flex justify-end">
            <Button type="submit" look="primary" busy={update.pending}>
              Save
            </Button>
          </div>
        )}
      </form>
    </Panel>
  )
}
