// The decision form: the buttons for the kind of approval, and a comment. The button for a risky, irreversible decision
// must be held; all other decisions can be cancelled for a few seconds.
import { MessageSquareText, MoreHorizontal } from 'lucide-react'
import {
  lazy,
  type MouseEvent,
  type Ref,
  Suspense,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
} from 'react'
import { useClient } from 'urql'
import { fetched } from '../../api/chunk'
import { Gate, useRefused } from '../../permissions/gate'
import { Button, IconButton } from '../../ui/button'
import { Field } from '../../ui/field'
import { HoldButton, type HoldHandle } from '../../ui/hold-button'
import { TextArea } from '../../ui/inputs'
import { Menu } from '../../ui/menu'
import { useOrg } from '../organization'
import { useDraft } from '../thread/use-draft'
import {
  DELAY_MS,
  type Decision,
  decide,
  draftPlace,
  forgetDraft,
  otherDecidedAt,
  useSending,
} from './decisions'
import type { ApprovalRecord } from './fields'
import { fixOf, isConnection } from './fix'
import { FixButton } from './fix-button'
import { Outcome, SendingDecision } from './outcome'
import { QuestionForm } from './question-form'
import { isSlip } from './slip'
import { isHighRisk } from './words'

const FixDialog = lazy(() => fetched(() => import('./fix-dialog')))

/** Lets shortcuts operate the displayed decision. */
export interface DecideHandle {
  approve: () => void
  deny: () => void
  comment: () => void
}

interface Props {
  approval: ApprovalRecord
  /** The decision was made or is being sent: time for the next one. */
  onDecided?: () => void
  handle?: Ref<DecideHandle>
  /** Shows shortcuts on the buttons. */
  withKeys?: boolean
}

export function Decide({ approval, onDecided, handle, withKeys }: Props) {
  const org = useOrg()
  const sending = useSending(approval.id)
  const open = approval.status === 'PENDING'
  // Delete the draft once the approval is closed.
  useEffect(() => {
    if (!open) forgetDraft(org.id, approval.id)
  }, [open, org.id, approval.id])
  if (!open) return <Outcome approval={approval} />
  if (sending && sending.state !== 'late')
    return <SendingDecision id={approval.id} sending={sending} withKeys={withKeys} />
  // A draft belongs to one approval.
  return (
    <Form key={approval.id} approval={approval} onDecided={onDecided} handle={handle} withKeys={withKeys} />
  )
}

function Form({ approval, onDecided, handle, withKeys }: Props) {
  const org = useOrg()
  const client = useClient()
  const [text, setText] = useDraft(org.id, draftPlace(approval.id))
  const [writing, setWriting] = useState(text !== '')
  const area = useRef<HTMLDivElement>(null)
  const hold = useRef<HoldHandle>(null)
  const refused = useRefused('approval.resolve', approval)
  // Allowing a host requires the permission to edit the network list.
  const notThisHost = useRefused('network.edit')
  const mayNotApprove = refused ?? (isConnection(approval) ? notThisHost : null)
  const fix = fixOf(approval)
  const [fixing, setFixing] = useState(false)
  const mayNotFix = useRefused('organization.edit')
  const fixesSpending = fix?.what === 'spending'
  const high = isHighRisk(approval)
  const isAction = approval.kind === 'ACTION'
  const [shownAt] = useState(() => performance.now())
  const pressed = (run: () => void) => (event: MouseEvent) => {
    const decidedAt = otherDecidedAt(approval.id)
    if (!isSlip({ clicks: event.detail, now: performance.now(), shownAt, decidedAt })) run()
  }
  const send = (decision: Decision, delay = DELAY_MS) => {
    if (refused) return refused()
    decide(client, org.id, approval.id, decision, delay)
    onDecided?.()
  }
  const words = text.trim()
  const approve = (delay = DELAY_MS) =>
    send(
      isAction
        ? { how: 'ANSWER', options: ['approve'], text: words, said: 'Approve' }
        : { how: 'RESOLVE', comment: words, said: 'Mark as resolved' },
      delay,
    )
  const deny = () =>
    send(
      isAction
        ? { how: 'ANSWER', options: ['deny'], text: words, said: 'Deny' }
        : { how: 'DISMISS', comment: words, said: 'Dismiss' },
    )
  const comment = () => {
    setWriting(true)
    requestAnimationFrame(() => area.current?.querySelector<HTMLElement>('textarea, input')?.focus())
  }
  const question = approval.kind === 'QUESTION'
  useImperativeHandle(handle, () => ({
    approve: () => {
      if (fixesSpending) mayNotFix ? mayNotFix() : setFixing(true)
      else if (mayNotApprove) mayNotApprove()
      else if (question) comment()
      else if (high && isAction) hold.current?.point()
      else approve()
    },
    deny: () => (question ? dismiss() : deny()),
    comment,
  }))
  const dismiss = () => send({ how: 'DISMISS', comment: question ? undefined : words, said: 'Dismiss' })
  const more = (
    <Menu
      trigger={<IconButton icon={MoreHorizontal} label="More actions" />}
      entries={[
        {
          label: 'Dismiss',
          about: 'It no longer applies. Nothing is done.',
          onSelect: dismiss,
          refused,
        },
        (isAction || question) && {
          label: 'Mark as resolved',
          about: 'Settled elsewhere. The agent is not answered.',
          onSelect: () => send({ how: 'RESOLVE', comment: words, said: 'Mark as resolved' }),
          refused,
        },
      ].filter((entry) => entry !== false)}
    />
  )
  if (question) {
    return (
      <div ref={area}>
        <QuestionForm approval={approval} onAnswer={send} more={more} withKeys={withKeys} />
      </div>
    )
  }
  return (
    <div ref={area} className="space-y-2">
      {writing && (
        <Field label={isAction ? 'Comment for the agent' : 'Comment'} optional>
          <TextArea
            value={text}
            onValue={setText}
            rows={2}
            maxRows={6}
            maxLength={2000}
            placeholder={isAction ? 'Why, or what to do instead' : undefined}
          />
        </Field>
      )}
      <Gate on={approval} may="approval.resolve">
        <div className="flex flex-wrap items-center gap-2">
          {fixesSpending && (
            <FixButton fix={fix} keys={withKeys ? 'a' : undefined} onPress={() => setFixing(true)} />
          )}
          <Gate
            {...(isConnection(approval)
              ? { may: 'network.edit' }
              : { on: approval, may: 'approval.resolve' })}
          >
            {isAction && high ? (
              <HoldButton
                look="primary"
                handle={hold}
                tip={`Risky and final: press and hold${withKeys ? '. By keyboard: A selects it, then hold Enter' : ''}`}
                onHeld={() => approve(0)}
              >
                Hold to approve
              </HoldButton>
            ) : (
              <Button
                look={fixesSpending ? 'secondary' : 'primary'}
                keys={withKeys && !fixesSpending ? 'a' : undefined}
                tip={isAction ? 'Approve' : 'Mark as resolved'}
                onClick={pressed(() => approve())}
              >
                {isAction ? 'Approve' : 'Mark as resolved'}
              </Button>
            )}
          </Gate>
          {fix?.what === 'host' && <FixButton fix={fix} onPress={() => setFixing(true)} />}
          <Button
            keys={withKeys ? 'd' : undefined}
            tip={isAction ? 'Deny' : 'Dismiss'}
            onClick={pressed(deny)}
          >
            {isAction ? 'Deny' : 'Dismiss'}
          </Button>
          <span className="ml-auto flex items-center gap-1">
            {!writing && (
              <IconButton
                icon={MessageSquareText}
                label="Add a comment"
                keys={withKeys ? 'c' : undefined}
                onClick={comment}
              />
            )}
            {isAction && more}
          </span>
        </div>
      </Gate>
      {fixing && fix && (
        <Suspense>
          <FixDialog approval={approval} fix={fix} onClose={() => setFixing(false)} onDone={onDecided} />
        </Suspense>
      )}
    </div>
  )
}
