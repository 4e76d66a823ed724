// An agent's log, live: filtered, searched and downloaded in the browser. Only the agent's host keeps it.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { ChevronDown, ChevronUp, Download, Pause, Play, ScrollText } from 'lucide-react'
import { useMemo, useRef, useState } from 'react'
import { FilterMenu } from '../../../app/filters'
import { useOrg } from '../../../app/organization'
import { Button, IconButton } from '../../../ui/button'
import { downloadText } from '../../../ui/download'
import { Empty } from '../../../ui/empty'
import { TextInput } from '../../../ui/inputs'
import { ProblemView } from '../../../ui/problem'
import { ListSkeleton } from '../../../ui/skeleton'
import { LOG_SOURCES } from '../search'
import { Lines, type LinesHandle } from './lines'
import { finderOf, hitsOf, itemsOf, type Log, SOURCE_NAMES, textOf } from './log'
import { useLog } from './use-log'

interface Props {
  agent: { id: number; name: string; server: { name: string; status: string } | null }
}

const DENIED = { graphQLErrors: [{ message: 'denied', extensions: { code: 'PERMISSION_DENIED' } }] } as never

export function Logs({ agent }: Props) {
  const { id: orgId } = useOrg()
  const { log, isRefused } = useLog(orgId, agent.id)
  const { source } = useSearch({ from: '/inside/o/$org/agents/$id' })
  // The lines at the moment of the pause: they do not move while someone reads.
  const [paused, setPaused] = useState<Log | null>(null)
  const [words, setWords] = useState('')
  const [hit, setHit] = useState(0)
  const lines = useRef<LinesHandle>(null)
  const shown = paused ?? log
  const items = useMemo(() => itemsOf(shown, source), [shown, source])
  const finder = useMemo(() => finderOf(words), [words])
  const hits = useMemo(() => hitsOf(items, finder), [items, finder])
  const at = Math.min(hit, hits.length - 1)
  const unseen = paused ? (log.lines.at(-1)?.position ?? 0) - (paused.lines.at(-1)?.position ?? 0) : 0

  const follow = (isFollowing: boolean) => setPaused(isFollowing ? null : log)
  const goTo = (next: number) => {
    if (hits.length === 0) return
    const wrapped = (next + hits.length) % hits.length
    setHit(wrapped)
    if (!paused) setPaused(log)
    lines.current?.show(hits[wrapped] as number)
  }
  if (isRefused) return <ProblemView error={DENIED} />
  return (
    <>
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-4 py-2 sm:px-6">
        <SourceFilter />
        <search className="flex items-center gap-1">
          <TextInput
            type="search"
            aria-label="Search the log"
            placeholder="Search"
            className="h-7 w-48 rounded-full py-0 text-sm coarse:h-10 coarse:text-lg"
            maxLength={200}
            value={words}
            onValue={(next) => {
              setWords(next)
              setHit(0)
            }}
            onKeyDown={(event) => event.key === 'Enter' && goTo(at + (event.shiftKey ? -1 : 1))}
          />
          {finder && (
            <>
              <span role="status" className="px-1 text-sm text-muted tabular-nums">
                {hits.length === 0 ? 'Not found' : `${at + 1} of ${hits.length.toLocaleString()}`}
              </span>
              <IconButton icon={ChevronUp} label="Previous match" onClick={() => goTo(at - 1)} />
              <IconButton icon={ChevronDown} label="Next match" onClick={() => goTo(at + 1)} />
            </>
          )}
        </search>
        <span className="grow" />
        <Button size="sm" icon={paused ? Play : Pause} onClick={() => follow(paused !== null)}>
          {!paused ? 'Pause' : unseen > 0 ? `Follow: ${unseen.toLocaleString()} new` : 'Follow'}
        </Button>
        <Button
          size="sm"
          icon={Download}
          disabled={items.length === 0}
          onClick={() => downloadText(textOf(items), 'text/plain', `${agent.name}.log.txt`)}
        >
          Download
        </Button>
        <span role="status" className="sr-only">
          {paused && unseen > 0 && `${unseen} new ${unseen === 1 ? 'line' : 'lines'}`}
        </span>
      </div>
      {items.length > 0 ? (
        <Lines
          items={items}
          finder={finder}
          marked={finder ? hits[at] : undefined}
          isFollowing={paused === null}
          onFollowing={follow}
          handle={lines}
        />
      ) : (
        <NoLines log={log} agent={agent} isFiltered={source !== undefined && shown.lines.length > 0} />
      )}
    </>
  )
}

const SOURCES = LOG_SOURCES.map((value) => ({ value, label: SOURCE_NAMES[value] }))

function SourceFilter() {
  const { source } = useSearch({ from: '/inside/o/$org/agents/$id' })
  const navigate = useNavigate({ from: '/o/$org/agents/$id' })
  return (
    <FilterMenu
      label="Source"
      single
      options={SOURCES}
      value={source && [source]}
      onValue={(sources) =>
        void navigate({ search: (before) => ({ ...before, source: sources?.[0] }), replace: true })
      }
    />
  )
}

function NoLines({ log, agent, isFiltered }: { log: Log; agent: Props['agent']; isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty icon={ScrollText} title="No lines of this source">
        Choose another source, or all of them.
      </Empty>
    )
  }
  if (log.begunAt !== null) {
    return (
      <Empty icon={ScrollText} title="Nothing has been logged yet">
        The agent’s standard error, its launches, the refusals of its gate, and the errors of its MCP servers
        appear here.
      </Empty>
    )
  }
  if (agent.server && !['ONLINE', 'DEGRADED'].includes(agent.server.status)) {
    return (
      <Empty icon={ScrollText} title="The log is on a server that is not connected">
        Only the host of {agent.server.name} keeps the log. It appears here as soon as the host is connected.
      </Empty>
    )
  }
  return <ListSkeleton />
}
