// The calendars that a channel's agent can see, of those of its account.
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
import { type Channel, ChannelCalendars, type ChannelRecord, type UpdateChannel } from './channel'
import { useSave } from './sections'
import { inputOf } from './values'

const PATH = 'calendar.calendarWhitelist'
interface Choice {
  id: string
  name: string | null
}
const chosenOf = ({ calendar }: ChannelRecord): Record<string, Choice[]> => ({
  [PATH]: (calendar?.calendarWhitelist ?? []).map(({ id, name }) => ({ id, name })),
})

/** The choice, once there is an account. */
export function Calendars({ channel }: { channel: Channel }) {
  const hasAccount = channel.calendar?.url || channel.providerAccount?.connected
  return channel.calendar && hasAccount ? <Choose channel={channel} /> : null
}

function Choose({ channel }: { channel: Channel }) {
  const save = useSave(channel)
  const form = useSection<Record<string, Choice[]>>({
    stored: chosenOf(channel),
    revision: channel.revision,
    bounds: {},
    save: (changes, ifRevision) =>
      save(inputOf(changes) as VariablesOf<typeof UpdateChannel>['input'], ifRevision),
    ofCurrent: chosenOf,
  })
  return (
    <SectionForm
      title="Calendars"
      about="Only what happens in these calendars comes in, and the agent acts only there."
      doc="channels/calendar.md#set-it-up"
      form={form}
    >
      <SectionPart form={form} name={PATH} asText={(value) => namesOf(value as Choice[])}>
        <Choices
          channel={channel}
          chosen={form.values[PATH] ?? []}
          onChosen={(chosen) => form.set(PATH, chosen)}
        />
      </SectionPart>
    </SectionForm>
  )
}

const namesOf = (choices: Choice[]) => choices.map(({ id, name }) => name ?? id).join(', ') || 'no calendar'

interface ChoicesProps {
  channel: Channel
  chosen: Choice[]
  onChosen: (chosen: Choice[]) => void
  error?: string | null
}

function Choices({ channel, chosen, onChosen, error: refused }: ChoicesProps) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: ChannelCalendars,
    variables: { orgId, id: channel.id },
    on: ({ kind, id }) => kind === 'CHANNEL' && id === channel.id,
  })
  const known: Choice[] = data?.channelCalendars ?? []
  // A chosen calendar stays in sight when the account has lost it.
  const all = [...known, ...chosen.filter(({ id }) => known.every((calendar) => calendar.id !== id))]
  return (
    <div className="space-y-2">
      {error && <ProblemView error={error} retry={refetch} />}
      {loading && !data && <ListSkeleton />}
      {all.map((calendar) => (
        <Checkbox
          key={calendar.id}
          label={calendar.name ?? calendar.id}
          checked={chosen.some(({ id }) => id === calendar.id)}
          onChecked={(isChosen) => {
            const others = chosen.filter(({ id }) => id !== calendar.id)
            onChosen(isChosen ? [...others, calendar] : others)
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
