// Chooses one record by name: no one types an id. Give `choices` for few, `search` for what the service knows.
import { type AriaAttributes, useState } from 'react'
import { useOverlays } from './overlays'

export interface Choice {
  id: number | string
  name: string
  /** What tells it from others of the same name. */
  detail?: string | null
}

export interface PickerProps
  extends Pick<AriaAttributes, 'aria-describedby' | 'aria-invalid' | 'aria-label' | 'aria-labelledby'> {
  id?: string
  value: Choice | null
  onValue: (choice: Choice | null) => void
  choices?: Choice[]
  /** Asked while the list is open. Stable between renders (useCallback), or it is asked again each time. */
  search?: (text: string) => Promise<Choice[]>
  placeholder?: string
  /** What to say if nothing is found. */
  empty?: string
  clearable?: boolean
  disabled?: boolean
}

export function Picker(props: PickerProps) {
  const overlays = useOverlays(true)
  const [isFocused, focus] = useState(false)
  // The focus stays in the field.
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
