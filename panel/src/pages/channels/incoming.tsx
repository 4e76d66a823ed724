// Other settings for incoming messages.
import { LinesInput } from '../../ui/lines-input'
import { SectionField, SectionForm } from '../../ui/section-form'
import { useSection } from '../../ui/use-section'
import type { Channel, ChannelRecord } from './channel'
import { NotifiedPicker } from './notified-picker'
import { useSave } from './sections'
import { labelsOf, placesOf } from './transports'

const incoming = ({ labelWhitelist, mentionOff, notifyConversationId }: ChannelRecord) => ({
  labelWhitelist,
  mentionOff,
  notifyConversationId,
})

export function Incoming({ channel }: { channel: Channel }) {
  const save = useSave(channel)
  const form = useSection({
    stored: incoming(channel),
    revision: channel.revision,
    bounds: {
      labelWhitelist: 'UpdateChannelInput.labelWhitelist',
      mentionOff: 'UpdateChannelInput.mentionOff',
    },
    save,
    ofCurrent: incoming,
  })
  const { values, set } = form
  const labels = labelsOf(channel.transport)
  const places = placesOf(channel.transport)
  return (
    <SectionForm title="Incoming messages" doc="channels/README.md#who-may-write" form={form}>
      {(labels || channel.labelWhitelist.length > 0) && (
        <SectionField
          form={form}
          name="labelWhitelist"
          label="Labels"
          doc="channels/README.md#labels-and-mentions"
          hint={
            labels
              ? `${labels} One per line. With labels, only messages that have one of them get through.`
              : 'Messages of this transport have no labels: with any entry, none gets through.'
          }
          optional
        >
          <LinesInput value={values.labelWhitelist} onValue={(labels) => set('labelWhitelist', labels)} />
        </SectionField>
      )}
      {(places || channel.mentionOff.length > 0) && (
        <SectionField
          form={form}
          name="mentionOff"
          label="Answer without a mention in"
          doc="channels/README.md#labels-and-mentions"
          hint={
            places
              ? `${places} One per line. Elsewhere the agent answers only when mentioned.`
              : 'Without effect: all messages of this transport are for the agent.'
          }
          optional
        >
          <LinesInput value={values.mentionOff} onValue={(rooms) => set('mentionOff', rooms)} />
        </SectionField>
      )}
      <SectionField
        form={form}
        name="notifyConversationId"
        label="Notify"
        doc="channels/README.md#notices"
        hint="A conversation that gets a line with a link when messages come in. The agent does not read it."
        optional
        asText={(id) => `conversation ${id}`}
      >
        <NotifiedPicker
          stored={channel.notifyConversation}
          value={values.notifyConversationId}
          onValue={(id) => set('notifyConversationId', id)}
        />
      </SectionField>
    </SectionForm>
  )
}
