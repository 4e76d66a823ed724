// An agent's name, server and image.
import { useAgentChoices } from '../../app/agent-choices'
import { TextArea, TextInput } from '../../ui/inputs'
import { type Choice, Picker } from '../../ui/picker'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'

export function Identity({ agent }: { agent: AgentSettings }) {
  const name = useAgentSection(agent, ['name', 'role', 'description'])
  const place = useAgentSection(agent, ['serverId', 'imageId'])
  const { servers, images } = useAgentChoices()
  return (
    <>
      <SectionForm title="Name" form={name}>
        <div className="grid gap-4 sm:grid-cols-2">
          <SectionField form={name} name="name" label="Name">
            <TextInput value={name.values.name} onValue={(value) => name.set('name', value)} />
          </SectionField>
          <SectionField form={name} name="role" label="Role" optional>
            <TextInput value={name.values.role ?? ''} onValue={(value) => name.set('role', value || null)} />
          </SectionField>
        </div>
        <SectionField form={name} name="description" label="Description" optional>
          <TextArea
            rows={2}
            value={name.values.description ?? ''}
            onValue={(value) => name.set('description', value || null)}
          />
        </SectionField>
      </SectionForm>
      <SectionForm
        title="Server and image"
        about="A change takes effect when the agent starts next."
        form={place}
      >
        <div className="grid gap-4 sm:grid-cols-2">
          <SectionField form={place} name="serverId" label="Server" asText={(id) => nameIn(servers, id)}>
            <Picker
              value={choiceOf(servers, place.values.serverId)}
              choices={servers}
              onValue={(choice) => choice && place.set('serverId', Number(choice.id))}
            />
          </SectionField>
          <SectionField form={place} name="imageId" label="Image" asText={(id) => nameIn(images, id)}>
            <Picker
              value={choiceOf(images, place.values.imageId)}
              choices={images}
              onValue={(choice) => choice && place.set('imageId', Number(choice.id))}
            />
          </SectionField>
        </div>
      </SectionForm>
    </>
  )
}

const choiceOf = (choices: Choice[], id: number): Choice | null =>
  choices.find((choice) => choice.id === id) ?? null

const nameIn = (choices: Choice[], id: unknown): string =>
  choices.find((choice) => choice.id === id)?.name ?? String(id)
