// Commands to agents in the typed text, and the details of found records as words. Pure, tested.
import { words } from '../ui/status'

const VERBS = ['start', 'stop', 'pause', 'resume', 'talk to', 'settings of'] as const
export type Verb = (typeof VERBS)[number]

/** "stop marlow" → the verb, and the name to search for. */
export function commandOf(text: string): { verb: Verb | null; rest: string } {
  const typed = text.trimStart()
  const verb = VERBS.find((each) => typed.toLowerCase().startsWith(`${each} `))
  const rest = verb ? typed.slice(verb.length).trim() : ''
  return verb && rest ? { verb, rest } : { verb: null, rest: text }
}

export const withName = (verb: Verb, name: string) =>
  `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${name}`

/** Kinds of records whose detail is a name of the schema, such as `CODE_HOST`. */
const NAMED = ['CHANNEL', 'MCP_SERVER', 'INVITATION', 'CREDENTIAL']

export const kindWords = (kind: string) => `${words(kind)}s`

export function detailWords(kind: string, detail: string | null): string | null {
  if (!detail || !NAMED.includes(kind)) return detail
  return detail === 'STDIO' ? 'Command' : words(detail.replaceAll('-', ' '))
}
