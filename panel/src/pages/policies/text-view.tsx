// The draft as text, with numbered lines, and the operator's files that apply as well.
import { lazyPart } from '../../app/lazy-page'
import { CodeBlock } from '../../ui/code'
import { Panel } from '../../ui/panel'
import { AddLine } from './add-line'
import type { Editing } from './editing'
import type { Permissions, Policy } from './queries'
import type { Proposed } from './use-proposal'

// As large as several pages.
const TextEditor = lazyPart(() => import('./text-editor'), 'TextEditor')

interface Props {
  policy: Policy
  permissions: Permissions
  text: string
  /** Null: it can't be changed. */
  onText: ((text: string) => void) | null
  /** The service's answer about the text; null while it is pending. */
  proposed: Proposed | null
  /** The version on which the draft is based. */
  version: string
  editing: Editing
}

export function TextView({ policy, permissions, text, onText, proposed, version, editing }: Props) {
  const [own, ...others] = policy.files
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
        <TextEditor
          key={version}
          permissions={permissions}
          text={text}
          onText={onText}
          proposed={proposed}
          version={version}
          editing={editing}
        />
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
