// A credential beside the list: its purpose, its fields without values, its agents and members.
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { ArchiveButton } from '../../app/archive-button'
import { AssignedAgents } from '../../app/assigned-agents'
import { CREDENTIAL_APPLIES } from '../../app/assigned-agents-calls'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Select, TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SectionField, SectionForm } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { useSection } from '../../ui/use-section'
import { AgentUse } from './agent-use'
import { Fields } from './fields'
import { History } from './history'
import { KINDS } from './kinds'
import { Members } from './members'

const CredentialQuery = graphql(`
  query Credential($orgId: Id!, $id: Id!) {
    credential(orgId: $orgId, id: $id) {
      id name description kind destinations revision archivedAt createdAt updatedAt lastUsedAt viewerCan
      isInjected agentMayRead agentMayReadAt agentMayReadByName
      fields { id label type hasValue position }
      agents { id name avatarUrl }
      members { userId name email avatarUrl }
    }
  }
`)
export const UpdateCredential = graphql(`
  mutation UpdateCredential($orgId: Id!, $id: Id!, $ifRevision: Int, $agentMayRead: Boolean, $input: UpdateCredentialInput!) {
    updateCredential(orgId: $orgId, id: $id, ifRevision: $ifRevision, agentMayRead: $agentMayRead, input: $input) {
      id name description kind destinations revision updatedAt
      isInjected agentMayRead agentMayReadAt agentMayReadByName
      fields { id label type hasValue position }
    }
  }
`)
const Archive = graphql(`
  mutation ArchiveCredential($orgId: Id!, $id: Id!) {
    archiveCredential(orgId: $orgId, id: $id) { id archivedAt }
  }
`)
const Restore = graphql(`
  mutation UnarchiveCredential($orgId: Id!, $id: Id!) {
    unarchiveCredential(orgId: $orgId, id: $id) { id archivedAt }
  }
`)

export type Credential = NonNullable<ResultOf<typeof CredentialQuery>['credential']>

export function CredentialPeek({ id, onClose }: { id: number; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: CredentialQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => kind === 'CREDENTIAL' && changed === id,
  })
  const [archive, restore] = [useAct(Archive), useAct(Restore)]
  const credential = data?.credential
  return (
    <Peek title={credential?.name ?? 'Credential'} onClose={onClose}>
      {error && !credential ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !credential ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <Gate on={credential} may="credential.edit">
            <Edit credential={credential} />
          </Gate>
          <AgentUse credential={credential} />
          <Fields credential={credential} />
          <AssignedAgents
            kind="credential"
            what="this credential"
            about={CREDENTIAL_APPLIES}
            record={credential}
            may="credential.edit"
          />
          <Members credential={credential} />
          <History credential={credential} />
          <ArchiveButton
            what="credential"
            record={credential}
            may={{ archive: 'credential.delete', restore: 'credential.edit' }}
            onArchive={(options) => archive({ orgId, id }, options)}
            onRestore={(options) => restore({ orgId, id }, options)}
          />
        </div>
      )}
    </Peek>
  )
}

const pick = ({ name, description, kind, destinations }: Credential) => ({
  name,
  description,
  kind,
  destinations,
})

function Edit({ credential }: { credential: Credential }) {
  const { id: orgId } = useOrg()
  const update = useAct(UpdateCredential)
  const form = useSection({
    stored: pick(credential),
    revision: credential.revision,
    bounds: {
      name: 'UpdateCredentialInput.name',
      description: 'UpdateCredentialInput.description',
      destinations: 'UpdateCredentialInput.destinations',
    },
    save: (changes, ifRevision) =>
      update({ orgId, id: credential.id, ifRevision, input: changes }, { quiet: true }),
    ofCurrent: pick,
  })
  const { values, set } = form
  return (
    <SectionForm title="The credential" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={values.name} onValue={(name) => set('name', name)} />
      </SectionField>
      <SectionField form={form} name="description" label="Description" optional>
        <TextInput value={values.description ?? ''} onValue={(text) => set('description', text || null)} />
      </SectionField>
      <SectionField form={form} name="kind" label="Kind" doc="tools.md#how-it-is-used">
        <Select value={values.kind} options={KINDS} onValue={(kind) => set('kind', kind)} />
      </SectionField>
      <SectionField
        form={form}
        name="destinations"
        label="May be used for"
        doc="tools.md#how-it-is-used"
        hint="Addresses or hosts, one per line. For http and https addresses, such as https://tickets.example.com, the agent’s server adds it by itself."
        optional
      >
        <LinesInput
          value={values.destinations}
          onValue={(destinations) => set('destinations', destinations)}
        />
      </SectionField>
    </SectionForm>
  )
}
