// The text around a match, with the matches highlighted.
import { Visible } from '../../ui/visible'
import { rangesOf } from './ranges'

export function Snippet({ text, ranges }: { text: string; ranges: readonly (readonly number[])[] }) {
  return rangesOf(text, ranges).map(({ text: part, isHit, from }) =>
    isHit ? (
      <mark key={from} className="rounded bg-warn-soft font-medium text-warn-text">
        <Visible text={part} />
      </mark>
    ) : (
      <Visible key={from} text={part} />
    ),
  )
}
