// Edits a server's name, description and labels.
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { SectionField, SectionForm } from '../../ui/section-form'
import { useSection } from '../../ui/use-section'
import type { ServerRecord } from './server-page'

const Update = graphql(`
  mutation UpdateServer($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateServerInput!) {
    updateServer(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description hostname address region labels revision
    }
  }
`)

const pick = (server: ServerRecord) => ({
  name: server.name,
  description: server.description,
  hostname: server.hostname,
  address: server.address,
  region: server.region,
  labels: linesOf(server.labels),
})

export function EditServer({ server }: { server: ServerRecord }) {
  const { id: orgId } = useOrg()
  const update = useAct(Update)
  const form = useSection({
    stored: pick(server),
    revision: server.revision,
    bounds: {
      name: 'UpdateServerInput.name',
      description: 'UpdateServerInput.description',
      hostname: 'UpdateServerInput.hostname',
      address: 'UpdateServerInput.address',
      region: 'UpdateServerInput.region',
    },
    save: ({ labels, ...changes }, ifRevision) => {
      const input = { ...changes, ...(labels && { labels: labelsOf(labels) }) }
      return update({ orgId, id: server.id, ifRevision, input: input as never }, { quiet: true })
    },
    ofCurrent: pick,
  })
  const { values, set } = form
  const text = (name: 'description' | 'hostname' | 'address' | 'region') => (
    <TextInput value={values[name] ?? ''} onValue={(value) => set(name, value || null)} autoComplete="off" />
  )
  return (
    <SectionForm title="Description" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={values.name} onValue={(name) => set('name', name)} />
      </SectionField>
      <SectionField form={form} name="description" label="Description" optional>
        {text('description')}
      </SectionField>
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField form={form} name="hostname" label="Host name" optional>
          {text('hostname')}
        </SectionField>
        <SectionField form={form} name="address" label="Address" optional>
          {text('address')}
        </SectionField>
        <SectionField form={form} name="region" label="Location" optional>
          {text('region')}
        </SectionField>
      </div>
      <SectionField
        form={form}
        name="labels"
        label="Labels"
        hint="One per line, such as rack=4."
        optional
        asText={(lines) => (Array.isArray(lines) && lines.length > 0 ? lines.join(', ') : 'none')}
      >
        <LinesInput value={values.labels} onValue={(labels) => set('labels', labels)} placeholder="rack=4" />
      </SectionField>
    </SectionForm>
  )
}

function linesOf(labels: unknown): string[] {
  if (typeof labels !== 'object' || labels === null) return []
  return Object.entries(labels).map(([name, value]) => (value === '' ? name : `${name}=${String(value)}`))
}

/** A line without `=` is a label without a value. */
function labelsOf(lines: string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return at < 0 ? [line.trim(), ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}
