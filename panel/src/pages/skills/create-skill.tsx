// Creates a skill.
import { useState } from 'react'
import { boundsOf, refusalsOf, refusalWhileTyping } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useOrg } from '../../app/organization'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextArea, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'

const Create = graphql(`
  mutation CreateSkill($orgId: Id!, $input: CreateSkillInput!) {
    createSkill(orgId: $orgId, input: $input) { id name }
  }
`)

export function CreateSkill({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (id: number) => void
}) {
  const org = useOrg()
  const create = useFormAct(Create)
  const [input, setInput] = useState({ name: '', description: '', content: '' })
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const set = (change: Partial<typeof input>) => setInput({ ...input, ...change })
  const submit = async () => {
    const sent = { ...input, description: input.description || null }
    const wrong = refusalsOf('CreateSkillInput', sent)
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) return
    const { data, error } = await create(
      { orgId: org.id, input: sent },
      { quiet: true, said: `Created ${input.name}` },
    )
    if (data?.createSkill) return onCreated(data.createSkill.id)
    const found = placeErrors(error, ['name', 'description', 'content'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New skill"
      width="lg"
      action="Create the skill"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label="Name"
        hint="Also the name of its folder, without slashes: tone-of-voice, for example."
        error={errors.name}
        liveError={refusalWhileTyping(input.name, boundsOf('CreateSkillInput.name'))}
      >
        <TextInput
          value={input.name}
          onValue={(name) => set({ name })}
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Field
        label="What it is for"
        hint="Agents read this to know when they need it."
        optional
        error={errors.description}
      >
        <TextInput value={input.description} onValue={(description) => set({ description })} />
      </Field>
      <Field label="Text" optional error={errors.content}>
        <TextArea rows={10} maxRows={20} value={input.content} onValue={(content) => set({ content })} />
      </Field>
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
