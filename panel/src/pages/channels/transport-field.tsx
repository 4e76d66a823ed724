// One field of a transport, of any type.
import { Checkbox } from '../../ui/choices'
import { Field } from '../../ui/field'
import { NumberInput, Select, TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { type SecretEdit, SecretField } from '../../ui/secret-field'
import { TokensField } from './tokens-field'
import type { FieldSpec } from './transports'

interface Props {
  field: FieldSpec
  value: unknown
  onValue: (value: unknown) => void
  /** Whether the service has the secret. */
  isSet?: boolean
  error?: string | null
}

export function TransportField(props: Props) {
  const { field, value, onValue, isSet = false, error } = props
  switch (field.kind) {
    case 'secret':
      return field.parts ? (
        <TokensField
          parts={field.parts}
          isSet={isSet}
          edit={value as SecretEdit}
          onEdit={onValue}
          error={error}
        />
      ) : (
        <SecretField
          label={field.label}
          hint={isSet ? undefined : field.hint}
          isSet={isSet}
          edit={value as SecretEdit}
          onEdit={onValue}
          removable={field.optional ?? false}
          optional={field.optional}
          error={error}
        />
      )
    case 'flag':
      return <Checkbox label={field.label} checked={value === true} onChecked={onValue} error={error} />
    default:
      return (
        <Field label={field.label} hint={field.hint} optional={field.optional} error={error}>
          {controlOf(props)}
        </Field>
      )
  }
}

function controlOf({ field, value, onValue }: Props) {
  switch (field.kind) {
    case 'lines':
      return <LinesInput value={value as string[]} onValue={onValue} placeholder={field.placeholder} />
    case 'choice':
      return <Select value={value as string} onValue={onValue} options={field.options} />
    case 'number':
      return <NumberInput value={value as number | null} onValue={onValue} className="max-w-52" />
    default:
      return (
        <TextInput
          value={(value as string | null) ?? ''}
          onValue={(text) => onValue(text === '' && field.optional ? null : text)}
          placeholder={field.placeholder}
          autoComplete="off"
          spellCheck={false}
        />
      )
  }
}
