// One field of a transport, whatever it holds.
import type { ReactElement } from 'react'
import { Checkbox } from '../../ui/choices'
import { NumberInput, Select, TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { type SecretEdit, SecretField } from '../../ui/secret-field'
import type { FieldSpec } from './transports'

interface Props {
  field: FieldSpec
  value: unknown
  onValue: (value: unknown) => void
  /** Whether the service has the secret. */
  isSet?: boolean
  error?: string | null
  /** Puts label, hint and error around a control. */
  wrap: (control: ReactElement<{ id?: string }>) => ReactElement
}

export function TransportField({ field, value, onValue, isSet = false, error, wrap }: Props) {
  switch (field.kind) {
    case 'secret':
      return (
        <SecretField
          label={field.label}
          hint={isSet ? undefined : field.hint}
          isSet={isSet}
          edit={value as SecretEdit}
          onEdit={onValue}
          removable={field.optional ?? false}
          error={error}
        />
      )
    case 'flag':
      return <Checkbox label={field.label} checked={value === true} onChecked={onValue} />
    case 'lines':
      return wrap(<LinesInput value={value as string[]} onValue={onValue} placeholder={field.placeholder} />)
    case 'number':
      return wrap(
        <NumberInput
          value={value as number | null}
          onValue={onValue}
          unit={field.unit}
          className="max-w-52"
        />,
      )
    case 'choice':
      return wrap(<Select value={value as string} onValue={onValue} options={field.options} />)
    default:
      return wrap(
        <TextInput
          value={(value as string | null) ?? ''}
          onValue={(text) => onValue(text === '' && field.optional ? null : text)}
          placeholder={field.placeholder}
          autoComplete="off"
          spellCheck={false}
        />,
      )
  }
}
