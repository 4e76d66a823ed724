// A text that is typed and not sent yet: it is there again after the page was left, reloaded or closed.
import { useCallback, useState } from 'react'
import { draftOf, saveDraft } from '../drafts'

/** Give the component a `key` of the place: another place is another text. */
export function useDraft(org: number, place: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => draftOf(org, place))
  const write = useCallback(
    (next: string) => {
      setText(next)
      saveDraft(org, place, next)
    },
    [org, place],
  )
  return [text, write]
}
