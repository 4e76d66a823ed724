// The saving logic that the sections of an agent's settings share.
import type { BoundsKey } from '../../api/bounds'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useOrg } from '../../app/organization'
import { type Section, useSection } from '../../ui/use-section'
import type { AgentSettings } from './settings'
import { SettingsFields } from './settings-fields'

const Update = graphql(
  `
  mutation UpdateAgent($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateAgentInput!) {
    updateAgent(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id ...SettingsFields restartPending restartReason syncPending
      server { id name status }
      image { id name reference }
    }
  }
`,
  [SettingsFields],
)

export type AgentSection<K extends keyof AgentSettings> = Section<Pick<AgentSettings, K>>

/** A section of these fields, named alike in the record and the input. `extra` is sent along, for a secret. */
export function useAgentSection<K extends keyof AgentSettings & string>(
  agent: AgentSettings,
  names: readonly K[],
): AgentSection<K> {
  const { id: orgId } = useOrg()
  const update = useUpdateAgent()
  const pick = (record: Pick<AgentSettings, K>) =>
    Object.fromEntries(names.map((name) => [name, record[name]])) as Pick<AgentSettings, K>
  return useSection<Pick<AgentSettings, K>>({
    stored: pick(agent),
    revision: agent.revision,
    bounds: Object.fromEntries(names.map((name) => [name, `UpdateAgentInput.${name}`])) as Record<
      K,
      BoundsKey
    >,
    save: (changes, ifRevision) =>
      update({ orgId, id: agent.id, ifRevision, input: emptyToNull(changes) as never }, { quiet: true }),
    ofCurrent: pick,
  })
}

export const useUpdateAgent = () => useAct(Update)

/** Sends emptied texts as null. */
function emptyToNull(values: object): object {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value === '' ? null : value]),
  )
}
