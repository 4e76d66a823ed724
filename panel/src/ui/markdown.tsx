// What agents write, as elements. Never as HTML: the tree is built from the parsed text, and what it does not know is
// text. The parser is a chunk of its own; until it is there, the text stands as it was written.
import { lazy, Suspense } from 'react'
import { fetched } from '../api/chunk'
import { Visible } from './visible'

const Tree = lazy(() => fetched(() => import('./markdown-tree')))

/** What is longer, or has more marks, stands as it was written: the parser's time grows with the square of the marks. */
const LONGEST = 100_000
const MOST_MARKS = 2_000

export function Markdown({ text }: { text: string }) {
  const plain = (
    <p className="whitespace-pre-wrap">
      <Visible text={text} />
    </p>
  )
  if (text.length > LONGEST || (text.match(/[*_~[`]/g)?.length ?? 0) > MOST_MARKS) return plain
  return (
    <Suspense fallback={plain}>
      <Tree text={text} />
    </Suspense>
  )
}
