// The draft's effect: problems, gains and losses, and recent calls with another result.
import { Link } from '@tanstack/react-router'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { Code } from '../../ui/code'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Skeleton } from '../../ui/skeleton'
import { Visible } from '../../ui/visible'
import { spaced } from '../audit/words'
import { Changes } from './changes'
import { fixOf } from './fixes'
import { isOwnFile } from './lines'
import { subjectName } from './names'
import { problemWords } from './problem-words'
import type { Permissions, Proposal, Simulation } from './queries'
import type { Proposing } from './use-proposal'

interface Props {
  permissions: Permissions
  proposing: Proposing
  /** Above the changes: "The draft changes". Null: the text is in force, so that it changes nothing. */
  title: string | null
  /** Shows a line of the own rules. */
  onLine?: (line: number) => void
  /** Takes a corrected text. */
  onText?: (text: string) => void
}

export function Effect({ permissions, proposing, title, onLine, onText }: Props) {
  const { proposed, problem, retry } = proposing
  return (
    <>
      {problem && (
        <Notice>
          {problem}{' '}
          <button type="button" className="link" onClick={retry}>
            Try again
          </button>
        </Notice>
      )}
      {title && (
        <Panel title={title}>
          {proposed ? (
            <>
              <p role="status" className="sr-only">
                {summary(proposed.proposal)}
              </p>
              {proposed.proposal.ok ? (
                <Changes changes={proposed.proposal.changes} />
              ) : (
                <Problems
                  permissions={permissions}
                  problems={proposed.proposal.problems}
                  text={proposed.text}
                  onLine={onLine}
                  onText={onText}
                />
              )}
            </>
          ) : (
            !problem && <Skeleton className="w-3/4" />
          )}
        </Panel>
      )}
      {proposed?.proposal.ok &&
        (proposed.replay ? (
          <Replay replay={proposed.replay} isNew={title !== null} />
        ) : (
          !problem && <Skeleton />
        ))}
    </>
  )
}

function summary({ ok, changes, problems }: Proposal): string {
  if (!ok) return `It has ${counted(problems.length, 'problem')}`
  return `It changes ${counted(changes.length, 'cell')}`
}

const counted = (count: number, word: string) => `${count.toLocaleString()} ${word}${count === 1 ? '' : 's'}`

interface ProblemsProps {
  permissions: Permissions
  problems: Proposal['problems']
  /** The text that has them. */
  text?: string
  onLine?: (line: number) => void
  onText?: (text: string) => void
}

export function Problems({ permissions, problems, text = '', onLine, onText }: ProblemsProps) {
  return (
    <ul className="space-y-1.5 text-sm">
      {problems.map((problem) => {
        const { file, line, reason } = problemWords(problem, permissions)
        const fix = onText && fixOf(problem, text)
        return (
          <li key={`${file}:${line}: ${reason}`} className="text-danger-text">
            {line !== null && onLine && isOwnFile(file) ? (
              <button type="button" className="link" onClick={() => onLine(line)}>
                Line {line}
              </button>
            ) : (
              `${file}${line === null ? '' : ` line ${line}`}`
            )}
            : <Visible text={reason} />
            {fix && (
              <span className="mt-1 block">
                <Button size="sm" onClick={() => onText(fix.text)}>
                  {fix.label}
                </Button>
              </span>
            )}
          </li>
        )
      })}
    </ul>
  )
}

function Replay({ replay, isNew }: { replay: Simulation; isNew: boolean }) {
  const { calls, days, flipped, flips, unusedLines } = replay
  return (
    <>
      {isNew && (
        <Panel title={`Calls of the last ${days} days`}>
          <p className="text-sm">
            {flipped === 0
              ? `None of ${counted(calls, 'call')} would have a different result.`
              : `${flipped.toLocaleString()} of ${counted(calls, 'call')} would have a different result.`}
          </p>
          <ul className="mt-2 space-y-2 text-sm">
            {flips.slice(0, SHOWN).map((flip) => (
              <Flip key={`${flip.operation} ${flip.subject} ${flip.tokenId}`} flip={flip} days={days} />
            ))}
          </ul>
          {flips.length > SHOWN && (
            <p className="mt-2 text-sm text-muted">And {counted(flips.length - SHOWN, 'other operation')}.</p>
          )}
        </Panel>
      )}
      {unusedLines.length > 0 && (
        <Panel title="Unused lines" about={`These lines decided no call of the last ${days} days.`}>
          <ul className="space-y-1 text-sm">
            {unusedLines.map(({ line, text }) => (
              <li key={line}>
                {line}. <Code>{text}</Code>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  )
}

const SHOWN = 20

function Flip({ flip, days }: { flip: Simulation['flips'][number]; days: number }) {
  const org = useOrg()
  const { operation, subject, tokenId, allowed, count, permission } = flip
  const name = `${spaced(operation)} ×${count.toLocaleString()}`
  const from = () => new Date(Date.now() - days * 86_400_000).toISOString()
  const search = tokenId
    ? { operation, from: from(), actor: tokenId, actorKind: 'SERVICE_TOKEN' as const }
    : { operation, from: from() }
  return (
    <li>
      {org.can('audit.view') ? (
        <Link to="/o/$org/audit" params={{ org: org.id }} search={search} className="link">
          {name}
        </Link>
      ) : (
        name
      )}
      <span className="block text-xs text-muted">
        {subjectName(subject)} would be {allowed ? 'allowed' : 'refused'} (<code>{permission}</code>)
      </span>
    </li>
  )
}

/** How to begin a draft. `onText` is null where the text is shown already. */
export function NoDraft({ onText }: { onText: (() => void) | null }) {
  return (
    <p className="mb-4 text-sm text-muted">
      {onText ? (
        <>
          No draft. Click a cell or{' '}
          <button type="button" className="link" onClick={onText}>
            edit the text
          </button>{' '}
          to start one;
        </>
      ) : (
        'No draft. Edit the text, or click a cell of the matrix, to start one;'
      )}{' '}
      it takes effect when you publish.
    </p>
  )
}
