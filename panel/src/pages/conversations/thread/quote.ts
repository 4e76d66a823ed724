// Quotes a message in the text of the composer. Pure, tested.

export function quoted(draft: string, text: string): string {
  const lines = text.trim().split('\n')
  const quote = lines.map((line) => (line === '' ? '>' : `> ${line}`)).join('\n')
  return `${draft.trim() ? `${draft.trimEnd()}\n\n` : ''}${quote}\n\n`
}
