// Narrows a list by words. Waits until somebody has stopped typing; the list and its address follow.
import { useEffect, useState } from 'react'
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
  useEffect(() => setTyped(value), [value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is typed starts the wait
  useEffect(() => {
    if (typed === value) return
    const timer = setTimeout(() => onValue(typed.trim() || undefined), 300)
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
