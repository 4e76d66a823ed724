// A text input with suggestions: known values are offered, and others can be typed.
import { useId } from 'react'
import { TextInput } from './inputs'

interface Props {
  id?: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
  value: string
  onValue: (value: string) => void
  suggestions: readonly string[]
}

export function SuggestedInput({ suggestions, ...field }: Props) {
  const list = useId()
  // An empty list would still open.
  if (suggestions.length === 0) return <TextInput {...field} autoComplete="off" spellCheck={false} />
  return (
    <>
      <TextInput {...field} list={list} autoComplete="off" spellCheck={false} />
      <datalist id={list}>
        {suggestions.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </>
  )
}
