// Announces arrivals to screen readers: the first at once, later ones combined into one sentence every few seconds.
// Polite: it never interrupts.
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { paced } from '../api/live'

const GAP_MS = 5_000

/** `wordsOf` describes the arrivals in one sentence. Render the region; call the function with each arrival. */
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
  // Clear the text, so that later visitors do not read it. Keep arrivals from the same moment.
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
  // A new element each time, so that repeated text is read again.
  const region = (
    <p role="status" className="sr-only">
      <span key={said.turn}>{said.text}</span>
    </p>
  )
  return [region, announce]
}
