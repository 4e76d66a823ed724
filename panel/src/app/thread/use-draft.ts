// The state of an unsent text, which survives leaving, reloading and closing the page.
import { useCallback, useState } from 'react'
import { draftOf, saveDraft } from '../drafts'

/** Use the place as the component's `key`: each place has its own text. */
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
