// The tools of an MCP server: their switches and risks, and definitions that wait to be accepted.
import { useState } from 'react'
import { boundsOf, refusal } from '../../api/bounds'
import { graphql, type Json } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import type { Governed } from '../../permissions/can'
import { Gate } from '../../permissions/gate'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Switch } from '../../ui/choices'
import { Field } from '../../ui/field'
import { NumberInput } from '../../ui/inputs'
import { JsonTree } from '../../ui/json-tree'
import { Panel } from '../../ui/panel'
import { Visible } from '../../ui/visible'
import { Side } from '../agents/change-side'
import { changesOf, descriptionOf, TOO_LONG } from './definition'

const SetTool = graphql(`
  mutation SetMcpServerTool($orgId: Id!, $id: Id!, $tool: String!, $input: McpServerToolInput!) {
    setMcpServerTool(orgId: $orgId, id: $id, tool: $tool, input: $input) {
      id revision newTools tools { name definition digest newDefinition newDigest enabled risk }
    }
  }
`)
const Accept = graphql(`
  mutation AcceptMcpServerTools($orgId: Id!, $id: Id!, $digests: [String!]!) {
    acceptMcpServerTools(orgId: $orgId, id: $id, digests: $digests) {
      id revision newTools tools { name definition digest newDefinition newDigest enabled risk }
    }
  }
`)

interface Tool {
  name: string
  definition: unknown
  digest: string | null
  newDefinition: unknown
  newDigest: string | null
  enabled: boolean
  risk: number | null
}

interface Server extends Governed {
  id: number
  tools: readonly Tool[]
}

export function McpTools({ server }: { server: Server }) {
  const waiting = server.tools.filter(({ newDigest }) => newDigest !== null)
  return (
    <Panel
      title="Tools"
      doc="tools.md#tools"
      about="A change applies to calls at once; agents see it when they next list the tools, at the latest in their next session. A tool’s own risk replaces that of the risk rules."
    >
      {server.tools.length === 0 && (
        <p className="text-muted">
          They are not known yet. Test the connection, or let an agent use the server: its first list is
          accepted as it is.
        </p>
      )}
      <Gate on={server} may="mcp.edit">
        {waiting.length > 0 && <Waiting server={server} tools={waiting} />}
        {server.tools.length > 0 && (
          <ul className="divide-y divide-line rounded-card border border-line" aria-label="Tools">
            {server.tools.map((tool) => (
              <ToolRow key={tool.name} server={server} tool={tool} />
            ))}
          </ul>
        )}
      </Gate>
    </Panel>
  )
}

function ToolRow({ server, tool }: { server: Server; tool: Tool }) {
  const { id: orgId } = useOrg()
  const set = useAct(SetTool)
  const change = (input: { enabled?: boolean; risk?: number | null }, said: string) =>
    void set({ orgId, id: server.id, tool: tool.name, input }, { said })
  const description = descriptionOf(tool.definition as Json)
  return (
    <li className="flex flex-wrap items-start justify-between gap-3 px-3 py-2.5">
      <div className="min-w-0 flex-1">
        <Switch
          checked={tool.enabled}
          onChecked={(enabled) => change({ enabled }, `Switched ${tool.name} ${enabled ? 'on' : 'off'}`)}
          label={<Visible text={tool.name} />}
          hint={description && <Visible text={description} />}
        />
        {tool.definition !== null && (
          <details className="mt-1 text-sm">
            <summary className="cursor-pointer text-muted">Definition</summary>
            <JsonTree value={tool.definition as Json} label={`Definition of ${tool.name}`} />
          </details>
        )}
        {tool.digest === null && tool.newDigest === null && (
          <Badge tip="Its switch and risk are kept, in case the server lists it again.">
            No longer listed
          </Badge>
        )}
        {tool.newDigest !== null && (
          <Badge tone="warn" tip="Agents can’t use it until its definition is accepted.">
            {tool.digest === null ? 'New' : 'Changed'}
          </Badge>
        )}
      </div>
      <Risk key={tool.risk} tool={tool} onRisk={(risk) => change({ risk }, `Set the risk of ${tool.name}`)} />
    </li>
  )
}

/** A number that is saved when its field is left. */
function Risk({ tool, onRisk }: { tool: Tool; onRisk: (risk: number | null) => void }) {
  const [risk, setRisk] = useState(tool.risk)
  const error = refusal(risk, boundsOf('McpServerToolInput.risk'))
  return (
    <Field label={`Risk of ${tool.name}`} hideLabel error={error} className="w-28">
      <NumberInput
        value={risk}
        onValue={setRisk}
        placeholder="by rules"
        onBlur={() => error === null && risk !== tool.risk && onRisk(risk)}
      />
    </Field>
  )
}

function Waiting({ server, tools }: { server: Server; tools: readonly Tool[] }) {
  const { id: orgId } = useOrg()
  const accept = useAct(Accept)
  const all = (accepted: readonly Tool[], said: string) => {
    const digests = accepted.map(({ newDigest }) => newDigest ?? '')
    void accept({ orgId, id: server.id, digests }, { said })
  }
  return (
    <section
      className="mb-4 space-y-3 rounded-card border border-line p-3"
      aria-label="Definitions to accept"
    >
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="text-sm text-muted">
          The server has new or changed definitions, which agents would read. These tools can’t be used until
          you accept them.
        </p>
        {tools.length > 1 && (
          <Button
            size="sm"
            busy={accept.pending}
            onClick={() => all(tools, `Accepted ${tools.length} definitions`)}
          >
            Accept all {tools.length}
          </Button>
        )}
      </div>
      {tools.map((tool) => (
        <article key={tool.name} aria-label={tool.name}>
          <div className="mb-1 flex items-center justify-between gap-2">
            <h3 className="min-w-0 truncate text-sm font-medium">
              <Visible text={tool.name} />
            </h3>
            <Button size="sm" busy={accept.pending} onClick={() => all([tool], `Accepted ${tool.name}`)}>
              Accept
            </Button>
          </div>
          <Changes tool={tool} />
        </article>
      ))}
    </section>
  )
}

function Changes({ tool }: { tool: Tool }) {
  if (tool.newDefinition === null) return <p className="text-sm text-muted">{TOO_LONG}</p>
  return (
    <dl className="space-y-2">
      {changesOf(tool.definition as Json, tool.newDefinition as Json).map(
        ({ field, label, before, after }) => (
          <div key={field}>
            <dt className="text-xs text-muted">{label}</dt>
            <dd className="grid gap-2 sm:grid-cols-2">
              <Side text={before} name="Accepted" tone="bg-danger-soft text-danger-text" />
              <Side text={after} name="Now" tone="bg-ok-soft text-ok-text" />
            </dd>
          </div>
        ),
      )}
    </dl>
  )
}
