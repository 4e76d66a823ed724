// The answer to an agent's question: one or several options, and free text.
import { type ReactNode, useId } from 'react'
import { useActions } from '../../keys/use-actions'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { CHECKBOX, RADIO, Tick } from '../../ui/choices'
import { Field } from '../../ui/field'
import { TextArea } from '../../ui/inputs'
import { Kbd } from '../../ui/kbd'
import { Visible } from '../../ui/visible'
import { useOrg } from '../organization'
import { useDraft } from '../thread/use-draft'
import { choicePlace, type Decision, draftPlace } from './decisions'
import type { ApprovalRecord } from './fields'

interface Props {
  approval: ApprovalRecord
  onAnswer: (decision: Decision) => void
  more: ReactNode
  withKeys?: boolean
}

export function QuestionForm({ approval, onAnswer, more, withKeys }: Props) {
  const { id: orgId } = useOrg()
  const [text, setText] = useDraft(orgId, draftPlace(approval.id))
  // Indexes into the question's options. A cancelled or refused decision can be edited again.
  const [places, keepPlaces] = useDraft(orgId, choicePlace(approval.id))
  const chosen = places.split(',').filter(Boolean)
  const name = useId()
  const question = approval.question
  const options = question?.options ?? []
  const multiple = question?.multiple ?? false
  const allowText = question?.allowText ?? options.length === 0
  const ready = chosen.length > 0 || text.trim() !== ''
  const isChosen = (index: number) => chosen.includes(String(index))
  const toggle = (index: number) => {
    const others = multiple ? chosen.filter((place) => place !== String(index)) : []
    keepPlaces((isChosen(index) ? others : [...others, index]).join(','))
  }
  const send = () => {
    if (!ready) return
    const picked = options.filter((_, index) => isChosen(index))
    const labels = picked.map(({ label }) => label)
    const said = `Answer: ${[...labels, text.trim()].filter(Boolean).join(', ')}`.slice(0, 120)
    onAnswer({ how: 'ANSWER', options: picked.map(({ id }) => id), text: text.trim(), said })
  }
  useActions(
    withKeys
      ? options.slice(0, 9).map(({ label }, index) => ({
          id: `approval.option-${index}`,
          label: `Choose “${label.slice(0, 40)}”`,
          group: 'Approval',
          keys: String(index + 1),
          hidden: true,
          run: () => toggle(index),
        }))
      : [],
  )
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {options.length > 0 && (
        <fieldset className="max-h-[38dvh] space-y-1 overflow-y-auto">
          <legend className="mb-1 text-sm font-medium">
            {multiple ? 'Choose one or more' : 'Choose one'}
          </legend>
          {options.map(({ id, label, description }, index) => (
            <label
              key={id}
              className="flex cursor-pointer items-start gap-2.5 rounded-control px-2 py-1.5 hover:bg-hover has-checked:bg-selected coarse:py-2.5"
            >
              <span className="relative mt-0.5 inline-flex">
                <input
                  type={multiple ? 'checkbox' : 'radio'}
                  name={name}
                  checked={isChosen(index)}
                  onChange={() => toggle(index)}
                  className={multiple ? CHECKBOX : RADIO}
                />
                {multiple && <Tick />}
              </span>
              <span className="min-w-0 grow">
                <Visible text={label} />
                {description && (
                  <span className="block text-xs text-muted">
                    <Visible text={description} />
                  </span>
                )}
              </span>
              {withKeys && index < 9 && <Kbd keys={String(index + 1)} />}
            </label>
          ))}
        </fieldset>
      )}
      {allowText && (
        <Field
          label={options.length > 0 ? 'Or in your own words' : 'Your answer'}
          optional={options.length > 0}
        >
          <TextArea
            value={text}
            onValue={setText}
            rows={2}
            maxRows={8}
            maxLength={10_000}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send()
            }}
          />
        </Field>
      )}
      <div className="flex items-center gap-2">
        <Gate on={approval} may="approval.resolve">
          <Button type="submit" look="primary" disabled={!ready} keys="mod+enter" tip="Send the answer">
            Send answer
          </Button>
        </Gate>
        <span className="grow" />
        {more}
      </div>
    </form>
  )
}
