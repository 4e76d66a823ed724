// The chats in which agents' requests reach the user, per organization.
import { Link } from '@tanstack/react-router'
import { Unlink } from 'lucide-react'
import { useQuery } from 'urql'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { askedWhere, chatsAbout, useMailWay } from '../../app/mail'
import { Button } from '../../ui/button'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'

const MayDecide = graphql(`
  query MayDecideInChats($orgId: Id!) { organization(orgId: $orgId) { id viewerPermissions } }
`)
const OwnChats = graphql(`
  query OwnChats($orgId: Id!) { linkedChats(orgId: $orgId) { channelId originId originName linkedAt } }
`)
const ChannelName = graphql(`
  query LinkedChannel($orgId: Id!, $id: Id!) { channel(orgId: $orgId, id: $id) { id name } }
`)
const UnlinkOwn = graphql(`
  mutation UnlinkOwnChat($orgId: Id!, $channelId: Id!) { unlinkChat(orgId: $orgId, channelId: $channelId) }
`)

export function Chats({ orgId }: { orgId: number }) {
  const [allowed] = useQuery({ query: MayDecide, variables: { orgId } })
  const can = allowed.data?.organization?.viewerPermissions ?? []
  const pause = !can.includes('approval.resolve')
  const [{ data }, read] = useQuery({ query: OwnChats, variables: { orgId }, pause })
  const act = useAct(UnlinkOwn)
  const way = useMailWay()
  const chats = data?.linkedChats ?? []
  if (pause || !data) return null
  const unlink = async (channelId: number) => {
    const { error } = await act({ orgId, channelId }, { said: 'Your chat is no longer linked' })
    if (!error) read({ requestPolicy: 'network-only' })
  }
  return (
    <div className="mt-3">
      <h3 className="font-medium">Chats</h3>
      {chats.length === 0 ? (
        <p className="text-sm text-muted">
          {askedWhere(way)} To be asked in a chat as well, open a{' '}
          <Link to="/o/$org/channels" params={{ org: orgId }} className="link">
            channel
          </Link>{' '}
          of Telegram, Discord or Slack and link your chat.
        </p>
      ) : (
        <>
          <p className="text-sm text-muted">{chatsAbout(way)}</p>
          <ul className="mt-2 divide-y divide-line rounded-card border border-line">
            {chats.map(({ channelId, originId, originName, linkedAt }) => (
              <li key={channelId} className="flex flex-wrap items-center gap-3 px-4 py-3">
                <span className="min-w-0 grow">
                  <Channel orgId={orgId} id={channelId} />
                  <span className="block truncate text-sm text-muted">
                    <Visible text={originName ?? originId} /> · linked <Time at={linkedAt} />
                  </span>
                </span>
                <Button size="sm" icon={Unlink} busy={act.pending} onClick={() => void unlink(channelId)}>
                  Unlink
                </Button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

function Channel({ orgId, id }: { orgId: number; id: number }) {
  const [{ data }] = useQuery({ query: ChannelName, variables: { orgId, id } })
  return (
    <Link
      to="/o/$org/channels"
      params={{ org: orgId }}
      search={{ peek: id }}
      className="link block truncate font-medium"
    >
      <Visible text={data?.channel?.name ?? `Channel ${id}`} />
    </Link>
  )
}
