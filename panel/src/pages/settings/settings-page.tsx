// The organization's settings: name and picture, access, alerts, spending, events, limits, data.
import { useSearch } from '@tanstack/react-router'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { PageBody, PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { Sections } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { Tabs } from '../../ui/tabs'
import { General } from './general'
import { GoogleApplication } from './google-application'
import { Limits } from './limits'
import { Retention } from './retention'
import { Safety } from './safety'

// Tabs that are not shown first.
const Money = lazyPart(() => import('./money'), 'Money')
const AllowedHosts = lazyPart(() => import('./allowed-hosts'), 'AllowedHosts')
const EventEndpoints = lazyPart(() => import('./event-endpoints'), 'EventEndpoints')
const Data = lazyPart(() => import('./data'), 'Data')

const SettingsQuery = graphql(`
  query OrganizationSettings($orgId: Id!) {
    organization(orgId: $orgId) {
      id name avatarUrl revision viewerCan timezone defaultImage { id name } sessionResetTokens
      requireSecondFactor mailRequestText chatRiskLimit serverAlertCpuPct serverAlertRamPct serverAlertLoadFactor
      backupCron backupRetention transcriptRetentionDays providerOauthClientId hasProviderOauthApp
      currency monthlyBudgetMicro budgetAction costGuardTokensPerHour costGuardAction traceContent
      storedBytes
      limits {
        maxAgents maxServers maxMembers maxOpenInvitations maxServiceTokens maxCredentials maxMcpServers maxSkills
        maxImages maxStoredMib channelsPerAgent
      }
    }
  }
`)

export type Settings = NonNullable<ResultOf<typeof SettingsQuery>['organization']>

const TABS = [
  { id: 'general', label: 'General' },
  { id: 'safety', label: 'Safety' },
  { id: 'money', label: 'Models and money' },
  { id: 'network', label: 'Network' },
  { id: 'events', label: 'Events' },
  { id: 'limits', label: 'Limits' },
  { id: 'data', label: 'Data' },
]

export function SettingsPage() {
  const org = useOrg()
  const { tab = 'general' } = useSearch({ from: '/inside/o/$org/settings' })
  const { data, error, loading, refetch } = useLive({
    query: SettingsQuery,
    variables: { orgId: org.id },
    on: ['ORGANIZATION'],
  })
  const settings = data?.organization
  return (
    <>
      <PageHeader title="Settings" doc="panel.md#money-and-network" about={org.name}>
        <Tabs label="Parts of the settings" tabs={TABS} current={tab} />
      </PageHeader>
      <PageBody narrow>
        {error && !settings ? (
          <ProblemView error={error} retry={refetch} />
        ) : loading || !settings ? (
          <ListSkeleton />
        ) : (
          <Gate on={settings} may="organization.edit">
            <Part tab={tab} settings={settings} />
          </Gate>
        )}
      </PageBody>
    </>
  )
}

function Part({ tab, settings }: { tab: string; settings: Settings }) {
  switch (tab) {
    case 'safety':
      return (
        <Sections>
          <Safety settings={settings} />
        </Sections>
      )
    case 'money':
      return (
        <Sections>
          <Money settings={settings} />
        </Sections>
      )
    case 'network':
      return <AllowedHosts />
    case 'events':
      return <EventEndpoints />
    case 'limits':
      return <Limits settings={settings} />
    case 'data':
      return <Data />
    default:
      return (
        <Sections>
          <General settings={settings} />
          <Retention settings={settings} />
          <GoogleApplication settings={settings} />
        </Sections>
      )
  }
}
