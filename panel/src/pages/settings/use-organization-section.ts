// The saving logic that the sections of the organization's settings share.
import type { BoundsKey } from '../../api/bounds'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useSection } from '../../ui/use-section'
import type { Settings } from './settings-page'

const Update = graphql(`
  mutation UpdateOrganization($orgId: Id!, $ifRevision: Int, $input: UpdateOrganizationInput!) {
    updateOrganization(orgId: $orgId, ifRevision: $ifRevision, input: $input) {
      id name revision timezone sessionResetTokens requireSecondFactor mailRequestText chatRiskLimit
      serverAlertCpuPct serverAlertRamPct serverAlertLoadFactor
      currency monthlyBudgetMicro budgetAction costGuardTokensPerHour costGuardAction traceContent
      backupCron backupRetention transcriptRetentionDays
    }
  }
`)

/** A section of these fields, which have the same names in the record and the input. */
export function useOrganizationSection<K extends keyof Settings & string>(
  settings: Settings,
  names: readonly K[],
) {
  const update = useAct(Update)
  const pick = (record: Pick<Settings, K>) =>
    Object.fromEntries(names.map((name) => [name, record[name]])) as Pick<Settings, K>
  return useSection<Pick<Settings, K>>({
    stored: pick(settings),
    revision: settings.revision,
    bounds: Object.fromEntries(names.map((name) => [name, `UpdateOrganizationInput.${name}`])) as Record<
      K,
      BoundsKey
    >,
    save: (changes, ifRevision) =>
      update({ orgId: settings.id, ifRevision, input: emptyToNull(changes) as never }, { quiet: true }),
    ofCurrent: pick,
  })
}

/** Sends emptied texts as null. */
function emptyToNull(values: object): object {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value === '' ? null : value]),
  )
}
