// A turn beside the list: its usage, why it ended, and how to end it.
import { Link } from '@tanstack/react-router'
import { Ban, RotateCw } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { conversationTitle } from '../../app/conversation-title'
import { cutWords } from '../../app/cut-words'
import { useOrg } from '../../app/organization'
import { costOf } from '../../app/spending/money'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { useZone } from '../../ui/clock'
import { CodeBlock } from '../../ui/code'
import { ConfirmDialog } from '../../ui/confirm'
import { Fact, Facts } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { Status } from '../../ui/status'
import { Duration, Time } from '../../ui/time'
import { Unknown } from './facts'
import { ModelCalls } from './model-calls'
import type { TurnRecord } from './turns'
import { CAUSES, turnName } from './words'

const Cancel = graphql(`
  mutation CancelTurn($orgId: Id!, $id: Id!) {
    cancelTurn(orgId: $orgId, id: $id) { id state cancelRequestedAt cancelledBy cancelledWith endedAt error }
  }
`)

const Retry = graphql(`
  mutation RetryTurn($orgId: Id!, $id: Id!) { retryTurn(orgId: $orgId, id: $id) { id state } }
`)

interface Props {
  id: number
  turn: TurnRecord | undefined
  onClose: () => void
}

export function TurnPeek({ id, turn, onClose }: Props) {
  const { id: org } = useOrg()
  const { timeZone } = useZone()
  const [cancel, retry] = [useAct(Cancel), useAct(Retry)]
  const refused = useRefused('agent.interact', turn)
  const [asking, ask] = useState(false)
  const cancelIt = async () => {
    await cancel({ orgId: org, id }, { said: 'The turn is being cancelled' })
    ask(false)
  }
  const end = {
    id: 'turn.cancel',
    label: 'Cancel the turn',
    group: 'Turn',
    refused,
    run: () => (turn?.state === 'WAITING_APPROVAL' ? ask(true) : void cancelIt()),
  }
  const again = {
    id: 'turn.retry',
    label: 'Retry this turn',
    group: 'Turn',
    refused,
    run: () => void retry({ orgId: org, id }, { said: 'The next turn has its messages' }),
  }
  const open = turn && ['QUEUED', 'RUNNING', 'WAITING_APPROVAL', 'WAITING_LIMIT'].includes(turn.state)
  return (
    <Peek
      title={turn ? turnName(turn, timeZone) : 'Turn'}
      onClose={onClose}
      actions={
        turn?.isRetryable ? (
          <ActionButton size="sm" icon={RotateCw} busy={retry.pending} action={again}>
            Retry
          </ActionButton>
        ) : (
          open && (
            <ActionButton
              size="sm"
              icon={Ban}
              busy={cancel.pending}
              disabled={turn.cancelRequestedAt !== null}
              action={end}
            >
              {turn.cancelRequestedAt ? 'Being cancelled' : 'Cancel'}
            </ActionButton>
          )
        )
      }
    >
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title="Cancel the turn?"
        action="Cancel the turn"
        busy={cancel.pending}
        onConfirm={cancelIt}
      >
        The turn waits for a decision, which is withdrawn. The approval and the conversation say that it was
        you.
      </ConfirmDialog>
      <div className="p-4">
        {turn ? <Details turn={turn} org={org} /> : <p>This turn is on another page.</p>}
      </div>
    </Peek>
  )
}

function Details({ turn, org }: { turn: TurnRecord; org: number }) {
  const { currency } = useOrg()
  const cut = cutWords(turn.cancelledBy, turn.cancelledWith)
  return (
    <>
      <Facts>
        <Fact name="State">
          <Status of="turn" value={turn.state} />
          {cut && <span className="block text-sm text-muted">{cut}</span>}
        </Fact>
        <Fact name="Started by">{CAUSES[turn.cause] ?? turn.cause}</Fact>
        <Fact name="Conversation">
          <Link
            to="/o/$org/conversations/$id"
            params={{ org, id: turn.conversationId }}
            search={turn.firstSeq ? { seq: turn.firstSeq } : {}}
            className="link"
          >
            {turn.conversation ? conversationTitle(turn.conversation) : turn.conversationId}
          </Link>
        </Fact>
        <Fact name="Created">
          <Time at={turn.createdAt} />
        </Fact>
        <Fact name="Duration">
          {turn.startedAt ? <Duration from={turn.startedAt} to={turn.endedAt} /> : 'not yet'}
        </Fact>
        <Fact name="Model">{turn.model ?? <Unknown why="The agent does not report it." />}</Fact>
        <Fact name="Tokens read">{numberOf(turn.inputTokens)}</Fact>
        <Fact name="Tokens written">{numberOf(turn.outputTokens)}</Fact>
        <Fact name="From the cache">{numberOf(turn.cacheReadTokens)}</Fact>
        <Fact name="Into the cache">{numberOf(turn.cacheWriteTokens)}</Fact>
        <Fact name="Cost">
          {costOf(turn.costMicro, currency) ?? <Unknown why="The agent does not report its cost." />}
        </Fact>
        <Fact name="Revision">
          {turn.agentRevision ? (
            <Link to="." search={{ tab: 'revisions', revision: turn.agentRevision }} className="link">
              {turn.agentRevision}
            </Link>
          ) : (
            <Unknown why="It has not been sent to the agent." />
          )}
        </Fact>
      </Facts>
      {turn.error && <CodeBlock className="mt-4" text={turn.error} label="why it was not finished" />}
      <ModelCalls turnId={turn.id} />
    </>
  )
}

const numberOf = (count: string | null) =>
  count === null ? (
    <Unknown why="The agent does not count tokens." />
  ) : (
    <span className="tabular-nums">{Number(count).toLocaleString()}</span>
  )
