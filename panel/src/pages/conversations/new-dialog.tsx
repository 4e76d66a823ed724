// Starts a conversation with an agent.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useAgentSearch } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { ENTER_SENDS, sendOnEnter } from '../../app/thread/send-on-enter'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextArea, TextInput } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { type Choice, Picker } from '../../ui/picker'
import { ConversationFields } from './record'

const Start = graphql(
  `
    mutation StartConversation($orgId: Id!, $input: StartConversationInput!) {
      startConversation(orgId: $orgId, input: $input) { ...ConversationFields }
    }
  `,
  [ConversationFields],
)

export function NewConversation({ agent, onClose }: { agent: Choice | null; onClose: () => void }) {
  const org = useOrg()
  const navigate = useNavigate()
  const search = useAgentSearch()
  const act = useFormAct(Start)
  const [chosen, choose] = useState<Choice | null>(agent)
  const [title, setTitle] = useState('')
  const [text, setText] = useState('')
  const [wrong, setWrong] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const start = async () => {
    const found: Record<string, string> = {}
    if (!chosen) found.agentId = 'Choose an agent.'
    const badTitle = title && refusal(title, boundsOf('StartConversationInput.title'))
    const badText = text.trim() && refusal(text, boundsOf('StartConversationInput.text'))
    if (badTitle) found.title = badTitle
    if (badText) found.text = badText
    setWrong(found)
    if (!chosen || Object.keys(found).length > 0) return
    const input = { agentId: Number(chosen.id), title: title.trim() || null, text: text.trim() || null }
    const { data, error } = await act({ orgId: org.id, input }, { quiet: true })
    const made = data?.startConversation
    if (made) return navigate({ to: '/o/$org/conversations/$id', params: { org: org.id, id: made.id } })
    setWrong(fieldErrors(error))
    setProblem(wordsOf(error))
  }
  return (
    <FormDialog
      title="New conversation"
      about="The agent answers as soon as it runs."
      action="Start"
      may="agent.interact"
      busy={act.pending}
      onSubmit={start}
      onClose={onClose}
    >
      {problem && <Notice>{problem}</Notice>}
      <Field label="Agent" error={wrong.agentId}>
        <Picker value={chosen} onValue={choose} search={search} placeholder="Type part of its name" />
      </Field>
      <Field label="Subject" optional error={wrong.title}>
        <TextInput value={title} onValue={setTitle} maxLength={200} autoComplete="off" />
      </Field>
      <Field
        label="First message"
        optional
        error={wrong.text}
        hint={`Without one, the agent starts with the first message. ${ENTER_SENDS}`}
      >
        <TextArea value={text} onValue={setText} rows={4} onKeyDown={sendOnEnter} />
      </Field>
    </FormDialog>
  )
}
