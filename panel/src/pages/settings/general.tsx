// The name, and settings shared by all agents.
import { useCallback, useState } from 'react'
import { useClient } from 'urql'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { Gate } from '../../permissions/gate'
import { Field } from '../../ui/field'
import { NumberInput, TextInput } from '../../ui/inputs'
import { Panel } from '../../ui/panel'
import { type Choice, Picker } from '../../ui/picker'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { Settings } from './settings-page'
import { useOrganizationSection } from './use-organization-section'

const ImagesQuery = graphql(`
  query DefaultImages($orgId: Id!) {
    images(orgId: $orgId) { id name reference }
  }
`)
const SetImage = graphql(`
  mutation SetDefaultImage($orgId: Id!, $imageId: Id) {
    updateOrganization(orgId: $orgId, input: { defaultImageId: $imageId }) { id revision defaultImage { id name } }
  }
`)
const ZONES: Choice[] = Intl.supportedValuesOf('timeZone').map((zone) => ({ id: zone, name: zone }))

export function General({ settings }: { settings: Settings }) {
  const name = useOrganizationSection(settings, ['name', 'timezone'])
  const sessions = useOrganizationSection(settings, ['sessionResetTokens'])
  return (
    <>
      <SectionForm title="Name and time" form={name}>
        <SectionField form={name} name="name" label="Name">
          <TextInput value={name.values.name} onValue={(value) => name.set('name', value)} />
        </SectionField>
        <SectionField
          form={name}
          name="timezone"
          label="Time zone"
          hint="For people who have not chosen their own, and for daily mails."
        >
          <Picker
            value={{ id: name.values.timezone, name: name.values.timezone }}
            choices={ZONES}
            onValue={(zone) => zone && name.set('timezone', String(zone.id))}
          />
        </SectionField>
      </SectionForm>
      <Panel title="Default image" about="The image of agents that have none of their own.">
        <DefaultImage settings={settings} />
      </Panel>
      <SectionForm title="Sessions" form={sessions}>
        <SectionField
          form={sessions}
          name="sessionResetTokens"
          label="Longest session"
          hint="A longer session starts over with the agent’s next turn. Agents may have their own limit."
          optional
        >
          <NumberInput
            unit="tokens"
            value={sessions.values.sessionResetTokens}
            onValue={(value) => sessions.set('sessionResetTokens', value)}
          />
        </SectionField>
      </SectionForm>
    </>
  )
}

function DefaultImage({ settings }: { settings: Settings }) {
  const client = useClient()
  const change = useAct(SetImage)
  const [chosen, choose] = useState<Choice | null>(settings.defaultImage)
  const search = useCallback(
    async (text: string): Promise<Choice[]> => {
      const { data } = await client.query(ImagesQuery, { orgId: settings.id }).toPromise()
      const wanted = text.toLowerCase()
      return (data?.images ?? [])
        .filter(({ name }) => name.toLowerCase().includes(wanted))
        .map(({ id, name, reference }) => ({ id, name, detail: reference }))
    },
    [client, settings.id],
  )
  const pick = async (choice: Choice | null) => {
    const before = settings.defaultImage
    choose(choice)
    const set = (imageId: number | null, said: string) => change({ orgId: settings.id, imageId }, { said })
    const { error } = await change(
      { orgId: settings.id, imageId: choice ? Number(choice.id) : null },
      {
        said: choice ? `New agents run from ${choice.name}` : 'No default image',
        undo: () => {
          choose(before)
          return set(before?.id ?? null, 'Undone')
        },
      },
    )
    if (error) choose(before)
  }
  return (
    <Gate on={settings} may="organization.edit">
      <Field label="Image" hideLabel>
        <Picker
          value={chosen}
          search={search}
          onValue={(choice) => void pick(choice)}
          placeholder="None: each agent is given one"
          clearable
          disabled={!settings.viewerCan.includes('organization.edit')}
        />
      </Field>
    </Gate>
  )
}
