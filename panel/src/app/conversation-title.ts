// The title of a conversation, with a fallback if it has no subject.

interface Titled {
  title?: string | null
  contactName?: string | null
  agent?: { name: string } | null
  ref?: string | null
}

export function conversationTitle({ title, contactName, agent, ref }: Titled): string {
  return title || contactName || (agent ? `With ${agent.name}` : (ref ?? 'Conversation'))
}
