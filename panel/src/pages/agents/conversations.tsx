// An agent's conversations, and starting a new one.
import { Link, useNavigate } from '@tanstack/react-router'
import { MessageSquarePlus } from 'lucide-react'
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { fieldErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useLive } from '../../api/use-live'
import { conversationTitle, withoutCode } from '../../app/conversation-title'
import { useOrg } from '../../app/organization'
import { ENTER_SENDS, sendOnEnter } from '../../app/thread/send-on-enter'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Count } from '../../ui/count'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { TextArea } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { AgentRecord } from './agent-page'

const ConversationsQuery = graphql(`
  query AgentTalk($orgId: Id!, $agentId: Id!) {
    conversationFeed(orgId: $orgId, agentId: $agentId, limit: 6) {
      total
      data { id ref title contactName unread lastActivityAt lastMessage { kind preview } }
    }
  }
`)
const StartConversation = graphql(`
  mutation StartTalk($orgId: Id!, $input: StartConversationInput!) {
    startConversation(orgId: $orgId, input: $input) { id }
  }
`)

export function AgentConversations({ agent }: { agent: AgentRecord }) {
  const { id: org } = useOrg()
  const [writing, write] = useState(false)
  const { data } = useLive({
    query: ConversationsQuery,
    variables: { orgId: org, agentId: agent.id },
    on: ['CONVERSATION', 'MESSAGE'],
  })
  const feed = data?.conversationFeed
  const talk = {
    id: `agent.talk.${agent.id}`,
    label: 'Talk to the agent',
    group: 'Agent',
    also: 'new conversation',
    refused: useRefused('agent.interact', agent),
    run: () => write(true),
  }
  const start = (
    <ActionButton size="sm" icon={MessageSquarePlus} action={talk}>
      New conversation
    </ActionButton>
  )
  return (
    <Panel title="Conversations" actions={start}>
      {feed && feed.data.length === 0 && (
        <p className="rounded-card border border-dashed border-line px-4 py-6 text-center text-muted">
          No conversations yet. Start one here, or connect a channel.
        </p>
      )}
      {feed && feed.data.length > 0 && (
        <ul className="divide-y divide-line overflow-hidden rounded-card border border-line">
          {feed.data.map((talk) => (
            <li key={talk.id}>
              <Link
                to="/o/$org/conversations/$id"
                params={{ org, id: talk.id }}
                className="flex items-center gap-3 px-3 py-2 hover:bg-hover"
              >
                <span className="min-w-0 grow">
                  <span className="block truncate font-medium">
                    <Visible text={conversationTitle({ ...talk, agent })} />
                  </span>
                  <span className="block truncate text-sm text-muted">
                    {talk.lastMessage ? (
                      <Visible text={withoutCode(talk.lastMessage.kind, talk.lastMessage.preview ?? '')} />
                    ) : (
                      'Nothing said yet'
                    )}
                  </span>
                </span>
                <Count value={talk.unread ?? 0} label="unread" />
                <span className="shrink-0 text-sm text-muted">
                  <Time at={talk.lastActivityAt} as="short" />
                </span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      {feed && feed.total > feed.data.length && (
        <p className="mt-2 text-sm">
          <Link to="/o/$org/conversations" params={{ org }} search={{ agent: agent.id }} className="link">
            All {feed.total} conversations
          </Link>
        </p>
      )}
      {writing && <Write agent={agent} onClose={() => write(false)} />}
    </Panel>
  )
}

function Write({ agent, onClose }: { agent: AgentRecord; onClose: () => void }) {
  const { id: org } = useOrg()
  const navigate = useNavigate()
  const start = useFormAct(StartConversation)
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const submit = async () => {
    const wrong = refusal(text, boundsOf('StartConversationInput.text'))
    if (wrong) return setProblem(wrong)
    const { data, error } = await start({ orgId: org, input: { agentId: agent.id, text } }, { quiet: true })
    const begun = data?.startConversation
    if (!begun) return setProblem(fieldErrors(error).text ?? wordsOf(error))
    // Back leads to the agent, not to the sent form.
    onClose()
    void navigate({ to: '/o/$org/conversations/$id', params: { org, id: begun.id } })
  }
  return (
    <FormDialog
      title={`Talk to ${agent.name}`}
      action="Send"
      busy={start.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Message" error={problem} hint={ENTER_SENDS}>
        <TextArea rows={4} value={text} onValue={setText} onKeyDown={sendOnEnter} />
      </Field>
      {!['RUNNING', 'SPAWNING'].includes(agent.status) && (
        <Notice tone="info">The agent is not running: the message waits until the agent is started.</Notice>
      )}
    </FormDialog>
  )
}
