// The expectations beside the matrix, the organization's own and the operator's, each with whether the draft meets it.
import { CircleCheck, CircleDashed, CircleX } from 'lucide-react'
import { Panel } from '../../ui/panel'
import type { Expectation } from './expectations'
import { subjectName } from './names'

interface Props {
  expectations: Expectation[]
  /** Shows a line of the own rules. */
  onLine: (line: number) => void
}

export function Expectations({ expectations, onLine }: Props) {
  const failed = expectations.filter(({ isMet }) => isMet === false)
  const others = expectations.filter(({ isMet }) => isMet !== false)
  if (expectations.length === 0) return null
  return (
    <Panel
      title="Expectations"
      about="Results that the rules must have: this organization’s own, in its text, and the operator’s, in expectations.csv."
    >
      <List expectations={failed} onLine={onLine} />
      {others.length > 0 && (
        <details className="mt-1.5 text-sm">
          <summary>{summary(others)}</summary>
          <List expectations={others} onLine={onLine} />
        </details>
      )}
    </Panel>
  )
}

function summary(others: Expectation[]): string {
  const count = others.length.toLocaleString()
  return others.every(({ isMet }) => isMet) ? `${count} met` : `${count} not checked yet`
}

function List({ expectations, onLine }: Props) {
  return (
    <ul className="mt-1.5 space-y-1.5 text-sm">
      {expectations.map(({ subject, place, line, permission, effect, isMet }) => {
        const { icon: Icon, look, word } = resultOf(isMet)
        return (
          <li key={`${line} ${subject} ${place} ${permission}`} className="flex gap-1.5">
            <Icon size={16} aria-hidden className={`mt-0.5 shrink-0 ${look}`} />
            <span className="min-w-0">
              <span className="sr-only">{word}: </span>
              {subjectName(subject)} {effect === 'allow' ? 'may' : 'may not'}{' '}
              <code className="font-mono wrap-anywhere">{permission}</code>{' '}
              {line === null ? (
                <span className="text-muted">(the operator’s)</span>
              ) : (
                <button type="button" className="link" onClick={() => onLine(line)}>
                  Line {line}
                </button>
              )}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

/** How a result looks, here and in the matrix. */
export const resultOf = (isMet: boolean | undefined) => (isMet ? MET : isMet === false ? FAILED : UNKNOWN)

const MET = { icon: CircleCheck, look: 'text-ok-text', word: 'Met' }
const FAILED = { icon: CircleX, look: 'text-danger-text', word: 'Fails' }
const UNKNOWN = { icon: CircleDashed, look: 'text-faint', word: 'Not checked yet' }
