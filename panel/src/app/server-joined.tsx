// Shows live whether a server's host has joined.
import { CircleCheck, Loader } from 'lucide-react'
import { graphql } from '../api/graphql'
import { useLive } from '../api/use-live'
import { useOrg } from './organization'

const JoinedQuery = graphql(`
  query ServerJoined($orgId: Id!, $id: Id!) { server(orgId: $orgId, id: $id) { id name status hostname } }
`)

/** Whether a server's host is connected now. */
export function useJoined(id: number): { joined: boolean; hostname: string | null } {
  const { id: orgId } = useOrg()
  const { data } = useLive({
    query: JoinedQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => kind === 'SERVER' && changed === id,
  })
  const server = data?.server
  return {
    joined: server?.status === 'ONLINE' || server?.status === 'DEGRADED',
    hostname: server?.hostname ?? null,
  }
}

export function JoinCheck({
  name,
  joined,
  hostname,
}: {
  name: string
  joined: boolean
  hostname: string | null
}) {
  return (
    <p
      role="status"
      data-outlined
      className={`flex items-center gap-2 rounded-control px-3 py-2 text-sm ${joined ? 'bg-ok-soft text-ok-text' : 'bg-info-soft text-info-text'}`}
    >
      {joined ? (
        <CircleCheck size={15} aria-hidden className="shrink-0" />
      ) : (
        <Loader size={15} aria-hidden className="pulsing shrink-0" />
      )}
      {joined
        ? `${name} has joined${hostname && hostname !== name ? `, as ${hostname}` : ''}.`
        : `Waiting for ${name} to join…`}
    </p>
  )
}
