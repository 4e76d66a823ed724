// biome-ignore-all lint/suspicious/noArrayIndexKey: parts have no identity but their position
// Reveals hidden characters in a text that people decide about.
import { Fragment } from 'react'
import { partsOf } from './visible-text'

export function Visible({ text }: { text: string }) {
  const parts = partsOf(text)
  if (parts.every(({ hidden }) => !hidden)) return <bdi>{text}</bdi>
  return (
    <bdi>
      {parts.map(({ text: part, hidden }, index) =>
        hidden ? (
          // Relative, so that the screen-reader text is clipped together with the visible text.
          <mark
            key={index}
            data-tip={hidden}
            className="relative mx-px rounded bg-warn-soft px-1 font-mono text-2xs text-warn-text"
          >
            {hidden.split(' ')[0]}
            <span className="sr-only">{hidden.slice(hidden.indexOf(' '))}</span>
          </mark>
        ) : (
          <Fragment key={index}>{part}</Fragment>
        ),
      )}
    </bdi>
  )
}
