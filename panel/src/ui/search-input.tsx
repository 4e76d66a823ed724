// Filters a list by text. Debounced: the list and its address follow when typing pauses.
import { useEffect, useRef, useState } from 'react'
import { TextInput } from './inputs'

interface Props {
  label: string
  value: string | undefined
  onValue: (value: string | undefined) => void
}

export function SearchInput({ label, value = '', onValue }: Props) {
  const [typed, setTyped] = useState(value)
  // The value that the address has or will have. An update from the address must not change the typed text: neither
  // trim a trailing space nor drop newer letters.
  const reported = useRef(value)
  useEffect(() => {
    if (value === reported.current) return
    reported.current = value
    setTyped(value)
  }, [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the delay
  useEffect(() => {
    const next = typed.trim()
    if (next === reported.current) return
    const timer = setTimeout(() => {
      reported.current = next
      onValue(next || undefined)
    }, 300)
    return () => clearTimeout(timer)
  }, [typed])
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder="Search"
      className="h-7 w-48 shrink-0 rounded-full py-0 text-sm coarse:h-10 coarse:text-lg"
      maxLength={200}
      value={typed}
      onValue={setTyped}
    />
  )
}
