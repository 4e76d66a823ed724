// What agents write, as elements. Never as HTML: the tree is built from the parsed text, and what it does not know is
// text. The parser is a chunk of its own; until it is there, and where it would take too long, the text stands as it was
// written.
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
