// A tool call with its result, and thoughts: collapsed, because they are rarely needed. Opens by mouse and keyboard.
import { Brain, ChevronRight, Wrench } from 'lucide-react'
import type { ReactNode } from 'react'
import { useState } from 'react'
import type { Json } from '../../../api/graphql'
import { contentOf, isAsked } from '../../../app/thread/content'
import type { MessageRecord } from '../../../app/thread/fields'
import { CodeBlock } from '../../../ui/code'
import { JsonTree } from '../../../ui/json-tree'
import { duration } from '../../../ui/time-format'
import { Visible } from '../../../ui/visible'

interface FoldProps {
  summary: ReactNode
  /** The start of the content. */
  preview?: string
  aside?: ReactNode
  tool?: boolean
  children: ReactNode
}

export function Fold({ summary, preview, aside, tool, children }: FoldProps) {
  const [open, setOpen] = useState(false)
  const Icon = tool ? Wrench : Brain
  return (
    <details
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
      className="rounded-control border border-line sm:ml-8.5"
    >
      <summary className="flex list-none items-center gap-2 rounded-control px-2.5 py-1.5 text-sm text-muted hover:bg-hover coarse:py-3 [&::-webkit-details-marker]:hidden">
        <ChevronRight size={13} aria-hidden className={open ? 'shrink-0 rotate-90' : 'shrink-0'} />
        <Icon size={13} aria-hidden className="shrink-0" />
        <span className="min-w-0 shrink-0 font-medium max-w-[60%] truncate">{summary}</span>
        {!open && preview && (
          <span className="min-w-0 truncate">
            <Visible text={preview.slice(0, 200)} />
          </span>
        )}
        <span className="grow" />
        <span className="shrink-0 text-xs tabular-nums">{aside}</span>
      </summary>
      {open && <div className="space-y-3 border-t border-line p-3">{children}</div>}
    </details>
  )
}

/** `call` without `result`: running, or its result is not loaded. `result` without `call`: the call is not loaded. */
export function ToolCall({ call, result }: { call?: MessageRecord; result?: MessageRecord }) {
  const asked = call && contentOf(call.content)
  const got = result && contentOf(result.content)
  const asks = isAsked(got?.output)
  const failed = got?.isError && !asks
  const took =
    call && result ? new Date(result.createdAt).getTime() - new Date(call.createdAt).getTime() : null
  return (
    <Fold
      tool
      summary={<Visible text={asked?.tool ?? 'Result of a tool'} />}
      preview={asked ? short(asked.input) : short(got?.output)}
      aside={
        <>
          {failed && <span className="font-medium text-danger-text">failed </span>}
          {asks ? 'asked for a decision' : took !== null && duration(took)}
          {!result && 'no result yet'}
        </>
      }
    >
      {asked && <Part title="Input" value={asked.input} />}
      {got && <Part title={asks ? 'Answer to the agent' : failed ? 'Error' : 'Result'} value={got.output} />}
    </Fold>
  )
}

function Part({ title, value }: { title: string; value: Json | undefined }) {
  if (value === undefined || value === null) return null
  return (
    <section aria-label={title}>
      <h4 className="mb-1 text-xs font-medium text-faint">{title}</h4>
      {typeof value === 'string' ? (
        <CodeBlock text={value} label={title} />
      ) : (
        <JsonTree value={value} label={title} />
      )}
    </section>
  )
}

function short(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 200)
}
