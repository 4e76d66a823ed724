// Unreadable messages with their reasons: people look for them at the vendor.
import { useState } from 'react'
import { Button } from '../../ui/button'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { Channel } from './channel'

/** Further ones are shown on request. */
const FIRST = 5

export function Skipped({ channel: { skipped, transport } }: { channel: Channel }) {
  const [isWhole, showAll] = useState(false)
  if (skipped.length === 0) return null
  const isMail = transport === 'EMAIL'
  return (
    <Panel
      title={isMail ? 'Skipped mails' : 'Skipped messages'}
      about={
        isMail
          ? 'They can’t be read, so the agent never sees them. They are still in the mailbox.'
          : 'They can’t be read, so the agent never sees them.'
      }
    >
      <ul
        aria-label={isMail ? 'Skipped mails' : 'Skipped messages'}
        className="divide-y divide-line rounded-card border border-line"
      >
        {(isWhole ? skipped : skipped.slice(0, FIRST)).map(({ vendorId, subject, reason, skippedAt }) => (
          <li key={vendorId} className="px-3 py-2">
            <p className="break-words font-medium">
              {subject ? <Visible text={subject} /> : isMail ? 'Unknown subject' : 'Unknown content'}
            </p>
            <p className="break-words text-sm text-muted">
              <Visible text={reason} /> {isMail && `UID ${vendorId} · `}
              <Time at={skippedAt} />
            </p>
          </li>
        ))}
      </ul>
      {!isWhole && skipped.length > FIRST && (
        <Button look="quiet" size="sm" className="mt-1" onClick={() => showAll(true)}>
          Show all {skipped.length}
        </Button>
      )}
    </Panel>
  )
}
