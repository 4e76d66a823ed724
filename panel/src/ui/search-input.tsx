// Narrows a list by words. Waits until someone has stopped typing; the list and its address follow.
import { useEffect, useRef, useState } from 'react'
import { cx } from './cx'
import { TextInput } from './inputs'

interface Props {
  label: string
  value: string | undefined
  onValue: (value: string | undefined) => void
  className?: string
}

export function SearchInput({ label, value = '', onValue, className }: Props) {
  const [typed, setTyped] = useState(value)
  // What the address says, or will say. Coming back from there, it takes nothing from what is being typed: no blank at the
  // end, and none of the letters that have followed.
  const reported = useRef(value)
  useEffect(() => {
    if (value === reported.current) return
    reported.current = value
    setTyped(value)
  }, [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is typed starts the wait
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
      className={cx('w-full sm:w-48', className)}
      maxLength={200}
      value={typed}
      onValue={setTyped}
    />
  )
}
