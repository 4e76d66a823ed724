// The expectations beside the matrix, the organization's own and the operator's, each with whether the draft meets it.
import { CircleCheck, CircleDashed, CircleX } from 'lucide-react'
import { Panel } from '../../ui/panel'
import type { Expectation } from './expectations'
import { mayWords } from './names'
import type { Permissions } from './queries'

interface Props {
  permissions: Permissions
  expectations: Expectation[]
  /** The operator's that would apply without own rules. */
  skipped: number
  /** Shows a line of the own rules. */
  onLine: (line: number) => void
}

export function Expectations({ permissions, expectations, skipped, onLine }: Props) {
  const failed = expectations.filter(({ isMet }) => isMet === false)
  const others = expectations.filter(({ isMet }) => isMet !== false)
  if (expectations.length === 0) return null
  return (
    <Panel
      title="Expectations"
      about="What the rules must guarantee, set by this organization or by the operator."
    >
      <List permissions={permissions} expectations={failed} onLine={onLine} />
      {others.length > 0 && (
        <details className="mt-1.5 text-sm">
          <summary>{summary(others)}</summary>
          <List permissions={permissions} expectations={others} onLine={onLine} />
        </details>
      )}
      {skipped > 0 && (
        <p className="mt-1.5 text-sm text-muted">
          {skipped.toLocaleString()} of the operator’s apply only to an organization without rules of its own.
        </p>
      )}
    </Panel>
  )
}

function summary(others: Expectation[]): string {
  const count = others.length.toLocaleString()
  return others.every(({ isMet }) => isMet) ? `${count} met` : `${count} not checked yet`
}

function List({ permissions, expectations, onLine }: Omit<Props, 'skipped'>) {
  return (
    <ul className="mt-1.5 space-y-1.5 text-sm">
      {expectations.map((each) => {
        const { subject, place, line, permission, effect, isMet } = each
        const { icon: Icon, look, word } = resultOf(isMet)
        return (
          <li key={`${line} ${subject} ${place} ${permission}`} className="flex gap-1.5">
            <Icon size={16} aria-hidden className={`mt-0.5 shrink-0 ${look}`} />
            <span className="min-w-0">
              <span className="sr-only">{word}: </span>
              {mayWords(each, effect === 'allow', permissions)} (
              <code className="font-mono wrap-anywhere">{permission}</code>){' '}
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
const FAILED = { icon: CircleX, look: 'text-danger-text', word: 'Not met' }
const UNKNOWN = { icon: CircleDashed, look: 'text-faint', word: 'Not checked yet' }
