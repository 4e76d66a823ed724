// Access, mail content, decisions in chats, and alerts.
import { Link } from '@tanstack/react-router'
import { NumberInput } from '../../ui/inputs'
import { SectionField, SectionForm, SectionSwitch } from '../../ui/section-form'
import type { Settings } from './settings-page'
import { useOrganizationSection } from './use-organization-section'

export function Safety({ settings }: { settings: Settings }) {
  const people = useOrganizationSection(settings, ['requireSecondFactor', 'mailRequestText', 'chatRiskLimit'])
  const alerts = useOrganizationSection(settings, [
    'serverAlertCpuPct',
    'serverAlertRamPct',
    'serverAlertLoadFactor',
  ])
  return (
    <>
      <SectionForm title="People" form={people}>
        <SectionSwitch
          form={people}
          name="requireSecondFactor"
          label="Require a second factor"
          hint="Members without one are asked to set it up before they get in. Service tokens are not affected."
        />
        <SectionSwitch
          form={people}
          name="mailRequestText"
          label="Include agents’ requests in mails"
          hint="Otherwise mails about approvals contain only the agent, the kind and a link."
        />
        <SectionField
          form={people}
          name="chatRiskLimit"
          label="Decisions in chats only below this risk"
          doc="channels/README.md#asked-where-people-are"
          hint="0: no decisions in chats. 101: all. Actions at or above this risk can only be decided in the panel."
        >
          <NumberInput
            value={people.values.chatRiskLimit}
            onValue={(value) => people.set('chatRiskLimit', value ?? 0)}
          />
        </SectionField>
      </SectionForm>
      <SectionForm
        title="Alerts about servers"
        about="A server that stays above one of these raises an approval for the people who run it."
        form={alerts}
      >
        <div className="grid gap-4 sm:grid-cols-3">
          <SectionField form={alerts} name="serverAlertCpuPct" label="Processor" optional>
            <NumberInput
              unit="percent"
              value={alerts.values.serverAlertCpuPct}
              onValue={(value) => alerts.set('serverAlertCpuPct', value)}
            />
          </SectionField>
          <SectionField form={alerts} name="serverAlertRamPct" label="Memory" optional>
            <NumberInput
              unit="percent"
              value={alerts.values.serverAlertRamPct}
              onValue={(value) => alerts.set('serverAlertRamPct', value)}
            />
          </SectionField>
          <SectionField form={alerts} name="serverAlertLoadFactor" label="Load per core" optional>
            <NumberInput
              value={alerts.values.serverAlertLoadFactor}
              onValue={(value) => alerts.set('serverAlertLoadFactor', value)}
            />
          </SectionField>
        </div>
      </SectionForm>
      <p className="text-sm text-muted">
        What each role may do is decided by the policy. Who used it is in the{' '}
        <Link to="/o/$org/audit" params={{ org: settings.id }} className="link">
          audit log
        </Link>
        .
      </p>
    </>
  )
}
