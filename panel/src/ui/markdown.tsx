// What agents write, as elements. Never as HTML: the tree is built from the parsed text, and what it does not know is
// text. The parser is a chunk of its own; until it is there, the text stands as it was written.
import { lazy, Suspense } from 'react'
import { fetched } from '../api/chunk'

const Tree = lazy(() => fetched(() => import('./markdown-tree')))

export function Markdown({ text }: { text: string }) {
  return (
    <Suspense fallback={<p className="whitespace-pre-wrap">{text}</p>}>
      <Tree text={text} />
    </Suspense>
  )
}
