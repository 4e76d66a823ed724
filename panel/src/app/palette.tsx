// The command palette: records of the organization, pages, and actions on the current page.
import { useNavigate, useParams } from '@tanstack/react-router'
import { CornerDownLeft, Search } from 'lucide-react'
import { useEffect, useId, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { type Action, actionsNow, keysOf, onActions, runAction, takeTypedAhead } from '../keys/registry'
import { cx } from '../ui/cx'
import { Dialog } from '../ui/dialog'
import { Kbd } from '../ui/kbd'
import { lastOrganization } from './last-organization'
import { agentLines } from './palette-agents'
import { useHits } from './palette-hits'
import { GO_TO, ranked } from './palette-rank'
import { DOCUMENTS, sections } from './palette-sections'
import { commandOf, detailWords, kindWords } from './palette-words'
import { requestActions } from './request-actions'

interface Line {
  id: string
  label: string
  detail?: string | null
  group: string
  also?: string
  isFound?: boolean
  keys?: string
  refused?: boolean
  run: () => void
}

export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  // By id: records come later than actions, and move them.
  const [chosen, point] = useState<string | null>(null)
  const list = useRef<HTMLDivElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const navigate = useNavigate()
  const actions = useSyncExternalStore(onActions, actionsNow)
  // The page's requests when the palette opened.
  const [requests] = useState(requestActions)
  const { verb, rest } = commandOf(text)
  const { hits, searching } = useHits(rest)
  const org = useParams({ strict: false }).org ?? lastOrganization() ?? undefined
  const base = useId()

  const lines = useMemo<Line[]>(() => {
    const found: Line[] = hits.map(({ kind, id, name, detail, ref, link }) => ({
      id: `${kind}:${id}`,
      label: name,
      detail: [ref, detailWords(kind, detail)].filter(Boolean).join(' · '),
      group: kindWords(kind),
      also: ref ?? undefined,
      isFound: true,
      run: () => void navigate(link as never),
    }))
    const named: Action[] = sections(org).map(({ link, ...section }) => ({
      ...section,
      group: GO_TO,
      run: () => void navigate(link as never),
    }))
    const outside = DOCUMENTS.map(({ href, ...document }) => ({
      ...document,
      group: 'Help',
      run: () => void window.open(href, '_blank', 'noopener'),
    }))
    // Sections would hide the pages while nothing is typed.
    const shown = [
      ...actions.filter(({ hidden }) => !hidden),
      ...(text.trim() ? named : []),
      ...outside,
      ...requests,
    ]
    const ofAgents = verb ? agentLines(verb, hits, navigate) : []
    return ranked([...shown.map(toLine), ...ofAgents, ...found], text)
  }, [actions, hits, navigate, org, requests, text, verb])
  const current = Math.max(
    0,
    lines.findIndex(({ id }) => id === chosen),
  )

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new text starts at the top
  useEffect(() => point(null), [text])
  useEffect(() => {
    list.current?.querySelector(`[data-at="${current}"]`)?.scrollIntoView({ block: 'nearest' })
  }, [current])

  const choose = (line: Line | undefined) => {
    if (!line) return
    onClose()
    line.run()
  }
  return (
    <Dialog open onClose={onClose} title="Find anything" bare width="md" initialFocus={input}>
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Search size={16} aria-hidden className="shrink-0 text-faint" />
        <input
          ref={input}
          role="combobox"
          aria-label="Find anything"
          aria-expanded
          aria-controls={base}
          aria-activedescendant={lines.length > 0 ? `${base}-${current}` : undefined}
          placeholder="Name, short code, or what you want to do"
          autoComplete="off"
          spellCheck={false}
          maxLength={200}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onFocus={() => {
            const ahead = takeTypedAhead()
            if (ahead) setText(ahead)
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
            if (step && lines.length > 0) {
              event.preventDefault()
              point(lines[(current + step + lines.length) % lines.length]?.id ?? null)
            } else if (event.key === 'Enter') {
              event.preventDefault()
              choose(lines[current])
            }
          }}
          className="h-12 min-w-0 grow bg-transparent text-lg outline-none"
        />
      </div>
      <div
        ref={list}
        id={base}
        role="listbox"
        aria-label="Found"
        className="max-h-[50dvh] min-h-24 overflow-y-auto p-1.5"
      >
        {lines.map((line, index) => (
          <div key={line.id}>
            {line.group !== lines[index - 1]?.group && (
              <div role="presentation" className="px-2.5 pt-2 pb-1 text-xs font-medium text-faint">
                {line.group}
              </div>
            )}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys */}
            <div
              id={`${base}-${index}`}
              data-at={index}
              role="option"
              tabIndex={-1}
              aria-selected={index === current}
              onPointerMove={() => point(line.id)}
              onClick={() => choose(line)}
              className={cx(
                'flex min-h-9 items-center gap-3 rounded-control px-2.5 coarse:min-h-11',
                index === current && 'bg-hover',
                line.refused && 'text-faint',
              )}
            >
              <span className="min-w-0 grow truncate">{line.label}</span>
              {line.detail && <span className="max-w-[45%] truncate text-sm text-muted">{line.detail}</span>}
              {line.refused && <span className="text-xs">why not?</span>}
              {line.keys && <Kbd keys={line.keys} />}
              {index === current && !line.keys && (
                <CornerDownLeft size={13} aria-hidden className="text-faint" />
              )}
            </div>
          </div>
        ))}
        {lines.length === 0 && (
          <p className="px-2.5 py-6 text-center text-muted">{searching ? 'Searching…' : 'Nothing found.'}</p>
        )}
      </div>
      <p role="status" className="sr-only">
        {text && !searching && `${lines.length} found`}
      </p>
    </Dialog>
  )
}

function toLine(action: Action): Line {
  const { id, label, group, also, refused } = action
  return {
    id,
    label,
    group,
    also,
    keys: keysOf(action)[0],
    refused: Boolean(refused),
    run: () => runAction(action),
  }
}
