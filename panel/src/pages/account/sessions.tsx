// The user's sessions, and ending them.
import { Laptop, Smartphone, Terminal } from 'lucide-react'
import { useQuery } from 'urql'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { deviceOf } from './device'

const SessionsQuery = graphql(`
  query Sessions { sessions { id kind current ip lastUsedAt refreshedAt expiresAt userAgent } }
`)
const Revoke = graphql(`
  mutation RevokeSession($id: Id!) { revokeSession(id: $id) }
`)
const RevokeOthers = graphql(`
  mutation RevokeOtherSessions { revokeOtherSessions }
`)

const ICONS = { phone: Smartphone, computer: Laptop, program: Terminal }

export function Sessions() {
  const [{ data, error }, read] = useQuery({ query: SessionsQuery })
  const revoke = useAct(Revoke)
  const others = useAct(RevokeOthers)
  const refetch = () => read({ requestPolicy: 'network-only' })
  const sessions = [...(data?.sessions ?? [])].sort((a, b) => Number(b.current) - Number(a.current))
  const end = async (id: number) => {
    const { error } = await revoke({ id }, { said: 'The session has ended' })
    if (!error) refetch()
  }
  const endOthers = async () => {
    const { error } = await others({}, { said: 'All other sessions have ended' })
    if (!error) refetch()
  }
  return (
    <Panel
      title="Sessions"
      about="Where you are signed in. If you don’t recognize one, end it and change your password."
      actions={
        sessions.length > 1 && (
          <Button busy={others.pending} onClick={() => void endOthers()}>
            End all others
          </Button>
        )
      }
    >
      {error && !data && <ProblemView error={error} retry={refetch} />}
      {!data && !error && <ListSkeleton rows={3} />}
      <ul className="divide-y divide-line rounded-card border border-line empty:hidden">
        {sessions.map(({ id, kind, current, ip, lastUsedAt, refreshedAt, userAgent }) => {
          const device = deviceOf(userAgent, kind)
          const Icon = ICONS[device.kind]
          return (
            <li key={id} className="flex items-center gap-3 px-4 py-3">
              <Icon size={18} aria-hidden className="shrink-0 text-faint" />
              <span className="min-w-0 grow">
                <span className="block truncate font-medium" data-tip={userAgent ?? undefined}>
                  {device.name}
                </span>
                <span className="block truncate text-sm text-muted">
                  {ip ?? 'unknown address'} · <Time at={lastUsedAt ?? refreshedAt} />
                </span>
              </span>
              {current ? (
                <Badge tone="ok">This one</Badge>
              ) : (
                <Button size="sm" onClick={() => void end(id)}>
                  End
                </Button>
              )}
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}
