// The draft as text, with numbered lines, and the operator's files that apply as well.
import { type RefObject, useId } from 'react'
import { CodeBlock } from '../../ui/code'
import { cx } from '../../ui/cx'
import { Panel } from '../../ui/panel'
import { AddLine } from './add-line'
import { isOwnFile } from './lines'
import type { Permissions, Policy, Proposal } from './queries'

interface Props {
  policy: Policy
  permissions: Permissions
  text: string
  /** Null: it can't be changed. */
  onText: ((text: string) => void) | null
  problems: Proposal['problems']
  /** The numbers of lines that decided no recent call. */
  unused: readonly number[]
  area: RefObject<HTMLTextAreaElement | null>
}

export function TextView({ policy, permissions, text, onText, problems, unused, area }: Props) {
  const id = useId()
  const [own, ...others] = policy.files
  const isWrong = (line: number) =>
    problems.some((problem) => problem.line === line && isOwnFile(problem.file))
  const lines = text.split('\n')
  return (
    <div className="max-w-4xl px-4 py-4 sm:px-6">
      <Panel
        title={own?.file ?? 'Own rules'}
        about={
          <>
            The rules of this organization: <code>p, role, {'<organization>'}, permission, allow</code> or{' '}
            <code>deny</code>, one a line; comments begin with #.
          </>
        }
      >
        <div className="flex overflow-x-auto rounded-control border border-outline font-mono text-sm focus-within:outline-2 focus-within:outline-accent-text">
          <div
            aria-hidden
            className="shrink-0 select-none border-r border-line bg-sunken px-2 py-2 text-right text-faint"
          >
            {lines.map((_, index) => {
              const line = index + 1
              return (
                <div
                  key={line}
                  className={cx(isWrong(line) && 'bg-danger-soft font-semibold text-danger-text')}
                >
                  {unused.includes(line) && <span data-tip="Decided no recent call">○ </span>}
                  {line}
                </div>
              )
            })}
          </div>
          <label htmlFor={id} className="sr-only">
            Text of the rules
          </label>
          <textarea
            ref={area}
            id={id}
            value={text}
            rows={Math.max(lines.length, 6)}
            wrap="off"
            spellCheck={false}
            autoComplete="off"
            autoCapitalize="off"
            readOnly={!onText}
            aria-invalid={problems.length > 0 || undefined}
            onChange={(event) => onText?.(event.target.value)}
            className="min-w-0 grow resize-none overflow-x-auto overflow-y-hidden bg-canvas px-3 py-2 whitespace-pre outline-none read-only:bg-sunken"
          />
        </div>
        {onText && <AddLine permissions={permissions} text={text} onText={onText} />}
      </Panel>
      {others.map(
        (file) =>
          file.text && (
            <details key={file.file} className="mb-3">
              <summary className="text-sm font-medium">
                {file.file}{' '}
                <span className="font-normal text-muted">
                  {file.file === 'policy.csv'
                    ? 'the general rules and the ceiling, by the operator'
                    : 'the results that every edit must have, by the operator'}
                </span>
              </summary>
              <CodeBlock text={file.text} label={file.file} wrap={false} className="mt-2" />
            </details>
          ),
      )}
    </div>
  )
}

/** Selects a line of a text, numbered from 1, and shows it. */
export function selectLine(area: HTMLTextAreaElement | null, line: number): void {
  if (!area) return
  const lines = area.value.split('\n')
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0)
  area.focus()
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
}
