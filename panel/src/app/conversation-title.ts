// The title and the preview of a conversation in lists. Pure, tested.

interface Titled {
  title?: string | null
  contactName?: string | null
  agent?: { name: string } | null
  ref?: string | null
}

/** The title, or a fallback. */
export function conversationTitle({ title, contactName, agent, ref }: Titled): string {
  return title || contactName || (agent ? `With ${agent.name}` : (ref ?? 'Conversation'))
}

/**
 * A message's preview without the code that the service puts before an error's text (`INTERRUPTED The agent ended`) and
 * after an event's (`Ada took over. TAKEN_OVER`).
 */
export function withoutCode(kind: string, text: string): string {
  if (kind === 'ERROR') return text.replace(/^[A-Z][A-Z_]+(?=\s)\s*/, '')
  return kind === 'EVENT' ? text.replace(/\s+[A-Za-z]+(_[A-Za-z]+)+$/, '') : text
}
