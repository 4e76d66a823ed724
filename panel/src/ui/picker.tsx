// Chooses a record by name: no one types ids. Pass `choices` for a few, `search` to query the service.
import { type AriaAttributes, useState } from 'react'
import { useOverlays } from './overlays'

export interface Choice {
  id: number | string
  name: string
  /** Distinguishes records of the same name. */
  detail?: string | null
}

export interface PickerProps
  extends Pick<AriaAttributes, 'aria-describedby' | 'aria-invalid' | 'aria-label' | 'aria-labelledby'> {
  id?: string
  value: Choice | null
  onValue: (choice: Choice | null) => void
  choices?: Choice[]
  /** Called while the list is open. Must be stable between renders (useCallback), or it runs on each render. */
  search?: (text: string) => Promise<Choice[]>
  placeholder?: string
  /** Shown if nothing matches. */
  empty?: string
  clearable?: boolean
  disabled?: boolean
}

export function Picker(props: PickerProps) {
  const overlays = useOverlays(true)
  const [isFocused, focus] = useState(false)
  // Keep the focus in the field.
  if (overlays) return <overlays.Picker {...props} autoFocus={isFocused} />
  const { id, value, placeholder, ...rest } = props
  return (
    <input
      id={id}
      aria-label={rest['aria-label']}
      className="control"
      readOnly
      value={value?.name ?? ''}
      placeholder={placeholder}
      onFocus={() => focus(true)}
      onBlur={() => focus(false)}
    />
  )
}
