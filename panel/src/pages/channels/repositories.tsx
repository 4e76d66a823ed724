// The repositories of a code host to which a channel listens, of those that it reaches.
import { RefreshCw } from 'lucide-react'
import type { VariablesOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { Checkbox } from '../../ui/choices'
import { ProblemView } from '../../ui/problem'
import { SectionForm, SectionPart } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { useSection } from '../../ui/use-section'
import { type Channel, type ChannelRecord, ChannelRepositories, type UpdateChannel } from './channel'
import { useSave } from './sections'
import type { Group } from './transports'
import { inputOf } from './values'

const PATH = 'codeHost.repos'
const chosenOf = ({ codeHost }: ChannelRecord): Record<string, string[]> => ({
  [PATH]: codeHost?.repos ?? [],
})

/** Whether the channel can ask for them. Until then they are typed. */
const canAsk = ({ codeHost }: Channel) => Boolean(codeHost?.host || codeHost?.oauth?.authorized)

/** A transport's settings without those that are chosen here. */
export const typedOf = (channel: Channel, group: Group): Group =>
  canAsk(channel) ? { ...group, fields: group.fields.filter(({ path }) => path !== PATH) } : group

export function Repositories({ channel }: { channel: Channel }) {
  return canAsk(channel) ? <Choose channel={channel} /> : null
}

function Choose({ channel }: { channel: Channel }) {
  const save = useSave(channel)
  const form = useSection<Record<string, string[]>>({
    stored: chosenOf(channel),
    revision: channel.revision,
    bounds: {},
    save: (changes, ifRevision) =>
      save(inputOf(changes) as VariablesOf<typeof UpdateChannel>['input'], ifRevision),
    ofCurrent: chosenOf,
  })
  return (
    <SectionForm
      title="Repositories"
      about={channel.codeHost?.host ? undefined : 'Without a choice, it listens to all of the installation.'}
      doc="channels/code-host.md#settings"
      form={form}
    >
      <SectionPart form={form} name={PATH} asText={(value) => (value as string[]).join(', ')}>
        <Choices channel={channel} chosen={form.values[PATH] ?? []} onChosen={(all) => form.set(PATH, all)} />
      </SectionPart>
    </SectionForm>
  )
}

interface ChoicesProps {
  channel: Channel
  chosen: string[]
  onChosen: (chosen: string[]) => void
  error?: string | null
}

function Choices({ channel, chosen, onChosen, error: refused }: ChoicesProps) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: ChannelRepositories,
    variables: { orgId, id: channel.id },
    on: ({ kind, id }) => kind === 'CHANNEL' && id === channel.id,
  })
  // A chosen repository stays in sight when the channel no longer reaches it.
  const all = [...new Set([...(data?.channelRepositories ?? []), ...chosen])]
  return (
    <div className="space-y-2">
      {error && <ProblemView error={error} retry={refetch} />}
      {loading && !data && <ListSkeleton />}
      {all.map((repository) => (
        <Checkbox
          key={repository}
          label={repository}
          checked={chosen.includes(repository)}
          onChecked={(isChosen) => {
            const others = chosen.filter((other) => other !== repository)
            onChosen(isChosen ? [...others, repository] : others)
          }}
        />
      ))}
      {refused && <p className="text-sm text-danger-text">{refused}</p>}
      <Button size="sm" icon={RefreshCw} onClick={refetch}>
        Look again
      </Button>
    </div>
  )
}
