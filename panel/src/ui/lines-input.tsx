// A list of short texts, one per line.
import { useState } from 'react'
import { TextArea } from './inputs'

interface Props {
  id?: string
  value: readonly string[]
  onValue: (value: string[]) => void
  placeholder?: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
}

export function LinesInput({ value, onValue, ...rest }: Props) {
  const [text, setText] = useState(value.join('\n'))
  // After someone else's change, or "Discard", show the new value. A line being typed may still be empty.
  const shown = same(linesOf(text), value) ? text : value.join('\n')
  return (
    <TextArea
      {...rest}
      rows={2}
      maxRows={10}
      spellCheck={false}
      className="font-mono text-sm"
      value={shown}
      onValue={(typed) => {
        setText(typed)
        onValue(linesOf(typed))
      }}
    />
  )
}

const linesOf = (text: string) => text.split('\n').filter((line) => line.trim() !== '')
const same = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((line, index) => line === b[index])
