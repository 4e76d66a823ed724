// An amount of money, typed in the organization's currency and stored in millionths.
import { useState } from 'react'
import { NumberInput } from '../../ui/inputs'
import { useOrg } from '../organization'
import { amountOf, microOf } from './money'

interface Props {
  id?: string
  'aria-describedby'?: string
  'aria-invalid'?: boolean
  /** In millionths. NaN: the text is not an amount. */
  value: number | null
  onValue: (micro: number | null) => void
}

export function MoneyInput({ value, onValue, ...field }: Props) {
  const { currency } = useOrg()
  // Text that is not an amount is kept here, or the zero on the way to 0.5 would vanish.
  const [typed, setTyped] = useState<number | null>(null)
  return (
    <NumberInput
      {...field}
      unit={currency}
      value={value !== null && Number.isNaN(value) ? typed : amountOf(value)}
      onValue={(amount) => {
        setTyped(amount)
        onValue(microOf(amount))
      }}
    />
  )
}
