// Reads out what has come, for those who hear the page: the first at once, then at most every few seconds, with all that
// came meanwhile in one sentence. Polite: it waits until what is being read is over.
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { paced } from '../api/live'

const GAP_MS = 5_000

/** `wordsOf` says what came in a sentence. Show the region; call the function with what has come. */
export function useAnnounced<Item>(wordsOf: (items: Item[]) => string): [ReactNode, (come: Item[]) => void] {
  const [said, say] = useState({ turn: 0, text: '' })
  const words = useRef(wordsOf)
  words.current = wordsOf
  const waiting = useRef<Item[]>([])
  const ask = useRef(() => {})
  useEffect(() => {
    const speak = async () => {
      const text = words.current(waiting.current.splice(0))
      say(({ turn }) => ({ turn: turn + 1, text }))
      return true
    }
    const pace = paced(speak, GAP_MS)
    ask.current = pace.ask
    return pace.stop
  }, [])
  // Anyone who reads the page later no longer meets it. What has come in the same moment stays.
  useEffect(() => {
    if (!said.text) return
    const timer = setTimeout(() => say((now) => (now === said ? { ...now, text: '' } : now)), GAP_MS)
    return () => clearTimeout(timer)
  }, [said])
  const announce = useCallback((come: Item[]) => {
    if (come.length === 0) return
    waiting.current.push(...come)
    ask.current()
  }, [])
  // Another element each time: the same words twice are read twice.
  const region = (
    <p role="status" className="sr-only">
      <span key={said.turn}>{said.text}</span>
    </p>
  )
  return [region, announce]
}
