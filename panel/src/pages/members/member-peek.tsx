// A member beside the list: role and sign-in methods.
import { Link } from '@tanstack/react-router'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Fact, Facts } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { type Member, MemberFields } from './member'
import { MemberMenu } from './member-menu'
import { RoleMenu } from './role-menu'
import { ROLE_MEANINGS } from './roles'

const MemberQuery = graphql(
  `
  query Member($orgId: Id!, $userId: Id!) {
    member(orgId: $orgId, userId: $userId) { ...MemberFields }
  }
`,
  [MemberFields],
)

export function MemberPeek({ userId, onClose }: { userId: number; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: MemberQuery,
    variables: { orgId, userId },
    on: ({ kind, id }) => kind === 'MEMBER' && id === userId,
  })
  const member = data?.member
  return (
    <Peek
      title={member?.name ?? 'Member'}
      onClose={onClose}
      actions={member && <MemberMenu member={member} offered onRemoved={onClose} />}
    >
      {error && !member ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !member ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <MemberFacts member={member} />
        </div>
      )}
    </Peek>
  )
}

function MemberFacts({ member }: { member: Member }) {
  const org = useOrg()
  return (
    <Facts>
      <Fact name="Role">
        <RoleMenu member={member} offered />
        <span className="mt-1 block text-sm text-muted">{ROLE_MEANINGS[member.role]}</span>
      </Fact>
      <Fact name="Address">
        <span className="break-all">{member.email}</span>
        {!member.emailConfirmed && ', not confirmed'}
      </Fact>
      <Fact name="Second factor">{member.hasSecondFactor ? 'On' : 'Off'}</Fact>
      <Fact name="Last seen">
        <Time at={member.lastSeenAt} />
      </Fact>
      <Fact name="Member since">
        <Time at={member.createdAt} />
      </Fact>
      {org.can('audit.view') && (
        <Fact name="Audit log">
          <Link
            to="/o/$org/audit"
            params={{ org: org.id }}
            search={{ actor: member.userId }}
            className="link"
          >
            All actions of this member
          </Link>
        </Fact>
      )}
    </Facts>
  )
}
