// The backup schedule of an agent's home, and the number of backups to keep.
import { NumberInput, Select, TextInput } from '../../ui/inputs'
import { SectionField, SectionForm, SectionSwitch } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'

const SCHEDULES = [
  { value: 'INHERIT', label: 'The organization’s default' },
  { value: 'DAILY', label: 'Every day at 3:00' },
  { value: 'WEEKLY', label: 'On Sundays at 3:00' },
  { value: 'CRON', label: 'Own schedule' },
  { value: 'OFF', label: 'Never' },
] as const

export function BackupRules({ agent }: { agent: AgentSettings }) {
  const form = useAgentSection(agent, [
    'backupSchedule',
    'backupCron',
    'timezone',
    'backupRetention',
    'backupFreeze',
  ])
  const { values, set } = form
  return (
    <SectionForm
      title="Backups"
      doc="agents.md#backups"
      about="Copies of the agent’s home, on the host. A missed backup is made later."
      form={form}
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField form={form} name="backupSchedule" label="When">
          <Select
            value={values.backupSchedule}
            options={SCHEDULES}
            onValue={(schedule) => set('backupSchedule', schedule)}
          />
        </SectionField>
        {values.backupSchedule === 'CRON' && (
          <SectionField form={form} name="backupCron" label="Schedule" hint="Five fields: 30 2 * * 1-5">
            <TextInput value={values.backupCron ?? ''} onValue={(line) => set('backupCron', line)} />
          </SectionField>
        )}
        <SectionField
          form={form}
          name="timezone"
          label="Time zone"
          hint="Empty: the organization’s."
          optional
        >
          <TextInput value={values.timezone ?? ''} onValue={(zone) => set('timezone', zone)} />
        </SectionField>
        <SectionField
          form={form}
          name="backupRetention"
          label="Keep"
          hint="Empty: the organization’s number, or 7."
          optional
        >
          <NumberInput
            unit="backups"
            value={values.backupRetention}
            onValue={(count) => set('backupRetention', count)}
          />
        </SectionField>
      </div>
      <SectionSwitch form={form} name="backupFreeze" label="Keep all backups" />
    </SectionForm>
  )
}
