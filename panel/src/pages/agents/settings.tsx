// An agent's settings. Each section is saved on its own and reports concurrent changes by others.
import { useParams } from '@tanstack/react-router'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { ProblemView } from '../../ui/problem'
import { Sections } from '../../ui/section-form'
import { type SectionGroup, SectionList } from '../../ui/section-form-list'
import { ListSkeleton } from '../../ui/skeleton'
import { ApprovalRules } from './settings-approvals'
import { BackupRules } from './settings-backups'
import { Behaviour } from './settings-behaviour'
import { SettingsFields } from './settings-fields'
import { Identity } from './settings-identity'
import { Instructions } from './settings-instructions'
import { Limits, Restarts, Sessions } from './settings-limits'
import { Model } from './settings-model'
import { Reach } from './settings-network'
import { NotApplied } from './settings-not-applied'
import { SpendingRules } from './settings-spending'

const SettingsQuery = graphql(
  `
  query AgentSettings($orgId: Id!, $id: Id!) {
    agent(orgId: $orgId, id: $id) {
      id viewerCan ...SettingsFields
      offeredModels { id name description current }
      offeredModes { id name description current }
      mcpServers { id name }
      effortOverride thinkingEnabled mcpHttpBridge hubAvailable voiceEnabled voiceId
    }
  }
`,
  [SettingsFields],
)

/** The sections in their order on the page. */
const GROUPS: SectionGroup[] = [
  { title: 'Basics', sections: ['Name', 'Server and image', 'Model', 'Model credential'] },
  { title: 'Behaviour', sections: ['Instructions', 'Answers', 'Sessions'] },
  { title: 'Safety', sections: ['Approvals', 'Network', 'Disabled tools'] },
  { title: 'Money', sections: ['Budget', 'Cost guard'] },
  { title: 'Runtime', sections: ['Limits', 'Restarts', 'Backups'] },
]

export type AgentSettings = NonNullable<ResultOf<typeof SettingsQuery>['agent']>

/** A separate chunk: the settings of the agent in the address. */
export function Settings() {
  const { id: orgId } = useOrg()
  const { id: agentId } = useParams({ from: '/inside/o/$org/agents/$id' })
  const { data, error, loading, refetch } = useLive({
    query: SettingsQuery,
    variables: { orgId, id: agentId },
    on: ({ kind, id }) => kind === 'AGENT' && id === agentId,
  })
  const agent = data?.agent
  if (error && !agent) return <ProblemView error={error} retry={refetch} />
  if (loading || !agent) return <ListSkeleton />
  return (
    <Gate on={agent} may="agent.edit">
      <SectionList label="Sections" groups={GROUPS}>
        <Sections>
          <Identity agent={agent} />
          <Model agent={agent} />
          <Instructions agent={agent} />
          <Behaviour agent={agent} />
          <Sessions agent={agent} />
          <ApprovalRules agent={agent} />
          <Reach agent={agent} />
          <SpendingRules agent={agent} />
          <Limits agent={agent} />
          <Restarts agent={agent} />
          <BackupRules agent={agent} />
        </Sections>
        <NotApplied agent={agent} />
      </SectionList>
    </Gate>
  )
}
