// The reasons why the rules can't be edited here, with a remedy, and the problems of those in force.
import { useOrg } from '../../app/organization'
import { CodeBlock } from '../../ui/code'
import { Notice } from '../../ui/notice'
import { NotEditable } from '../../ui/panel'
import { Problems } from './effect'
import { mayWords } from './names'
import type { Permissions, Policy } from './queries'

interface Props {
  policy: Policy
  permissions: Permissions
  /** A file of the installation has the rules. */
  isOwned: boolean
  /** Explains a missing permission; null with it. */
  refused: (() => void) | null
}

export function ReadOnly({ policy, permissions, isOwned, refused }: Props) {
  const { files, problems, expectations } = policy
  const org = useOrg()
  const unmet = expectations.filter(({ met }) => !met)
  if (!isOwned && !refused && problems.length === 0 && unmet.length === 0) return null
  const file = files[0]?.file
  return (
    <div className="shrink-0 space-y-2 border-b border-line px-4 py-2 sm:px-6">
      {problems.length > 0 && (
        <Notice tone="warn">
          These rules have problems. Of the organization’s own rules, only the denials or the last valid file
          apply.
          <Problems permissions={permissions} problems={problems} />
        </Notice>
      )}
      {unmet.length > 0 && (
        <Notice tone="warn">
          The rules do not meet these expectations of their own. They stay in force, but the next version must
          meet or remove them.
          <ul>
            {unmet.map((each) => (
              <li key={each.line}>
                Line {each.line}: {mayWords(each, each.allowed, permissions)} (<code>{each.permission}</code>)
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {isOwned ? (
        <div className="max-w-4xl space-y-2 text-sm">
          <p>
            The file <code>{file}</code> in the policy folder of this installation has this organization’s
            rules, so they can’t be edited here. The operator edits the file; or stores it in the database
            with this command and deletes it, and the rules can be edited here:
          </p>
          <CodeBlock
            text={`muster policy publish --org ${org.id} --reason 'The organization edits its own rules'`}
            label="the command"
          />
        </div>
      ) : (
        refused && <NotEditable explain={refused} />
      )}
    </div>
  )
}
