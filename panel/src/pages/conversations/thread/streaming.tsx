// A message that the agent is writing.
import { Visible } from '../../../ui/visible'
import type { Streams } from './streams'

/** Shows only the end of a long one until the message is complete. */
const SHOWN = 20_000

export function Streaming({ streams, agent }: { streams: Streams; agent: string }) {
  return [...streams].map(([key, { text, thinking, isBroken }]) => (
    <div key={key} data-streaming className="px-4 pt-3 sm:px-6 sm:pl-14.5">
      <p className="mb-0.5 text-sm font-medium">
        {agent} <span className="pulsing font-normal text-muted">{thinking ? 'thinks…' : 'writes…'}</span>
      </p>
      <p className={thinking ? 'line-clamp-3 whitespace-pre-wrap text-muted' : 'whitespace-pre-wrap'}>
        <Visible text={text.slice(-SHOWN)} />
        {isBroken && <span className="text-faint"> …</span>}
      </p>
    </div>
  ))
}
