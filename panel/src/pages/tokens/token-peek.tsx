// A service token beside the list: its permissions, its age and creator; rename, rotate, revoke.
import { Ban, RefreshCw } from 'lucide-react'
import { useState } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Button } from '../../ui/button'
import { ConfirmDialog } from '../../ui/confirm'
import { Dialog } from '../../ui/dialog'
import { Field } from '../../ui/field'
import { Select, TextInput } from '../../ui/inputs'
import { Fact, Facts } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SectionField, SectionForm, SectionPart } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { useSection } from '../../ui/use-section'
import { PermissionPicker } from './permission-picker'
import { TokenState } from './token-state'

const TokenQuery = graphql(`
  query ServiceToken($orgId: Id!, $id: Id!) {
    serviceToken(orgId: $orgId, id: $id) {
      id name hint permissions createdAt expiresAt lastUsedAt revokedAt revision
      previousHint previousExpiresAt previousLastUsedAt
      creator { name }
    }
  }
`)
const Update = graphql(`
  mutation UpdateServiceToken($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateServiceTokenInput!) {
    updateServiceToken(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) { id name permissions revision }
  }
`)
const Rotate = graphql(`
  mutation RotateServiceToken($orgId: Id!, $id: Id!, $input: RotateServiceTokenInput) {
    rotateServiceToken(orgId: $orgId, id: $id, input: $input) { id hint token }
  }
`)
const Revoke = graphql(`
  mutation RevokeServiceToken($orgId: Id!, $id: Id!) {
    revokeServiceToken(orgId: $orgId, id: $id) { id revokedAt }
  }
`)
const OVERLAPS = [
  { value: '0', label: 'Stops at once' },
  { value: '3600', label: 'Works for another hour' },
  { value: '86400', label: 'Works for another day' },
  { value: '604800', label: 'Works for another week' },
] as const

type Token = NonNullable<ResultOf<typeof TokenQuery>['serviceToken']>
type Issued = (name: string, secret: string) => void

export function TokenPeek({ id, onIssued, onClose }: { id: number; onIssued: Issued; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: TokenQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => kind === 'SERVICE_TOKEN' && changed === id,
  })
  const token = data?.serviceToken
  return (
    <Peek title={token?.name ?? 'Service token'} onClose={onClose}>
      {error && !token ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !token ? (
        <ListSkeleton />
      ) : (
        <div className="space-y-6 p-4">
          <TokenFacts token={token} />
          {!token.revokedAt && (
            <Gate may="token.edit">
              <Edit token={token} />
            </Gate>
          )}
          <Acts token={token} onIssued={onIssued} />
        </div>
      )}
    </Peek>
  )
}

function TokenFacts({ token }: { token: Token }) {
  return (
    <Facts>
      <Fact name="State">
        <TokenState token={token} />
      </Fact>
      <Fact name="Secret">
        <span className="font-mono text-sm">…{token.hint}</span>
      </Fact>
      {token.previousHint && (
        <Fact name="Previous secret">
          <span className="font-mono text-sm">…{token.previousHint}</span>, works until{' '}
          <Time at={token.previousExpiresAt} />, last used <Time at={token.previousLastUsedAt} />
        </Fact>
      )}
      <Fact name="Issued">
        <Time at={token.createdAt} /> {token.creator && <>by {token.creator.name}</>}
      </Fact>
      <Fact name="Last used">
        <Time at={token.lastUsedAt} />
      </Fact>
      <Fact name="Expires">
        <Time at={token.expiresAt} />
      </Fact>
      {token.revokedAt && (
        <Fact name="Revoked">
          <Time at={token.revokedAt} />
        </Fact>
      )}
    </Facts>
  )
}

function Acts({ token, onIssued }: { token: Token; onIssued: Issued }) {
  const org = useOrg()
  const refused = useRefused('token.edit')
  const revoke = useAct(Revoke)
  const [asking, ask] = useState<'rotate' | 'revoke' | null>(null)
  const of = { group: 'Service token', refused }
  const label = 'New secret for the token'
  const rotateIt = { id: 'token.rotate', label, also: 'rotate', ...of, run: () => ask('rotate') }
  const revokeIt = { id: 'token.revoke', label: 'Revoke the token', ...of, run: () => ask('revoke') }
  return (
    <>
      {!token.revokedAt && (
        <div className="flex flex-wrap gap-2">
          <ActionButton icon={RefreshCw} action={rotateIt}>
            New secret
          </ActionButton>
          <ActionButton icon={Ban} look="danger" action={revokeIt}>
            Revoke
          </ActionButton>
        </div>
      )}
      {asking === 'rotate' && <RotateDialog token={token} onClose={() => ask(null)} onIssued={onIssued} />}
      <ConfirmDialog
        open={asking === 'revoke'}
        onClose={() => ask(null)}
        title={`Revoke ${token.name}?`}
        action="Revoke the token"
        busy={revoke.pending}
        onConfirm={async () => {
          await revoke({ orgId: org.id, id: token.id }, { said: `Revoked ${token.name}` })
          ask(null)
        }}
      >
        Programs that use this token are refused from now on. This can’t be undone; a new token can be issued.
      </ConfirmDialog>
    </>
  )
}

function Edit({ token }: { token: Token }) {
  const org = useOrg()
  const update = useAct(Update)
  const form = useSection({
    stored: { name: token.name, permissions: token.permissions },
    revision: token.revision,
    bounds: { name: 'UpdateServiceTokenInput.name' },
    save: (changes, ifRevision) =>
      update({ orgId: org.id, id: token.id, ifRevision, input: changes as never }, { quiet: true }),
    ofCurrent: ({ name, permissions }: Pick<Token, 'name' | 'permissions'>) => ({ name, permissions }),
  })
  return (
    <SectionForm title="Name and permissions" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={form.values.name} onValue={(name) => form.set('name', name)} />
      </SectionField>
      <SectionPart
        form={form}
        name="permissions"
        asText={(permissions) => (permissions as string[]).join(', ') || 'nothing'}
      >
        <PermissionPicker
          value={form.values.permissions}
          onValue={(permissions) => form.set('permissions', permissions)}
        />
      </SectionPart>
    </SectionForm>
  )
}

function RotateDialog({ token, onClose, onIssued }: { token: Token; onClose: () => void; onIssued: Issued }) {
  const org = useOrg()
  const rotate = useAct(Rotate)
  const [overlap, setOverlap] = useState<(typeof OVERLAPS)[number]['value']>('86400')
  const submit = async () => {
    const input = { overlapSeconds: Number(overlap) }
    const { data } = await rotate({ orgId: org.id, id: token.id, input })
    onClose()
    const secret = data?.rotateServiceToken?.token
    if (secret) onIssued(token.name, secret)
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={`New secret for ${token.name}`}
      about="The name and the permissions stay. The new secret is shown once."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={rotate.pending} onClick={() => void submit()}>
            Make a new secret
          </Button>
        </>
      }
    >
      <Field label="The current secret">
        <Select value={overlap} onValue={setOverlap} options={OVERLAPS} />
      </Field>
    </Dialog>
  )
}
