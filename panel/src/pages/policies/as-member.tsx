// What one member may do, explained: read-only, and nothing is asked in the member's name.
import { Check, Minus } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { RecordFilter } from '../../app/filters'
import { useFindMembers } from '../../app/find-members'
import { useOrg } from '../../app/organization'
import { NAV_ITEMS } from '../../app/places'
import { Panel } from '../../ui/panel'
import { Visible } from '../../ui/visible'
import type { Row } from './cells'
import { subjectName } from './names'

const MemberQuery = graphql(`
  query PolicyMember($orgId: Id!, $userId: Id!) {
    member(orgId: $orgId, userId: $userId) { userId organizationId name role }
  }
`)

export type Member = NonNullable<ResultOf<typeof MemberQuery>['member']>

/** The member; undefined while it is not known. */
export function useMember(userId: number | undefined): Member | undefined {
  const { id: orgId } = useOrg()
  const { data } = useLive({
    query: MemberQuery,
    variables: { orgId, userId: userId ?? 0 },
    on: ['MEMBER'],
    pause: userId === undefined,
  })
  return (userId !== undefined && data?.member) || undefined
}

interface FilterProps {
  value: number | undefined
  member: Member | undefined
  onValue: (userId: number | undefined) => void
}

export function MemberFilter({ value, member, onValue }: FilterProps) {
  const search = useFindMembers()
  return (
    <RecordFilter
      label="As a member"
      placeholder="As a member"
      value={value}
      name={member?.name}
      onValue={onValue}
      search={search}
    />
  )
}

export function AsMember({ member: { name, role }, rows }: { member: Member; rows: Row[] }) {
  const allowed = rows.flatMap(({ permission, cells }) =>
    cells.some((cell) => cell.subject === role && cell.allowed) ? [permission] : [],
  )
  return (
    <Panel
      title={`As ${name}`}
      about={
        <>
          <Visible text={name} /> has the role {subjectName(role)}, with {allowed.length} of {rows.length}{' '}
          permissions. This only explains; nothing is done in their name.
        </>
      }
    >
      <h3 className="mb-1 text-sm font-medium">Pages</h3>
      <ul className="columns-2 text-sm">
        {NAV_ITEMS.map(({ id, label, needs }) => {
          const isShown = allowed.includes(needs)
          const Icon = isShown ? Check : Minus
          return (
            <li key={id} className={isShown ? 'flex gap-1.5' : 'flex gap-1.5 text-muted'}>
              <Icon size={16} aria-hidden className="mt-0.5 shrink-0" />
              {label}
              <span className="sr-only">{isShown ? ': shown' : ': not shown'}</span>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}
