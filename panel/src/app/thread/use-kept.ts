// A text that is typed and not sent yet: it is there again after the page was left, reloaded or closed.
import { useCallback, useState } from 'react'
import { keep, keptOf } from '../kept'

/** Give the component a `key` of the place: another place is another text. */
export function useKept(org: number, place: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => keptOf(org, place))
  const write = useCallback(
    (next: string) => {
      setText(next)
      keep(org, place, next)
    },
    [org, place],
  )
  return [text, write]
}
