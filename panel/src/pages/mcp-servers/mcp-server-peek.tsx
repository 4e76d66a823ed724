// An MCP server beside the list: its transport, and the agents that may call it.
import { lazy, Suspense } from 'react'
import { fetched } from '../../api/chunk'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { ArchiveButton } from '../../app/archive-button'
import { AssignedAgents } from '../../app/assigned-agents'
import { McpStates } from '../../app/mcp-states'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { RadioGroup } from '../../ui/choices'
import { TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { labelIn, SectionField, SectionForm, SectionPart } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { useSection } from '../../ui/use-section'

import { ConnectionTest } from './connection-test'
import { TRANSPORTS } from './transport'

const McpTools = lazy(() => fetched(async () => ({ default: (await import('./tools')).McpTools })))

const McpServerQuery = graphql(`
  query McpServer($orgId: Id!, $id: Id!) {
    mcpServer(orgId: $orgId, id: $id) {
      id name description transport command args url auth revision newTools archivedAt viewerCan
      agents { id name avatarUrl }
      tools { name definition digest newDefinition newDigest enabled risk }
      states { status error stderr tools reportedAt testAskedAt testedAt testError protocol program agent { id name } }
    }
  }
`)
const Update = graphql(`
  mutation UpdateMcpServer($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateMcpServerInput!) {
    updateMcpServer(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description transport command args url auth revision
    }
  }
`)
const Archive = graphql(`
  mutation ArchiveMcpServer($orgId: Id!, $id: Id!) {
    archiveMcpServer(orgId: $orgId, id: $id) { id archivedAt }
  }
`)
const Restore = graphql(`
  mutation UnarchiveMcpServer($orgId: Id!, $id: Id!) {
    unarchiveMcpServer(orgId: $orgId, id: $id) { id archivedAt }
  }
`)

type McpServer = NonNullable<ResultOf<typeof McpServerQuery>['mcpServer']>

export function McpServerPeek({ id, onClose }: { id: number; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: McpServerQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => (kind === 'MCP_SERVER' && changed === id) || kind === 'AGENT',
  })
  const [archive, restore] = [useAct(Archive), useAct(Restore)]
  const server = data?.mcpServer
  return (
    <Peek title={server?.name ?? 'MCP server'} onClose={onClose}>
      {error && !server ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !server ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <Gate on={server} may="mcp.edit">
            <Edit server={server} />
          </Gate>
          <AssignedAgents kind="mcp" what="this MCP server" record={server} may="mcp.edit" />
          {!server.archivedAt && <ConnectionTest server={server} />}
          <Suspense>
            <McpTools server={server} />
          </Suspense>
          <McpStates states={server.states} nameOf={({ agent }) => agent?.name} />
          <ArchiveButton
            what="MCP server"
            record={server}
            may={{ archive: 'mcp.delete', restore: 'mcp.edit' }}
            onArchive={(options) => archive({ orgId, id }, options)}
            onRestore={(options) => restore({ orgId, id }, options)}
          />
        </div>
      )}
    </Peek>
  )
}

const pick = ({ name, description, transport, command, args, url, auth }: McpServer) => ({
  name,
  description,
  transport,
  command,
  args,
  url,
  auth,
})

function Edit({ server }: { server: McpServer }) {
  const { id: orgId } = useOrg()
  const update = useAct(Update)
  const form = useSection({
    stored: pick(server),
    revision: server.revision,
    bounds: {
      name: 'UpdateMcpServerInput.name',
      description: 'UpdateMcpServerInput.description',
      command: 'UpdateMcpServerInput.command',
      url: 'UpdateMcpServerInput.url',
    },
    save: (changes, ifRevision) =>
      update({ orgId, id: server.id, ifRevision, input: cleared(changes) as never }, { quiet: true }),
    ofCurrent: pick,
  })
  const { values, set } = form
  return (
    <SectionForm title="The MCP server" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={values.name} onValue={(name) => set('name', name)} />
      </SectionField>
      <SectionField form={form} name="description" label="Description" optional>
        <TextInput value={values.description ?? ''} onValue={(text) => set('description', text || null)} />
      </SectionField>
      <SectionPart form={form} name="transport" asText={labelIn(TRANSPORTS)}>
        <RadioGroup
          label="Connection"
          doc="tools.md#an-mcp-server"
          value={values.transport}
          onValue={(transport) => set('transport', transport)}
          options={TRANSPORTS}
        />
      </SectionPart>
      {values.transport === 'STDIO' ? (
        <>
          <SectionField form={form} name="command" label="Command" doc="tools.md#installed-elsewhere">
            <TextInput
              value={values.command ?? ''}
              onValue={(command) => set('command', command || null)}
              className="font-mono"
              spellCheck={false}
            />
          </SectionField>
          <SectionField form={form} name="args" label="Arguments" hint="One per line." optional>
            <LinesInput value={values.args} onValue={(args) => set('args', args)} />
          </SectionField>
        </>
      ) : (
        <SectionField form={form} name="url" label="URL" doc="hosts.md#networks-that-agents-may-reach">
          <TextInput type="url" value={values.url ?? ''} onValue={(url) => set('url', url || null)} />
        </SectionField>
      )}
      <SectionField
        form={form}
        name="auth"
        label="Required secrets"
        doc="tools.md#headers"
        hint="Their names, one per line. The values come from the agent’s credentials."
        optional
      >
        <LinesInput value={values.auth} onValue={(auth) => set('auth', auth)} />
      </SectionField>
    </SectionForm>
  )
}

/** Changing the transport clears the other transport's fields. */
function cleared(changes: Partial<McpServer>): Partial<McpServer> {
  if (!changes.transport) return changes
  return changes.transport === 'STDIO' ? { ...changes, url: null } : { ...changes, command: null, args: [] }
}
