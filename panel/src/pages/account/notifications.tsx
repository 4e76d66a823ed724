// The user's notifications, per organization.
import { useQuery } from 'urql'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { notificationsAbout, useMailWay } from '../../app/mail'
import { useViewer } from '../../app/viewer'
import { Empty } from '../../ui/empty'
import { Field } from '../../ui/field'
import { Select } from '../../ui/inputs'
import { Notice } from '../../ui/notice'
import { Panel } from '../../ui/panel'
import { Skeleton } from '../../ui/skeleton'
import { Chats } from './chats'

const NotificationsQuery = graphql(`
  query Notifications($orgId: Id!) {
    notifications(orgId: $orgId) { approvalRaised approvalExpiring agentFailed }
  }
`)
const SetNotifications = graphql(`
  mutation SetNotifications($orgId: Id!, $input: NotificationsInput!) {
    setNotifications(orgId: $orgId, input: $input) { approvalRaised approvalExpiring agentFailed }
  }
`)

const PACES = [
  { value: 'AT_ONCE', label: 'At once' },
  { value: 'DIGEST', label: 'Collected' },
  { value: 'OFF', label: 'Never' },
] as const
const EVENTS = [
  {
    field: 'approvalRaised',
    label: 'An approval waits for you',
    hint: 'If it is assigned to you, or unassigned and yours to decide.',
  },
  {
    field: 'approvalExpiring',
    label: 'An approval is about to expire',
    hint: 'A reminder, while there is still time to decide.',
  },
  { field: 'agentFailed', label: 'An agent failed', hint: 'With the reason, and a link to its page.' },
] as const

export function NotificationsTab() {
  const { memberships } = useViewer()
  const way = useMailWay()
  if (memberships.length === 0)
    return (
      <Empty title="No organization">
        Notifications belong to organizations, and you are not a member of one yet. Ask an administrator for
        an invitation.
      </Empty>
    )
  return (
    <>
      <p className="mb-6 text-muted">{notificationsAbout(way)}</p>
      {memberships.map(({ organizationId, organizationName }) => (
        <Organization key={organizationId} id={organizationId} name={organizationName} />
      ))}
    </>
  )
}

function Organization({ id, name }: { id: number; name: string }) {
  const [{ data, error, fetching }, read] = useQuery({ query: NotificationsQuery, variables: { orgId: id } })
  const act = useAct(SetNotifications)
  const now = data?.notifications
  const change = async (field: (typeof EVENTS)[number]['field'], pace: (typeof PACES)[number]['value']) => {
    const before = now?.[field]
    const { error } = await act(
      { orgId: id, input: { [field]: pace } },
      { said: 'Saved', undo: before ? () => change(field, before) : undefined },
    )
    if (!error) read({ requestPolicy: 'network-only' })
  }
  return (
    <Panel title={name}>
      <div className="space-y-4 rounded-card border border-line p-4">
        {error && !now && <Notice>{wordsOf(error)}</Notice>}
        {!now && fetching && <Skeleton className="w-1/2" />}
        {now &&
          EVENTS.map(({ field, label, hint }) => (
            <div key={field} className="grid items-center gap-x-6 gap-y-1 sm:grid-cols-[1fr_10rem]">
              <div>
                <p className="font-medium">{label}</p>
                <p className="text-sm text-muted">{hint}</p>
              </div>
              <Field label={`${label}, ${name}`} hideLabel>
                <Select value={now[field]} options={PACES} onValue={(pace) => void change(field, pace)} />
              </Field>
            </div>
          ))}
      </div>
      <Chats orgId={id} />
    </Panel>
  )
}
