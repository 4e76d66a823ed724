// The third step: a question and its answer.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql, type Json } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useViewer } from '../../app/viewer'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { cx } from '../../ui/cx'
import { Field } from '../../ui/field'
import { TextInput } from '../../ui/inputs'
import { Markdown } from '../../ui/markdown'
import { Notice } from '../../ui/notice'
import { Visible } from '../../ui/visible'
import { firstExchange } from './progress'
import type { StartAgent, StartTalk } from './start-page'
import { isOfDemo, SUGGESTIONS } from './suggestions'

const Ask = graphql(`
  mutation AskFirst($orgId: Id!, $agentId: Id!, $text: String!) {
    startConversation(orgId: $orgId, input: { agentId: $agentId, text: $text }) { id }
  }
`)
const TalkQuery = graphql(`
  query FirstTalk($orgId: Id!, $conversationId: Id!) {
    conversation(orgId: $orgId, id: $conversationId) { id agent { id name } }
    messages(orgId: $orgId, conversationId: $conversationId, afterSeq: 0, limit: 100) {
      data { id seq role kind content authorName authorUserId }
    }
  }
`)

export function AnswerStep({ agent, talk }: { agent: StartAgent; talk: StartTalk | undefined }) {
  const { id: orgId } = useOrg()
  const ask = useFormAct(Ask)
  // Without the shop's tools it only introduces itself.
  const ofDemo = isOfDemo(agent) && agent.mcpServers.length > 0
  const [text, setText] = useState<string>(ofDemo ? SUGGESTIONS[0] : 'Good morning')
  const [problem, setProblem] = useState<string | null>(null)
  const [begun, begin] = useState<number | null>(null)
  // The page does not change to another conversation while it is read.
  const [first, keepFirst] = useState(talk?.id)
  if (first === undefined && talk) keepFirst(talk.id)
  const shown = begun ?? first
  const submit = async (question: string) => {
    const wrong = refusal(question, boundsOf('StartConversationInput.text'))
    if (wrong) return setProblem(wrong)
    const { data, error } = await ask({ orgId, agentId: agent.id, text: question }, { quiet: true })
    if (data?.startConversation) begin(data.startConversation.id)
    else setProblem(fieldErrors(error).text ?? wordsOf(error))
  }
  const suggestions = ofDemo && (
    <Suggestions agent={agent} busy={ask.pending} onChoose={(question) => void submit(question)} />
  )
  if (shown) {
    return (
      <>
        <Talk id={shown} />
        {suggestions}
        {problem && <Notice>{problem}</Notice>}
      </>
    )
  }
  return (
    <form
      className="space-y-3"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        if (!ask.pending) void submit(text)
      }}
    >
      <Field
        label={`Write to ${agent.name}`}
        hint={
          ofDemo
            ? 'It runs without a model, and knows the orders of the demo’s shop.'
            : 'The reference agent repeats what you write, and says which turn it is.'
        }
        error={problem}
      >
        <TextInput value={text} onValue={setText} autoComplete="off" />
      </Field>
      <Gate on={agent} may="agent.interact">
        <Button look="primary" type="submit" busy={ask.pending}>
          Send
        </Button>
      </Gate>
      {suggestions}
    </form>
  )
}

interface SuggestionsProps {
  agent: StartAgent
  busy: boolean
  onChoose: (question: string) => void
}

/** Each begins a conversation. */
function Suggestions({ agent, busy, onChoose }: SuggestionsProps) {
  return (
    <ul aria-label="Suggested questions" className="mt-3 flex flex-wrap gap-2">
      {SUGGESTIONS.map((question) => (
        <li key={question}>
          <Gate on={agent} may="agent.interact">
            <Button size="sm" disabled={busy} onClick={() => onChoose(question)}>
              {question}
            </Button>
          </Gate>
        </li>
      ))}
    </ul>
  )
}

function Talk({ id }: { id: number }) {
  const { id: orgId } = useOrg()
  const { user: viewer } = useViewer()
  const { data } = useLive({
    query: TalkQuery,
    variables: { orgId, conversationId: id },
    on: ['MESSAGE', 'CONVERSATION', 'TURN'],
  })
  if (!data) return null
  const agent = data.conversation?.agent?.name ?? 'The agent'
  const messages = firstExchange((data.messages?.data ?? []).filter(({ kind }) => kind === 'TEXT'))
  const answered = messages.some(({ role }) => role === 'ASSISTANT')
  return (
    <div className="space-y-2">
      <ul aria-label="Conversation" className="space-y-2">
        {messages.map(({ id: message, role, content, authorName, authorUserId }) => {
          const isMine = authorUserId === viewer.id
          const author = authorName ?? (role === 'ASSISTANT' ? agent : 'Muster')
          return (
            <li
              key={message}
              className={cx(
                'w-fit max-w-[85%] rounded-card px-3 py-2',
                isMine ? 'ml-auto bg-accent-soft text-accent-text' : 'bg-sunken',
              )}
            >
              <span className={isMine ? 'sr-only' : 'block text-xs text-muted'}>
                <Visible text={isMine ? 'You' : author} />:{' '}
              </span>
              <Markdown text={textOf(content)} />
            </li>
          )
        })}
      </ul>
      {!answered && (
        <p role="status" className="pulsing text-sm text-muted">
          {agent} is working on it…
        </p>
      )}
    </div>
  )
}

function textOf(content: Json): string {
  const text =
    typeof content === 'object' && content !== null && !Array.isArray(content) ? content.text : null
  return typeof text === 'string' ? text : ''
}
