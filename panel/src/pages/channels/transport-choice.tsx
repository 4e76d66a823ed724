// Chooses a new channel's transport, and lists the first steps at its vendor.
import { Field } from '../../ui/field'
import { Guide } from './guide'
import { TRANSPORT_NAMES, TRANSPORTS, type Transport } from './transports'

interface Props {
  value: Transport
  onValue: (value: Transport) => void
}

export function TransportChoice({ value, onValue }: Props) {
  return (
    <>
      <Field label="Transport">
        <select
          value={value}
          onChange={(event) => onValue(event.target.value as Transport)}
          className="control"
        >
          {TRANSPORT_NAMES.map((each) => (
            <option key={each.value} value={each.value}>
              {each.label}
            </option>
          ))}
        </select>
      </Field>
      <div className="rounded-card bg-sunken px-4 py-3 text-sm">
        <ol className="list-decimal space-y-1 pl-4">
          {TRANSPORTS[value].setup.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
        <p className="mt-2">
          <Guide transport={value} />
        </p>
      </div>
    </>
  )
}
