// Opens the dialog that removes the cause of an approval instead of only answering it.
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { useOrg } from '../organization'
import { moneyOf } from '../spending/money'
import type { Fix } from './fix'

interface ButtonProps {
  fix: Fix
  keys?: string
  onPress: () => void
}

export function FixButton({ fix, keys, onPress }: ButtonProps) {
  const { currency } = useOrg()
  if (fix.what === 'host') {
    return (
      <Gate may="network.edit">
        <Button tip="Puts it on the list for all agents, and approves this" onClick={onPress}>
          Allow this host…
        </Button>
      </Gate>
    )
  }
  const { kind, proposed } = fix
  const amount = kind === 'money' ? moneyOf(proposed, currency) : `${proposed.toLocaleString()} tokens`
  return (
    <Gate may="organization.edit">
      <Button look="primary" keys={keys} onClick={onPress}>
        Allow {amount} more…
      </Button>
    </Gate>
  )
}
