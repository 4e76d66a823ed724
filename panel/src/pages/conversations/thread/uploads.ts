// Uploads files for a message, as raw bytes to the attachment endpoint.
import { randomKey } from '../../../api/use-act'

/** The service's default limit. The service itself enforces it. */
export const MAX_BYTES = 26_214_400
export const MAX_FILES = 20

export interface Upload {
  key: string
  name: string
  file: File
  /** Uploaded; the message refers to it by id. */
  id?: number
}

export function uploadOf(file: File): Upload {
  return { key: randomKey(), name: file.name || 'file', file }
}

/** Uploads a file. The same key always yields the same file. */
export async function upload(orgId: number, { key, name, file }: Upload): Promise<number> {
  let answer: Response
  try {
    answer = await fetch(`/v1/org/${orgId}/attachment?filename=${encodeURIComponent(name.slice(0, 250))}`, {
      method: 'POST',
      credentials: 'same-origin',
      headers: { 'content-type': file.type || 'application/octet-stream', 'idempotency-key': key },
      body: file,
    })
  } catch {
    throw new Error(`${name} could not be sent. Check your connection and try again.`)
  }
  const said: unknown = await answer.json().catch(() => null)
  const field = (of: string) =>
    typeof said === 'object' && said !== null ? (said as Record<string, unknown>)[of] : null
  if (!answer.ok) {
    const why = field('detail') ?? field('title')
    throw new Error(`${name} was not accepted. ${typeof why === 'string' ? why : 'Try again.'}`)
  }
  const id = field('id') ?? (field('data') as { id?: unknown } | null)?.id
  if (typeof id !== 'number') throw new Error(`${name} was not accepted. Try again.`)
  return id
}
