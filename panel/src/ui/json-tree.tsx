// JSON as a collapsible tree that reveals hidden characters, and raw, exactly as sent.
import { useState } from 'react'
import type { Json } from '../api/graphql'
import { Button } from './button'
import { CodeBlock } from './code'
import { Visible } from './visible'

/** Deeper levels start collapsed. */
const OPEN_LEVELS = 2
/** Further entries are shown on request. */
const FIRST = 100

export function JsonTree({ value, label = 'Value' }: { value: Json; label?: string }) {
  const [raw, setRaw] = useState(false)
  return (
    <div>
      <div className="mb-1 flex justify-end">
        <Button size="sm" look="quiet" onClick={() => setRaw(!raw)} aria-pressed={raw}>
          {raw ? 'As a tree' : 'Raw'}
        </Button>
      </div>
      {raw ? (
        <CodeBlock text={JSON.stringify(value, null, 2)} label={label} maxHeight="lg" />
      ) : (
        <div className="overflow-x-auto rounded-control border border-line bg-sunken px-3 py-2 font-mono text-sm">
          <Node value={value} level={0} />
        </div>
      )}
    </div>
  )
}

function Node({ name, value, level }: { name?: string; value: Json; level: number }) {
  const [all, setAll] = useState(false)
  if (typeof value !== 'object' || value === null) {
    return (
      <div className="py-px">
        {name !== undefined && <Name name={name} />}
        <Leaf value={value} />
      </div>
    )
  }
  const isList = Array.isArray(value)
  const entries: [string, Json][] = isList
    ? value.map((item, index) => [String(index), item])
    : Object.entries(value)
  const size = `${entries.length} ${isList ? (entries.length === 1 ? 'entry' : 'entries') : entries.length === 1 ? 'field' : 'fields'}`
  if (entries.length === 0) {
    return (
      <div className="py-px">
        {name !== undefined && <Name name={name} />}
        <span className="text-faint">{isList ? '[]' : '{}'}</span>
      </div>
    )
  }
  return (
    <details open={level < OPEN_LEVELS}>
      <summary className="py-px">
        {name !== undefined && <Name name={name} />}
        <span className="text-faint">{size}</span>
      </summary>
      <div className="ml-1.5 border-l border-line pl-3">
        {(all ? entries : entries.slice(0, FIRST)).map(([key, item]) => (
          <Node key={key} name={key} value={item} level={level + 1} />
        ))}
        {!all && entries.length > FIRST && (
          <Button size="sm" look="quiet" onClick={() => setAll(true)}>
            Show all {entries.length}
          </Button>
        )}
      </div>
    </details>
  )
}

function Name({ name }: { name: string }) {
  return (
    <span className="text-muted">
      <Visible text={name} />:{' '}
    </span>
  )
}

function Leaf({ value }: { value: string | number | boolean | null }) {
  if (typeof value === 'string') {
    return (
      <span className="whitespace-pre-wrap">
        <Visible text={value} />
      </span>
    )
  }
  return <span className="text-info-text">{String(value)}</span>
}
