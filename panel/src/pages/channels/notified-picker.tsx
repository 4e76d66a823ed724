// Chooses the conversation that a channel notifies of incoming messages.
import { type AriaAttributes, useState } from 'react'
import { type Choice, Picker } from '../../ui/picker'
import type { Channel } from './channel'
import { choiceOf, useFindConversations } from './conversations-found'

interface Props extends Pick<AriaAttributes, 'aria-describedby' | 'aria-invalid'> {
  id?: string
  stored: Channel['notifyConversation']
  value: number | null
  onValue: (id: number | null) => void
}

export function NotifiedPicker({ stored, value, onValue, ...field }: Props) {
  const search = useFindConversations(null)
  const [chosen, choose] = useState<Choice | null>(null)
  const known = [chosen, stored && choiceOf(stored)].find((choice) => choice?.id === value)
  return (
    <Picker
      {...field}
      value={value === null ? null : (known ?? { id: value, name: `Conversation ${value}` })}
      search={search}
      placeholder="No one"
      empty="No conversation has this name."
      clearable
      onValue={(choice) => {
        choose(choice)
        onValue(choice ? Number(choice.id) : null)
      }}
    />
  )
}
