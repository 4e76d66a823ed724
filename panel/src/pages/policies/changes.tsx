// Who gains and loses what: by role, with the names of its members.
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Badge } from '../../ui/badge'
import { Visible } from '../../ui/visible'
import { byRole, subjectName } from './names'
import { type CellChange, MembersQuery } from './queries'

/** More names than this are counted. */
const NAMED = 5

export function Changes({ changes }: { changes: readonly CellChange[] }) {
  const org = useOrg()
  const { data } = useLive({
    query: MembersQuery,
    variables: { orgId: org.id },
    on: ['MEMBER'],
    pause: !org.can('member.view'),
  })
  const members = data?.members
  const namesOf = (subject: string) => {
    // A count of some of the members would mislead.
    if (!members || members.total > members.data.length) return null
    return members.data.filter(({ role }) => role === subject).map(({ name }) => name)
  }
  if (changes.length === 0) return <p className="text-sm text-muted">No one gains or loses anything.</p>
  return (
    <ul className="space-y-3">
      {byRole(changes).map(([subject, allowed, cells]) => (
        <li key={`${subject} ${allowed}`} className="text-sm">
          <span className="flex flex-wrap items-center gap-1.5">
            <strong className="font-semibold">{subjectName(subject)}</strong>
            <Badge tone={allowed ? 'ok' : 'danger'}>{allowed ? 'gains' : 'loses'}</Badge>
          </span>
          <People names={namesOf(subject)} />
          <ul className="mt-1 space-y-0.5">
            {cells.map(({ permission, decidedBy }) => (
              <li key={permission}>
                <code className="font-mono">{permission}</code>
                <span className="block text-xs text-muted">
                  {decidedBy ? `${decidedBy.file} line ${decidedBy.line}` : 'no rule allows it'}
                </span>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  )
}

function People({ names }: { names: string[] | null }) {
  if (!names) return null
  if (names.length === 0) return <span className="block text-muted">No member has this role.</span>
  const more = names.length - NAMED
  return (
    <span className="block text-muted">
      {names.length === 1 ? 'Member' : 'Members'}: <Visible text={names.slice(0, NAMED).join(', ')} />
      {more > 0 && ` and ${more} more`}
    </span>
  )
}
