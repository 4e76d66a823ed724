// The operator's expectations beside the matrix, each with whether the draft meets it.
import { CircleCheck, CircleDashed, CircleX } from 'lucide-react'
import { Panel } from '../../ui/panel'
import type { Expectation } from './expectations'
import { subjectName } from './names'

export function Expectations({ expectations }: { expectations: Expectation[] }) {
  const failed = expectations.filter(({ isMet }) => isMet === false)
  const others = expectations.filter(({ isMet }) => isMet !== false)
  if (expectations.length === 0) return null
  return (
    <Panel
      title="Expectations"
      about="Results that all rules of this organization must have. Only the operator can change them, in expectations.csv."
    >
      <List expectations={failed} />
      {others.length > 0 && (
        <details className="mt-1.5 text-sm">
          <summary>{summary(others)}</summary>
          <List expectations={others} />
        </details>
      )}
    </Panel>
  )
}

function summary(others: Expectation[]): string {
  const count = others.length.toLocaleString()
  return others.every(({ isMet }) => isMet) ? `${count} met` : `${count} not checked yet`
}

function List({ expectations }: { expectations: Expectation[] }) {
  return (
    <ul className="mt-1.5 space-y-1.5 text-sm">
      {expectations.map(({ subject, place, permission, effect, isMet }) => {
        const { icon: Icon, look, word } = isMet ? MET : isMet === false ? FAILED : UNKNOWN
        return (
          <li key={`${subject} ${place} ${permission}`} className="flex gap-1.5">
            <Icon size={16} aria-hidden className={`mt-0.5 shrink-0 ${look}`} />
            <span className="min-w-0">
              <span className="sr-only">{word}: </span>
              {subjectName(subject)} {effect === 'allow' ? 'may' : 'may not'}{' '}
              <code className="font-mono wrap-anywhere">{permission}</code>
            </span>
          </li>
        )
      })}
    </ul>
  )
}

const MET = { icon: CircleCheck, look: 'text-ok-text', word: 'Met' }
const FAILED = { icon: CircleX, look: 'text-danger-text', word: 'Fails' }
const UNKNOWN = { icon: CircleDashed, look: 'text-faint', word: 'Not checked yet' }
