// Provider accounts that can sign in to this one.
import { Link2Off } from 'lucide-react'
import { useQuery } from 'urql'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'

const Linked = graphql(`
  query LinkedAccounts { linkedAccounts { id provider label email createdAt lastUsedAt isUsable } }
`)
const Unlink = graphql(`
  mutation UnlinkAccount($id: Id!) { unlinkAccount(id: $id) }
`)

export function LinkedAccounts() {
  const [{ data }, refetch] = useQuery({ query: Linked })
  const act = useAct(Unlink)
  const accounts = data?.linkedAccounts ?? []
  if (accounts.length === 0) return null
  const unlink = async (id: number, label: string) => {
    const { error } = await act({ id }, { said: `${label} is no longer linked` })
    if (!error) refetch({ requestPolicy: 'network-only' })
  }
  return (
    <Panel
      title="Linked accounts"
      about="You can sign in to this account with any of them. Signing in with a provider links it again as long as it vouches for your address."
    >
      <ul className="divide-y divide-line rounded-card border border-line">
        {accounts.map(({ id, label, email, lastUsedAt, isUsable }) => (
          <li key={id} className="flex flex-wrap items-center gap-3 px-4 py-3">
            <span className="min-w-0 grow">
              <span className="block font-medium">
                {label} {!isUsable && <Badge tone="warn">No longer configured</Badge>}
              </span>
              <span className="block truncate text-sm text-muted">
                {email} · used <Time at={lastUsedAt} />
              </span>
            </span>
            <Button size="sm" icon={Link2Off} busy={act.pending} onClick={() => void unlink(id, label)}>
              Unlink
            </Button>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
