// An image beside the list.
import type { ReactNode } from 'react'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { TextInput } from '../../ui/inputs'
import { Fact, Facts, Panel } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { Picker } from '../../ui/picker'
import { SectionField, SectionForm } from '../../ui/section-form'
import { useSection } from '../../ui/use-section'
import type { ImageRecord } from './images'
import { choiceOfProfile, useProfiles } from './profiles'

const Update = graphql(`
  mutation UpdateImage($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateImageInput!) {
    updateImage(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description reference defaultModel profile revision
    }
  }
`)

interface Props {
  image: ImageRecord
  isDefault: boolean
  onClose: () => void
  actions: ReactNode
}

const pick = ({ name, description, reference, defaultModel, profile }: ImageRecord) => ({
  name,
  description,
  reference,
  defaultModel,
  profile,
})

export function ImagePeek({ image, isDefault, onClose, actions }: Props) {
  const { id: orgId } = useOrg()
  const update = useAct(Update)
  const form = useSection({
    stored: pick(image),
    revision: image.revision,
    bounds: {
      name: 'UpdateImageInput.name',
      description: 'UpdateImageInput.description',
      reference: 'UpdateImageInput.reference',
      defaultModel: 'UpdateImageInput.defaultModel',
      profile: 'UpdateImageInput.profile',
    },
    save: (changes, ifRevision) =>
      update({ orgId, id: image.id, ifRevision, input: changes as never }, { quiet: true }),
    ofCurrent: pick,
  })
  const { values, set } = form
  const profiles = useProfiles()
  return (
    <Peek title={image.name} onClose={onClose} actions={actions}>
      <div className="p-4">
        <Gate may="image.edit">
          <SectionForm title="The image" about="A change takes effect when an agent starts next." form={form}>
            <SectionField form={form} name="name" label="Name">
              <TextInput value={values.name} onValue={(name) => set('name', name)} />
            </SectionField>
            <SectionField form={form} name="reference" label="Reference" doc="hosts.md#programs">
              <TextInput
                className="font-mono text-sm"
                spellCheck={false}
                value={values.reference}
                onValue={(reference) => set('reference', reference)}
              />
            </SectionField>
            <SectionField
              form={form}
              name="profile"
              label="Profile"
              doc="agents.md#programs-that-others-wrote"
              optional
              asText={(name) => choiceOfProfile(profiles, String(name))?.name ?? String(name)}
            >
              <Picker
                value={choiceOfProfile(profiles, values.profile)}
                choices={profiles}
                onValue={(choice) => set('profile', choice ? String(choice.id) : null)}
                placeholder="As the server lists it"
                clearable
              />
            </SectionField>
            <SectionField form={form} name="description" label="Description" optional>
              <TextInput
                value={values.description ?? ''}
                onValue={(description) => set('description', description || null)}
              />
            </SectionField>
            <SectionField form={form} name="defaultModel" label="Default model" optional>
              <TextInput
                spellCheck={false}
                value={values.defaultModel ?? ''}
                onValue={(model) => set('defaultModel', model || null)}
              />
            </SectionField>
          </SectionForm>
        </Gate>
        <Panel title="Facts">
          <Facts>
            <Fact name="Default">{isDefault ? 'Yes: for agents without their own image.' : 'No'}</Fact>
            <Fact name="Digest">
              {image.digest ? (
                <span className="font-mono text-sm break-all">{image.digest}</span>
              ) : (
                <span className="text-faint">not known: a plain program has none</span>
              )}
            </Fact>
          </Facts>
        </Panel>
      </div>
    </Peek>
  )
}
