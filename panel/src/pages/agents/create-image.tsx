// Creates an image.
import { useState } from 'react'
import { refusalsOf } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useModels } from '../../app/models'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Picker } from '../../ui/picker'
import { SuggestedInput } from '../../ui/suggested-input'
import { choiceOfProfile, useProfiles } from './profiles'

const Create = graphql(`
  mutation CreateImage($orgId: Id!, $input: CreateImageInput!) {
    createImage(orgId: $orgId, input: $input) { id name }
  }
`)

export function CreateImage({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (id: number) => void
}) {
  const { id: orgId } = useOrg()
  const create = useFormAct(Create)
  const [input, setInput] = useState({
    name: '',
    reference: '',
    description: '',
    defaultModel: '',
    profile: null as string | null,
  })
  const profiles = useProfiles()
  const models = useModels()
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const set = (change: Partial<typeof input>) => setInput({ ...input, ...change })
  const submit = async () => {
    const sent = {
      ...input,
      description: input.description || null,
      defaultModel: input.defaultModel || null,
    }
    const wrong = refusalsOf('CreateImageInput', sent)
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) return
    const { data, error } = await create(
      { orgId, input: sent },
      { quiet: true, said: `Created ${input.name}` },
    )
    if (data?.createImage) return onCreated(data.createImage.id)
    const found = placeErrors(error, ['name', 'reference', 'description', 'defaultModel'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New image"
      action="Create the image"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" error={errors.name}>
        <TextInput value={input.name} onValue={(name) => set({ name })} autoComplete="off" />
      </Field>
      <Field
        label="Reference"
        doc="hosts.md#programs"
        hint="Exactly as the server’s list of programs names it, or as its registry does: example/agent:1.2."
        error={errors.reference}
      >
        <TextInput
          className="font-mono text-sm"
          value={input.reference}
          onValue={(reference) => set({ reference })}
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Field
        label="Profile"
        doc="agents.md#programs-that-others-wrote"
        optional
        hint="Where the program keeps its files and takes its model from. Without a profile, as the host’s owner lists it."
        error={errors.profile}
      >
        <Picker
          value={choiceOfProfile(profiles, input.profile)}
          choices={profiles}
          onValue={(choice) => set({ profile: choice ? String(choice.id) : null })}
          placeholder="As the server lists it"
          clearable
        />
      </Field>
      <Field label="Description" optional error={errors.description}>
        <TextInput value={input.description} onValue={(description) => set({ description })} />
      </Field>
      <Field label="Default model" optional hint="For agents that choose none." error={errors.defaultModel}>
        <SuggestedInput
          suggestions={models}
          value={input.defaultModel}
          onValue={(defaultModel) => set({ defaultModel })}
        />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
