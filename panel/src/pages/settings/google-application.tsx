// The organization's own application at Google, with which channels are connected to accounts.
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { TextInput } from '../../ui/inputs'
import { type SecretEdit, SecretField, secretInput } from '../../ui/secret-field'
import { SectionField, SectionForm, SectionPart } from '../../ui/section-form'
import { useSection } from '../../ui/use-section'
import type { Settings } from './settings-page'

const Update = graphql(`
  mutation UpdateGoogleApplication($orgId: Id!, $ifRevision: Int, $input: UpdateOrganizationInput!) {
    updateOrganization(orgId: $orgId, ifRevision: $ifRevision, input: $input) {
      id revision providerOauthClientId hasProviderOauthApp
    }
  }
`)

const pick = ({ providerOauthClientId }: Pick<Settings, 'providerOauthClientId'>) => ({
  providerOauthClientId,
  providerOauthSecret: { kind: 'keep' } as SecretEdit,
})

export function GoogleApplication({ settings }: { settings: Settings }) {
  const update = useAct(Update)
  const form = useSection<ReturnType<typeof pick>>({
    stored: pick(settings),
    revision: settings.revision,
    bounds: { providerOauthClientId: 'UpdateOrganizationInput.providerOauthClientId' },
    save: ({ providerOauthSecret, ...changes }, ifRevision) => {
      const secret = providerOauthSecret && secretInput(providerOauthSecret)
      const input = { ...changes, ...(secret !== undefined && { providerOauthSecret: secret }) }
      return update({ orgId: settings.id, ifRevision, input }, { quiet: true })
    },
    ofCurrent: pick,
  })
  const { values, set } = form
  return (
    <SectionForm
      title="Google application"
      doc="channels/oauth.md#google"
      about="Calendars and drives connect to Google accounts with this application. Without it, they use the installation’s, if it has one."
      form={form}
    >
      <SectionField form={form} name="providerOauthClientId" label="Client ID" optional>
        <TextInput
          value={values.providerOauthClientId ?? ''}
          onValue={(text) => set('providerOauthClientId', text || null)}
          placeholder="1234-abcd.apps.googleusercontent.com"
          autoComplete="off"
          spellCheck={false}
        />
      </SectionField>
      <SectionPart key={settings.revision} form={form} name="providerOauthSecret">
        <SecretField
          label="Client secret"
          isSet={settings.hasProviderOauthApp}
          edit={values.providerOauthSecret}
          onEdit={(edit) => set('providerOauthSecret', edit)}
          optional
        />
      </SectionPart>
    </SectionForm>
  )
}
