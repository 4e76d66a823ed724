// Retention of agents' home backups and of transcripts.
import { NumberInput, TextInput } from '../../ui/inputs'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { Settings } from './settings-page'
import { useOrganizationSection } from './use-organization-section'

export function Retention({ settings }: { settings: Settings }) {
  const backups = useOrganizationSection(settings, ['backupCron', 'backupRetention'])
  const transcripts = useOrganizationSection(settings, ['transcriptRetentionDays'])
  return (
    <>
      <SectionForm
        title="Backups of agents"
        doc="agents.md#backups"
        about="Copies of their homes, on their hosts. Agents may have their own rules."
        form={backups}
      >
        <div className="grid gap-4 sm:grid-cols-2">
          <SectionField
            form={backups}
            name="backupCron"
            label="Schedule"
            hint="Five fields: 30 2 * * 1-5. Empty: none."
            optional
          >
            <TextInput
              value={backups.values.backupCron ?? ''}
              onValue={(line) => backups.set('backupCron', line)}
            />
          </SectionField>
          <SectionField
            form={backups}
            name="backupRetention"
            label="Backups to keep of each agent"
            hint="Empty: 7."
            optional
          >
            <NumberInput
              unit="backups"
              value={backups.values.backupRetention}
              onValue={(count) => backups.set('backupRetention', count)}
            />
          </SectionField>
        </div>
      </SectionForm>
      <SectionForm title="Transcripts" doc="limits.md#what-is-kept-and-for-how-long" form={transcripts}>
        <SectionField
          form={transcripts}
          name="transcriptRetentionDays"
          label="Keep after the last message"
          hint="After that, the conversation’s messages and files are deleted for good. Empty: kept forever."
          optional
        >
          <NumberInput
            unit="days"
            value={transcripts.values.transcriptRetentionDays}
            onValue={(days) => transcripts.set('transcriptRetentionDays', days)}
          />
        </SectionField>
      </SectionForm>
    </>
  )
}
