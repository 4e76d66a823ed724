// A filter that always has a value. It looks like the filters above lists.
import { ChevronDown } from 'lucide-react'
import { pillClass } from '../../ui/button'
import { Menu } from '../../ui/menu'

interface Props<Value extends string> {
  label: string
  options: readonly { value: Value; label: string }[]
  value: Value
  onValue: (value: Value) => void
}

export function ChoiceMenu<Value extends string>({ label, options, value, onValue }: Props<Value>) {
  return (
    <Menu
      align="start"
      trigger={
        <button type="button" className={pillClass(false)}>
          {label}: {options.find((option) => option.value === value)?.label}
          <ChevronDown size={13} aria-hidden />
        </button>
      }
      entries={options.map((option) => ({
        label: option.label,
        checked: option.value === value,
        onSelect: () => onValue(option.value),
      }))}
    />
  )
}
