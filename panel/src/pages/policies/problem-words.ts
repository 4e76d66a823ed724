// The service's problems in the reader's words. No React here.
import { isOwnFile } from './lines'
import { mayWords } from './names'
import type { Permissions, Proposal } from './queries'

type Problem = Proposal['problems'][number]

/** A problem's words, and the line that is to be changed. */
export function problemWords(problem: Problem, permissions: Permissions): Problem {
  const { file, reason } = problem
  // As the service words an expectation that is not met (src/core/policy/expectations.rs).
  const [, effect, permission, subject, decidingFile, decidingLine] =
    /^expected (allow|deny) of (\S+) to (\w+), who may.*?: (?:(\S+):(\d+) decides: .*|no line .*)$/.exec(
      reason,
    ) ?? []
  if (!permission || !subject) return problem
  const isOwn = isOwnFile(file)
  const expected = mayWords({ subject, permission }, effect === 'allow', permissions)
  const by = isOwn ? 'The organization expects' : 'The operator requires'
  const line = decidingLine ? Number(decidingLine) : null
  const isOurs = decidingFile !== undefined && isOwnFile(decidingFile)
  const where = line === null ? 'No line' : isOurs ? `Line ${line}` : `Line ${line} of ${decidingFile}`
  const words = `${by}: ${expected} (${permission}). ${where} ${line !== null && effect === 'allow' ? 'denies' : 'allows'} it.`
  return { ...(isOurs && !isOwn ? { file: decidingFile, line } : problem), reason: words }
}
