// The stored form of unsent messages. Files can't be stored, only their names. Pure, tested.

export interface Unsent {
  /** The request's key: with it, sending again can't post the message twice. */
  key: string
  text: string
  files: readonly { name: string }[]
  createdAt: string
}

/** The key in storage. Without its files the message is a different request. */
export const storageKey = ({ key, files }: Pick<Unsent, 'key' | 'files'>) =>
  files.length > 0 ? `${key.slice(1)}f` : key

export function write(messages: readonly Unsent[]): string {
  if (messages.length === 0) return ''
  return JSON.stringify(
    messages.map(({ key, text, files, createdAt }) => ({
      key: storageKey({ key, files }),
      text,
      files: files.map(({ name }) => ({ name })),
      createdAt,
    })),
  )
}

/** Anything unreadable counts as empty. */
export function read(text: string): Unsent[] {
  try {
    const found: unknown = JSON.parse(text)
    return Array.isArray(found) ? found.filter(isUnsent) : []
  } catch {
    return []
  }
}

/** Why it was not sent. */
export function unsentReason(files: readonly { name: string }[]): string {
  const why = 'The page was left before the message was accepted.'
  return files.length > 0 ? `${why} Add its files again: ${files.map(({ name }) => name).join(', ')}.` : why
}

function isUnsent(value: unknown): value is Unsent {
  if (typeof value !== 'object' || value === null) return false
  const { key, text, files, createdAt } = value as Record<string, unknown>
  const texts = [key, text, createdAt].every((each) => typeof each === 'string')
  return texts && Array.isArray(files) && files.every((file) => typeof file?.name === 'string')
}
