// Corrections of the most frequent problems: the nearest name for an unknown one, and no second line that says the same.
// No React here.
import { isOwnFile } from './lines'
import type { Proposal } from './queries'

export interface Fix {
  /** What it does: "Write agent.edit". */
  label: string
  /** The corrected text. */
  text: string
}

/** The correction of a problem, as the service words it (src/core/policy/reader.rs); null without an evident one. */
export function fixOf({ file, line, reason }: Proposal['problems'][number], text: string): Fix | null {
  const lines = text.split('\n')
  const wrong = lines[(line ?? 0) - 1]
  if (line === null || wrong === undefined || !isOwnFile(file)) return null
  if (/^duplicates line \d+$/.test(reason)) {
    return { label: `Remove line ${line}`, text: lines.toSpliced(line - 1, 1).join('\n') }
  }
  const [, name, meant] = /^unknown \w+ "(.+)" \(did you mean "(.+)"\?\)$/.exec(reason) ?? []
  const fields = wrong.split(',')
  const at = fields.findIndex((field) => field.trim() === name)
  if (!name || !meant || at < 0) return null
  const fixed = fields.map((field, index) => (index === at ? field.replace(name, () => meant) : field))
  return { label: `Write ${meant}`, text: lines.with(line - 1, fixed.join(',')).join('\n') }
}
