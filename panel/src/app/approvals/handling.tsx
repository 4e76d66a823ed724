// Assigning and snoozing an approval. Both are for people only and change nothing for the agent.
import { AlarmClock } from 'lucide-react'
import { useCallback } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Field } from '../../ui/field'
import { Menu, type MenuEntry } from '../../ui/menu'
import { type Choice, Picker } from '../../ui/picker'
import { Time } from '../../ui/time'
import { useOrg } from '../organization'
import { useViewer } from '../viewer'
import { ApprovalFields, type ApprovalRecord } from './fields'
import { snoozeChoices } from './snooze'

const Assign = graphql(
  `
    mutation AssignApproval($orgId: Id!, $id: Id!, $userId: Id) {
      assignApproval(orgId: $orgId, id: $id, userId: $userId) { ...ApprovalFields }
    }
  `,
  [ApprovalFields],
)
const Snooze = graphql(
  `
    mutation SnoozeApproval($orgId: Id!, $id: Id!, $until: Timestamp) {
      snoozeApproval(orgId: $orgId, id: $id, until: $until) { ...ApprovalFields }
    }
  `,
  [ApprovalFields],
)
const MembersFound = graphql(`
  query MembersFound($orgId: Id!, $search: String) {
    members(orgId: $orgId, search: $search, page: 1, limit: 20) { data { userId organizationId name email role } }
  }
`)

/** Finds members by part of their name. */
export function useMemberSearch(): (text: string) => Promise<Choice[]> {
  const org = useOrg()
  const client = useClient()
  return useCallback(
    async (text: string) => {
      const { data } = await client.query(MembersFound, { orgId: org.id, search: text || null }).toPromise()
      return (data?.members?.data ?? []).map(({ userId, name, email }) => ({
        id: userId,
        name,
        detail: email,
      }))
    },
    [client, org.id],
  )
}

export function useSnooze(
  approval: ApprovalRecord,
): (until: string | null, said: string) => Promise<unknown> {
  const org = useOrg()
  const act = useAct(Snooze)
  const before = approval.snoozedUntil
  return (until, said) =>
    act(
      { orgId: org.id, id: approval.id, until },
      { said, undo: () => act({ orgId: org.id, id: approval.id, until: before }) },
    )
}

export function Assignee({ approval }: { approval: ApprovalRecord }) {
  const org = useOrg()
  const { user } = useViewer()
  const act = useAct(Assign)
  const search = useMemberSearch()
  const { id, assigneeId, assigneeName } = approval
  const assign = (userId: number | null, said: string) =>
    act({ orgId: org.id, id, userId }, { said, undo: () => act({ orgId: org.id, id, userId: assigneeId }) })
  const isOpen = approval.status === 'PENDING'
  return (
    <Gate on={approval} may="approval.resolve">
      <div className="flex items-end gap-2">
        <Field label="Who should decide" className="grow">
          <Picker
            value={assigneeId ? { id: assigneeId, name: assigneeName ?? `No. ${assigneeId}` } : null}
            search={search}
            clearable
            disabled={!isOpen || !approval.viewerCan.includes('approval.resolve')}
            placeholder="Anyone"
            onValue={(choice) =>
              void assign(
                choice ? Number(choice.id) : null,
                choice ? `Assigned to ${choice.name}` : 'Unassigned',
              )
            }
          />
        </Field>
        {isOpen && assigneeId !== user.id && (
          <Button className="h-9" onClick={() => void assign(user.id, 'Assigned to you')}>
            Assign to me
          </Button>
        )}
      </div>
    </Gate>
  )
}

export function SnoozeMenu({ approval }: { approval: ApprovalRecord }) {
  const snooze = useSnooze(approval)
  if (approval.status !== 'PENDING') return null
  const snoozed = approval.snoozedUntil && new Date(approval.snoozedUntil).getTime() > Date.now()
  if (snoozed) {
    return (
      <div className="flex flex-wrap items-center gap-2 text-sm text-muted">
        <span>
          Hidden from you until <Time at={approval.snoozedUntil} as="stamp" />
        </span>
        <Button size="sm" onClick={() => void snooze(null, 'Shown again')}>
          Show again
        </Button>
      </div>
    )
  }
  const entries: MenuEntry[] = snoozeChoices(new Date(), approval.expiresAt).map(
    ({ label, until, refused }) => ({
      label,
      about: refused,
      disabled: refused !== undefined,
      onSelect: () => void snooze(until, `Hidden: ${label.toLowerCase()}`),
    }),
  )
  return (
    <Menu
      align="start"
      trigger={
        <Button className="h-9" icon={AlarmClock} keys="s" tip="Hide from you for a while">
          Snooze
        </Button>
      }
      entries={entries}
    />
  )
}
