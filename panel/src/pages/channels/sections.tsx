// The separately saved parts of a channel.
import type { VariablesOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Select, TextArea, TextInput } from '../../ui/inputs'
import { SectionField, SectionForm, SectionPart } from '../../ui/section-form'
import { useSection } from '../../ui/use-section'
import { type Channel, type ChannelRecord, hasSecret, UpdateChannel } from './channel'
import { TransportField } from './transport-field'
import { DIRECTIONS, type Group, labelOf, SCOPES } from './transports'
import { inputOf, storedOf } from './values'

type Input = VariablesOf<typeof UpdateChannel>['input']

export function useSave(channel: Channel) {
  const { id: orgId } = useOrg()
  const update = useAct(UpdateChannel)
  return (input: Input, ifRevision: number | undefined) =>
    update({ orgId, id: channel.id, ifRevision, input }, { quiet: true })
}

const general = ({ name, target, direction, scope, instructions }: ChannelRecord) => ({
  name,
  // The input uses a different name.
  destination: target,
  direction,
  scope,
  instructions,
})

export function General({ channel }: { channel: Channel }) {
  const save = useSave(channel)
  const form = useSection({
    stored: general(channel),
    revision: channel.revision,
    bounds: {
      name: 'UpdateChannelInput.name',
      destination: 'UpdateChannelInput.destination',
      instructions: 'UpdateChannelInput.instructions',
    },
    save,
    ofCurrent: general,
  })
  const { values, set } = form
  return (
    <SectionForm title="The channel" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={values.name} onValue={(name) => set('name', name)} autoComplete="off" />
      </SectionField>
      <SectionField
        form={form}
        name="destination"
        label="Destination"
        hint="The bot’s handle, or a name for the other end."
        optional
      >
        <TextInput
          value={values.destination ?? ''}
          onValue={(text) => set('destination', text || null)}
          autoComplete="off"
        />
      </SectionField>
      <SectionField
        form={form}
        name="direction"
        label="Direction"
        asText={(value) => labelOf(DIRECTIONS, String(value))}
      >
        <Select
          value={values.direction}
          options={DIRECTIONS}
          onValue={(direction) => set('direction', direction)}
        />
      </SectionField>
      <SectionField
        form={form}
        name="scope"
        label="Audience"
        doc="channels/README.md#connect-one"
        asText={(value) => labelOf(SCOPES, String(value))}
      >
        <Select value={values.scope} options={SCOPES} onValue={(scope) => set('scope', scope)} />
      </SectionField>
      <SectionField
        form={form}
        name="instructions"
        label="Instructions"
        hint="What the agent should know about this channel: tone, language, what not to promise."
        optional
      >
        <TextArea value={values.instructions ?? ''} onValue={(text) => set('instructions', text || null)} />
      </SectionField>
    </SectionForm>
  )
}

export function TransportSection({ channel, group }: { channel: Channel; group: Group }) {
  const save = useSave(channel)
  const pick = (record: ChannelRecord): Record<string, unknown> =>
    Object.fromEntries(group.fields.map((field) => [field.path, storedOf(record, field)]))
  const form = useSection<Record<string, unknown>>({
    stored: pick(channel),
    revision: channel.revision,
    bounds: Object.fromEntries(group.fields.flatMap(({ path, bounds }) => (bounds ? [[path, bounds]] : []))),
    save: (changes, ifRevision) => save(inputOf(changes) as Input, ifRevision),
    ofCurrent: pick,
  })
  return (
    <SectionForm title={group.title} about={group.about} form={form}>
      {group.fields.map((field) => {
        const { path } = field
        return (
          // A stored secret locks its field.
          <SectionPart
            key={field.kind === 'secret' ? `${path} ${channel.revision}` : path}
            form={form}
            name={path}
          >
            <TransportField
              field={field}
              value={form.values[path]}
              onValue={(value) => form.set(path, value)}
              isSet={hasSecret(channel, path)}
            />
          </SectionPart>
        )
      })}
    </SectionForm>
  )
}
