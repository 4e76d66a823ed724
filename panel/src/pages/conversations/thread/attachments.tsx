// Attachments of a message. Images of four safe types are displayed from their bytes; all other files are downloads.
import { Download, FileText } from 'lucide-react'
import { useEffect, useState } from 'react'
import type { MessageRecord } from '../../../app/thread/fields'
import { buttonClass } from '../../../ui/button'
import { bytes } from '../../../ui/bytes'
import { Visible } from '../../../ui/visible'

type File = MessageRecord['attachments'][number]

const SHOWN = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']
/** Larger images are downloads. */
const MAX_BYTES = 5 * 1024 * 1024

export function Attachments({ files }: { files: File[] }) {
  if (files.length === 0) return null
  return (
    <ul className="mt-1.5 space-y-2">
      {files.map((file) => (
        <li key={file.id}>
          {SHOWN.includes(file.mimeType) && file.sizeBytes <= MAX_BYTES && <Picture file={file} />}
          <div className="flex items-center gap-2 rounded-control border border-line bg-canvas py-1 pr-1 pl-2.5 text-sm">
            <FileText size={15} aria-hidden className="shrink-0 text-muted" />
            <span className="min-w-0 grow truncate">
              <Visible text={file.filename} />
            </span>
            <span className="shrink-0 text-xs text-muted">{bytes(file.sizeBytes)}</span>
            {isOurs(file.url) && (
              <a
                href={file.url}
                download={file.filename}
                aria-label={`Save ${file.filename}`}
                data-tip="Save"
                className={buttonClass('quiet', 'sm', 'size-7 px-0 coarse:size-10')}
              >
                <Download size={15} aria-hidden />
              </a>
            )}
          </div>
        </li>
      ))}
    </ul>
  )
}

/** Accepts only the service's own address, regardless of the record. */
const isOurs = (url: string) => /^\/v1\/org\/\d+\/attachment\/\d+$/.test(url)

function Picture({ file }: { file: File }) {
  const [source, setSource] = useState<string | null>(null)
  const { url, mimeType } = file
  useEffect(() => {
    if (!isOurs(url)) return
    const stop = new AbortController()
    let made: string | null = null
    const load = async () => {
      const answer = await fetch(url, { signal: stop.signal, credentials: 'same-origin' })
      if (!answer.ok) return
      // The type is an allowed image type, so a browser displays the bytes as an image or not at all.
      made = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: mimeType }))
      if (stop.signal.aborted) URL.revokeObjectURL(made)
      else setSource(made)
    }
    load().catch(() => {})
    return () => {
      stop.abort()
      if (made) URL.revokeObjectURL(made)
    }
  }, [url, mimeType])
  if (!source) return null
  return (
    <img
      src={source}
      alt={file.filename}
      className="mb-1 max-h-80 max-w-full rounded-control border border-line"
      onError={() => setSource(null)}
    />
  )
}
