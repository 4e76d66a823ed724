// Event endpoints: addresses of other systems that receive the events of the organization.
import { Ellipsis, KeyRound, List, Pencil, Plus, Power, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate, useRefused } from '../../permissions/gate'
import { Badge } from '../../ui/badge'
import { Button, IconButton } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Menu, type MenuEntry } from '../../ui/menu'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ShownOnce } from '../../ui/shown-once'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { EventDeliveries } from './event-deliveries'
import { EventEndpointDialog, UpdateEventEndpoint } from './event-endpoint-dialog'

const EndpointsQuery = graphql(`
  query EventEndpoints($orgId: Id!) {
    eventEndpoints(orgId: $orgId) {
      id name url types isActive inactiveReason inactiveDetail failingSince previousSecretUntil revision
    }
  }
`)
const Rotate = graphql(`
  mutation RotateEventEndpointSecret($orgId: Id!, $id: Id!) {
    rotateEventEndpointSecret(orgId: $orgId, id: $id) { id secret }
  }
`)
const Delete = graphql(`
  mutation DeleteEventEndpoint($orgId: Id!, $id: Id!) {
    deleteEventEndpoint(orgId: $orgId, id: $id)
  }
`)

export type EventEndpoint = NonNullable<ResultOf<typeof EndpointsQuery>['eventEndpoints']>[number]

type Opened =
  | { what: 'new' }
  | { what: 'edit' | 'deliveries'; endpoint: EventEndpoint }
  | { what: 'secret'; name: string; secret: string }

export function EventEndpoints() {
  const org = useOrg()
  const may = org.can('organization.edit')
  const { data, error, loading, refetch } = useLive({
    query: EndpointsQuery,
    variables: { orgId: org.id },
    on: ['EVENT_ENDPOINT'],
    pause: !may,
  })
  const [opened, open] = useState<Opened | null>(null)
  const found = data?.eventEndpoints
  const onIssued = (name: string, secret: string) => open({ what: 'secret', name, secret })
  return (
    <Panel
      title="Event endpoints"
      doc="events.md#operate-it"
      about="Addresses of other systems that receive what happens here: ids and a link, signed by Standard Webhooks."
      actions={
        <Gate may="organization.edit">
          <Button size="sm" icon={Plus} onClick={() => open({ what: 'new' })}>
            New event endpoint
          </Button>
        </Gate>
      }
    >
      {!may ? (
        <p className="rounded-card border border-line p-4 text-muted">
          Only people with the permission organization.edit see them.
        </p>
      ) : error && !found ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !found ? (
        <ListSkeleton />
      ) : found.length === 0 ? (
        <p className="rounded-card border border-line p-4 text-muted">
          None yet. With one, a system of yours learns at once of an approval, an answer or a failure, without
          asking again and again.
        </p>
      ) : (
        <ul className="divide-y divide-line rounded-card border border-line">
          {found.map((endpoint) => (
            <Row key={endpoint.id} endpoint={endpoint} open={open} onIssued={onIssued} />
          ))}
        </ul>
      )}
      {(opened?.what === 'new' || opened?.what === 'edit') && (
        <EventEndpointDialog
          endpoint={opened.what === 'edit' ? opened.endpoint : null}
          onClose={() => open((before) => (before?.what === 'secret' ? before : null))}
          onIssued={onIssued}
        />
      )}
      {opened?.what === 'deliveries' && (
        <EventDeliveries endpoint={opened.endpoint} onClose={() => open(null)} />
      )}
      <ShownOnce
        open={opened?.what === 'secret'}
        title={`The secret of ${opened?.what === 'secret' ? opened.name : 'the endpoint'}`}
        about="The receiver verifies signatures with it. Keep it where your other secrets are."
        secrets={opened?.what === 'secret' ? [{ label: 'Secret', text: opened.secret }] : []}
        onDone={() => open(null)}
      />
    </Panel>
  )
}

interface RowProps {
  endpoint: EventEndpoint
  open: (opened: Opened) => void
  onIssued: (name: string, secret: string) => void
}

function Row(props: RowProps) {
  const { name, url, types, failingSince, isActive, inactiveDetail, previousSecretUntil } = props.endpoint
  return (
    <li className="flex items-start gap-2 px-4 py-3">
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 font-medium break-words">
            <Visible text={name} />
          </span>
          <State endpoint={props.endpoint} />
        </p>
        <p className="text-sm break-all text-muted">
          <Visible text={url} />
        </p>
        <p className="text-sm break-words text-muted">{types.join(', ')}</p>
        {isActive && failingSince && (
          <p className="mt-1 text-sm text-warn-text">
            The endpoint has accepted nothing since <Time at={failingSince} as="stamp" />. After five days it
            is switched off.
          </p>
        )}
        {!isActive && inactiveDetail && (
          <p className="mt-1 text-sm text-danger-text">
            <Visible text={inactiveDetail} /> The events wait.
          </p>
        )}
        {previousSecretUntil && (
          <p className="mt-1 text-sm text-muted">
            The previous secret signs as well until <Time at={previousSecretUntil} as="stamp" />.
          </p>
        )}
      </div>
      <More {...props} />
    </li>
  )
}

function State({ endpoint: { isActive, inactiveReason, failingSince } }: { endpoint: EventEndpoint }) {
  if (isActive) return failingSince ? <Badge tone="warn">Failing</Badge> : <Badge tone="ok">On</Badge>
  return inactiveReason === 'MANUAL' ? <Badge>Off</Badge> : <Badge tone="danger">Switched off</Badge>
}

function More({ endpoint, open, onIssued }: RowProps) {
  const org = useOrg()
  const refused = useRefused('organization.edit')
  const [update, rotate, remove] = [useAct(UpdateEventEndpoint), useAct(Rotate), useAct(Delete)]
  const [asking, ask] = useState<'rotate' | 'delete' | null>(null)
  const { id, name, isActive } = endpoint
  const of = { orgId: org.id, id }
  const turn = () =>
    update({ ...of, input: { isActive: !isActive } }, { said: isActive ? `${name} is off` : `${name} is on` })
  const entries: MenuEntry[] = [
    {
      label: 'Events of the last 30 days',
      icon: List,
      onSelect: () => open({ what: 'deliveries', endpoint }),
    },
    { label: 'Edit…', icon: Pencil, refused, onSelect: () => open({ what: 'edit', endpoint }) },
    { label: isActive ? 'Switch off' : 'Switch on', icon: Power, refused, onSelect: () => void turn() },
    { label: 'New secret…', icon: KeyRound, refused, onSelect: () => ask('rotate') },
    'line',
    { label: 'Delete…', icon: Trash2, look: 'danger', refused, onSelect: () => ask('delete') },
  ]
  return (
    <>
      <Menu
        align="end"
        entries={entries}
        trigger={<IconButton icon={Ellipsis} size="sm" label={`Actions for ${name}`} />}
      />
      <ConfirmDialog
        open={asking === 'rotate'}
        onClose={() => ask(null)}
        title={`New secret for ${name}?`}
        action="Make a new secret"
        busy={rotate.pending}
        onConfirm={async () => {
          const { data } = await rotate(of)
          ask(null)
          const secret = data?.rotateEventEndpointSecret?.secret
          if (secret) onIssued(name, secret)
        }}
      >
        The current one signs as well for another day, so that the receiver can change it.
      </ConfirmDialog>
      <ConfirmDialog
        open={asking === 'delete'}
        onClose={() => ask(null)}
        title={`Delete ${name}?`}
        action="Delete"
        busy={remove.pending}
        onConfirm={async () => {
          await remove(of, { said: `Deleted ${name}` })
          ask(null)
        }}
      >
        Its events are deleted with it, and that can’t be undone. To stop it for a while, switch it off.
      </ConfirmDialog>
    </>
  )
}
