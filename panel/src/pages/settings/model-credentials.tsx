// The organization's model credentials, which authenticate agents to model providers. Keys can be set but never read.
import { Archive, Ellipsis, KeyRound, Pencil, Plus, Star, StarOff } from 'lucide-react'
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
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { type Editing, ModelCredentialDialog, UpdateModelCredential } from './model-credential-dialog'

const CredentialsQuery = graphql(`
  query ModelCredentials($orgId: Id!) {
    organization(orgId: $orgId) {
      id viewerCan
      modelCredentials {
        id name provider baseUrl isDefault hasSecret limitedUntil limitDetail authFailedAt revision createdAt
      }
    }
  }
`)
const ArchiveCredential = graphql(`
  mutation ArchiveModelCredential($orgId: Id!, $id: Id!) {
    archiveModelCredential(orgId: $orgId, id: $id) { id archivedAt }
  }
`)

type Found = NonNullable<ResultOf<typeof CredentialsQuery>['organization']>
export type ModelCredential = Found['modelCredentials'][number]

export function ModelCredentials() {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: CredentialsQuery,
    variables: { orgId },
    on: ['MODEL_CREDENTIAL', 'ORGANIZATION'],
  })
  const [editing, edit] = useState<Editing | null>(null)
  const found = data?.organization
  return (
    <Panel
      title="Model credentials"
      doc="money.md#model-credentials"
      about="Servers add them to model calls. Agents never see them."
      actions={
        <Gate on={found} may="organization.edit">
          <Button size="sm" icon={Plus} onClick={() => edit({ what: 'new' })}>
            New model credential
          </Button>
        </Gate>
      }
    >
      {error && !found ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !found ? (
        <ListSkeleton />
      ) : found.modelCredentials.length === 0 ? (
        <p className="rounded-card border border-line p-4 text-muted">
          None yet. Add one for each provider that your agents use: an agent without its own credential has no
          access to a model until then.
        </p>
      ) : (
        <ul className="divide-y divide-line rounded-card border border-line">
          {found.modelCredentials.map((credential) => (
            <Row key={credential.id} credential={credential} onEdit={edit} onChanged={refetch} />
          ))}
        </ul>
      )}
      {editing && <ModelCredentialDialog editing={editing} onClose={() => edit(null)} onChanged={refetch} />}
    </Panel>
  )
}

interface RowProps {
  credential: ModelCredential
  onEdit: (editing: Editing) => void
  onChanged: () => void
}

function Row({ credential, onEdit, onChanged }: RowProps) {
  const { name, provider, baseUrl } = credential
  return (
    <li className="flex items-start gap-2 px-4 py-3">
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 font-medium break-words">
            <Visible text={name} />
          </span>
          <State credential={credential} />
        </p>
        <p className="text-sm break-words text-muted">
          {provider}
          {baseUrl && (
            <>
              {' at '}
              <Visible text={baseUrl} />
            </>
          )}
        </p>
        <Trouble credential={credential} />
      </div>
      <More credential={credential} onEdit={onEdit} onChanged={onChanged} />
    </li>
  )
}

function State({ credential }: { credential: ModelCredential }) {
  const { isDefault, hasSecret, authFailedAt, limitedUntil, provider } = credential
  return (
    <>
      {isDefault && (
        <Badge tone="accent" tip={`Agents that use ${provider} and inherit get this one.`}>
          Default
        </Badge>
      )}
      {!hasSecret && <Badge tone="warn">No key</Badge>}
      {authFailedAt && <Badge tone="danger">Rejected</Badge>}
      {limitedUntil && <Badge tone="warn">Limited</Badge>}
    </>
  )
}

/** Why calls with it currently fail. */
function Trouble({
  credential: { authFailedAt, limitedUntil, limitDetail },
}: {
  credential: ModelCredential
}) {
  return (
    <>
      {authFailedAt && (
        <p className="mt-1 text-sm text-danger-text">
          The provider rejected this key <Time at={authFailedAt} />. Replace the key.
        </p>
      )}
      {limitedUntil && (
        <p className="mt-1 text-sm text-warn-text">
          Its provider takes no requests until <Time at={limitedUntil} as="stamp" />: turns wait, and go on by
          themselves. {limitDetail && <Visible text={limitDetail} />}
        </p>
      )}
    </>
  )
}

function More({ credential, onEdit, onChanged }: RowProps) {
  const org = useOrg()
  const refused = useRefused('organization.edit', org)
  const [update, archive] = [useAct(UpdateModelCredential), useAct(ArchiveCredential)]
  const [asking, ask] = useState(false)
  const { id, name, provider, isDefault } = credential
  const makeDefault = async (on: boolean) => {
    const said = on ? `${name} is the default for ${provider}` : `${name} is no longer the default`
    await update({ orgId: org.id, id, input: { isDefault: on } }, { said })
    // Another one may have lost its default.
    onChanged()
  }
  const entries: MenuEntry[] = [
    {
      label: 'Replace the key…',
      icon: KeyRound,
      refused,
      onSelect: () => onEdit({ what: 'key', credential }),
    },
    { label: 'Edit…', icon: Pencil, refused, onSelect: () => onEdit({ what: 'rest', credential }) },
    isDefault
      ? {
          label: 'No longer the default',
          icon: StarOff,
          refused,
          onSelect: () => void makeDefault(false),
        }
      : {
          label: `Make it the default for ${provider}`,
          icon: Star,
          refused,
          onSelect: () => void makeDefault(true),
        },
    'line',
    { label: 'Archive…', icon: Archive, look: 'danger', refused, onSelect: () => ask(true) },
  ]
  return (
    <>
      <Menu
        align="end"
        entries={entries}
        trigger={<IconButton icon={Ellipsis} size="sm" label={`Actions for ${name}`} />}
      />
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Archive ${name}?`}
        action="Archive"
        busy={archive.pending}
        onConfirm={async () => {
          await archive({ orgId: org.id, id }, { said: `Archived ${name}` })
          ask(false)
          onChanged()
        }}
      >
        The key is deleted, and that can’t be undone. Agents that inherit it have no access to their model
        until their provider has another default.
      </ConfirmDialog>
    </>
  )
}
