// The names of the records that revisions hold by id.
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import type { Names } from './revision-diff'

const NamesQuery = graphql(`
  query RevisionNames($orgId: Id!) {
    credentials(orgId: $orgId, page: 1, limit: 200, includeArchived: true) { data { id name } }
    mcpServers(orgId: $orgId, page: 1, limit: 200, includeArchived: true) { data { id name } }
    skills(orgId: $orgId, page: 1, limit: 200, includeArchived: true) { data { id name } }
    servers(orgId: $orgId, page: 1, limit: 200) { data { id name } }
    images(orgId: $orgId, includeArchived: true) { id name }
  }
`)

/** `pause`: nothing shown has ids. */
export function useRevisionNames(pause: boolean): Names {
  const { id: orgId } = useOrg()
  const { data } = useLive({
    query: NamesQuery,
    variables: { orgId },
    on: ['CREDENTIAL', 'MCP_SERVER', 'SKILL', 'SERVER', 'IMAGE'],
    pause,
  })
  return {
    credentials: byId(data?.credentials?.data),
    mcpServers: byId(data?.mcpServers?.data),
    skills: byId(data?.skills?.data),
    servers: byId(data?.servers?.data),
    images: byId(data?.images),
  }
}

const byId = (records: readonly { id: number; name: string }[] | null | undefined) =>
  new Map((records ?? []).map(({ id, name }) => [id, name]))
