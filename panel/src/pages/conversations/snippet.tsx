// The text around a match, with the matches highlighted.
import { Visible } from '../../ui/visible'
import { rangesOf, snippetWithoutCode } from './ranges'

interface Hit {
  kind: string
  snippet: string
  ranges: readonly (readonly number[])[]
}

export function Snippet({ hit }: { hit: Hit }) {
  const { text, ranges } = snippetWithoutCode(hit.kind, hit.snippet, hit.ranges)
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
