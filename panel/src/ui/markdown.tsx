// Renders text from agents as elements, never as HTML: the tree is built from the parsed text, and unknown nodes become
// text. The parser is its own chunk; until it has loaded, and for text that takes too long to parse, the source is shown.
import { lazy, Suspense } from 'react'
import { fetched } from '../api/chunk'
import { isParsable } from './parsable'
import { Visible } from './visible'

const Tree = lazy(() => fetched(() => import('./markdown-tree')))

export function Markdown({ text }: { text: string }) {
  const plain = (
    <p className="whitespace-pre-wrap">
      <Visible text={text} />
    </p>
  )
  if (!isParsable(text)) return plain
  return (
    <Suspense fallback={plain}>
      <Tree text={text} />
    </Suspense>
  )
}
