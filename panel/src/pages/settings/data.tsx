// The organization's data: export, deletion, and what is scheduled to be erased.
import { Download, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { ErasureFields } from '../../app/erasures'
import { cancelAbout, useMailWay } from '../../app/mail'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button, buttonClass } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'

const ErasuresQuery = graphql(
  `
    query Erasures($orgId: Id!) {
      organization(orgId: $orgId) { ...ErasureFields }
    }
  `,
  [ErasureFields],
)
const Schedule = graphql(
  `
    mutation ScheduleDeletion($orgId: Id!, $name: String!) {
      scheduleDeletion(orgId: $orgId, name: $name) { ...ErasureFields }
    }
  `,
  [ErasureFields],
)
const Cancel = graphql(
  `
    mutation CancelErasure($orgId: Id!, $erasureId: Id!) {
      cancelErasure(orgId: $orgId, erasureId: $erasureId) { ...ErasureFields }
    }
  `,
  [ErasureFields],
)

type Erasure = ResultOf<typeof ErasureFields>['erasures'][number]

export function Data() {
  const org = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: ErasuresQuery,
    variables: { orgId: org.id },
    on: ['ORGANIZATION'],
  })
  const schedule = useAct(Schedule)
  const mailWay = useMailWay()
  const [asking, ask] = useState(false)
  const erasures = data?.organization?.erasures
  const ending = erasures?.some(({ subject }) => subject === 'ORGANIZATION')
  return (
    <Gate may="organization.erase">
      <Panel
        title="Export"
        doc="personal-data.md#exporting-an-organization"
        about="All records as JSON lines, with attachments, pictures and raw e-mails, in one tar archive. Secrets are not included."
      >
        {org.can('organization.erase') ? (
          <a
            href={`/export/organization/${org.id}`}
            download={`organization-${org.id}.tar`}
            className={buttonClass()}
          >
            <Download size={15} aria-hidden />
            Export everything
          </a>
        ) : (
          <Button icon={Download}>Export everything</Button>
        )}
      </Panel>
      <Panel
        title="Scheduled erasures"
        doc="personal-data.md#erasing-a-person"
        about="Members and contacts are erased from their own menus. Until an erasure is due, an owner can cancel it."
      >
        {error && !erasures ? (
          <ProblemView error={error} retry={refetch} />
        ) : loading || !erasures ? (
          <ListSkeleton />
        ) : erasures.length === 0 ? (
          <p className="rounded-card border border-line p-4 text-muted">Nothing is to be erased.</p>
        ) : (
          <ul className="divide-y divide-line rounded-card border border-line">
            {erasures.map((erasure) => (
              <Row key={erasure.id} erasure={erasure} />
            ))}
          </ul>
        )}
      </Panel>
      <Panel
        title="Deletion"
        doc="personal-data.md#deleting-an-organization"
        about="Ends the organization with everything in it: members lose access, agents are stopped, then all records are deleted."
      >
        <Button look="danger" icon={Trash2} disabled={ending ?? true} onClick={() => ask(true)}>
          Delete the organization
        </Button>
      </Panel>
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Delete ${org.name}?`}
        action="Schedule the deletion"
        typed={org.name}
        busy={schedule.pending}
        onConfirm={async () => {
          await schedule({ orgId: org.id, name: org.name }, { said: 'The deletion is scheduled' })
          ask(false)
        }}
      >
        After a grace period everything is deleted for good. {cancelAbout(mailWay)} Export the data first.
      </ConfirmDialog>
    </Gate>
  )
}

function Row({ erasure: { id, subject, userId, contactId, state, dueAt } }: { erasure: Erasure }) {
  const { id: orgId } = useOrg()
  const cancel = useAct(Cancel)
  const names = {
    ORGANIZATION: 'The organization',
    MEMBER: `Member ${userId}`,
    CONTACT: `Contact ${contactId}`,
  }
  return (
    <li className="flex items-center gap-2 px-4 py-2">
      <div className="min-w-0 grow">
        <p className="font-medium">{names[subject]}</p>
        <p className="text-sm text-muted">
          {state === 'SCHEDULED' ? (
            <>
              due <Time at={dueAt} as="stamp" />
            </>
          ) : (
            'in progress'
          )}
        </p>
      </div>
      {state === 'SCHEDULED' && (
        <Button
          size="sm"
          busy={cancel.pending}
          onClick={() => void cancel({ orgId, erasureId: id }, { said: 'Nothing is erased' })}
        >
          Cancel
        </Button>
      )}
    </li>
  )
}
