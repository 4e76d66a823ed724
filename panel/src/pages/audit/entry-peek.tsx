// One audit entry: its changes, field by field, and why it was allowed.
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { useActions } from '../../keys/use-actions'
import { Copy } from '../../ui/copy'
import { Fact, Facts } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { words } from '../../ui/status'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { Entry } from './audit-page'
import type { Change } from './filters'
import { Outcome } from './outcome'
import { spaced, valueText } from './words'

/** Records with their own page. */
const PAGES = {
  agent: '/o/$org/agents/$id',
  approval: '/o/$org/approvals/$id',
  conversation: '/o/$org/conversations/$id',
  server: '/o/$org/servers/$id',
} as const

export function EntryPeek({
  entry,
  onFilter,
  onClose,
}: {
  entry: Entry
  onFilter: Change
  onClose: () => void
}) {
  const narrow = (change: Parameters<Change>[0], text: ReactNode, tip: string) => (
    <button type="button" className="link text-left" data-tip={tip} onClick={() => onFilter(change)}>
      {text}
    </button>
  )
  const { actorId, targetKind, targetId } = entry
  useActions([
    actorId !== null && {
      id: 'audit.actor',
      label: 'Everything they did',
      group: 'Entry',
      also: 'actor who',
      run: () => onFilter({ actor: actorId }),
    },
    targetKind !== null && {
      id: 'audit.target',
      label: 'History of this record',
      group: 'Entry',
      also: 'target',
      run: () => onFilter({ targetKind, target: targetId ?? undefined }),
    },
  ])
  return (
    <Peek title={spaced(entry.operation)} onClose={onClose}>
      <div className="space-y-6 p-4">
        <Facts>
          <Fact name="Outcome">
            <Outcome entry={entry} />
          </Fact>
          <Fact name="When">
            <Time at={entry.at} as="dated" />
            {entry.lastAt && (
              <>
                , the last of {entry.count} at <Time at={entry.lastAt} as="dated" />
              </>
            )}
          </Fact>
          <Fact name="Who">
            {entry.actorId
              ? narrow(
                  { actor: entry.actorId },
                  <Visible text={authorOf(entry.actorKind, entry.actorName)} />,
                  'Everything they did',
                )
              : authorOf(entry.actorKind, entry.actorName)}
            {entry.credentialKind && (
              <span className="text-muted">
                {' '}
                by {words(entry.credentialKind).toLowerCase()}
                {entry.credentialHint && ` …${entry.credentialHint}`}
              </span>
            )}
          </Fact>
          {entry.ip && <Fact name="From">{entry.ip}</Fact>}
          {entry.targetKind && (
            <Fact name="On what">
              <span className="flex flex-col items-start gap-2">
                <Target entry={entry} />
                {narrow(
                  { targetKind: entry.targetKind, target: entry.targetId ?? undefined },
                  'History of this record',
                  'Everything done to it',
                )}
              </span>
            </Fact>
          )}
          <Fact name="Operation">
            {narrow({ operation: entry.operation }, entry.operation, 'All of these')}
          </Fact>
          {entry.permission && (
            <Fact name="Permission">
              {narrow({ permission: entry.permission }, entry.permission, 'Everything that needed it')}
            </Fact>
          )}
          {entry.decidedBy && (
            <Fact name="Decided by">
              <code className="font-mono text-sm">{entry.decidedBy}</code>
            </Fact>
          )}
          {entry.code && <Fact name="Error">{entry.code}</Fact>}
          {entry.requestId && (
            <Fact name="Request">
              <span className="inline-flex items-center gap-1 font-mono text-sm">
                {entry.requestId} <Copy text={entry.requestId} label="Copy the request’s id" />
              </span>
            </Fact>
          )}
          <Fact name="Place in the chain">{entry.chainSeq}</Fact>
        </Facts>
        <Changes entry={entry} />
      </div>
    </Peek>
  )
}

function Target({ entry: { targetKind, targetName, targetId } }: { entry: Entry }) {
  const org = useOrg()
  const text = targetName ? <Visible text={targetName} /> : `${spaced(targetKind ?? '')} ${targetId ?? ''}`
  const page = PAGES[targetKind?.toLowerCase() as keyof typeof PAGES]
  if (!page || targetId === null) return text
  return (
    <Link to={page} params={{ org: org.id, id: targetId }} className="link">
      {text}
    </Link>
  )
}

function Changes({ entry: { fields, targetKind } }: { entry: Entry }) {
  if (fields.length === 0) return null
  return (
    <section aria-label="What changed">
      <h3 className="mb-2 font-semibold">What changed</h3>
      <dl className="divide-y divide-line rounded-control border border-line">
        {fields.map(({ field, before, after, secret }) => (
          <div key={field} className="px-3 py-2">
            <dt className="text-sm text-muted">{spaced(field)}</dt>
            <dd className="mt-0.5 space-y-0.5 text-sm">
              {secret ? (
                <span>Changed. Its value is secret and was not kept.</span>
              ) : (
                <>
                  {before !== null && (
                    <Value
                      sign="−"
                      tone="text-danger-text"
                      word="Before"
                      text={valueText(before, field, targetKind)}
                    />
                  )}
                  {after !== null && (
                    <Value
                      sign="+"
                      tone="text-ok-text"
                      word="After"
                      text={valueText(after, field, targetKind)}
                    />
                  )}
                </>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function Value({ sign, tone, word, text }: { sign: string; tone: string; word: string; text: string }) {
  return (
    <div className="flex gap-2">
      <span className={`font-mono ${tone}`} aria-hidden>
        {sign}
      </span>
      <span className="min-w-0 whitespace-pre-wrap break-words">
        <span className="sr-only">{word}: </span>
        <Visible text={text} />
      </span>
    </div>
  )
}
