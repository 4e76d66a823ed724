// What was spent of a month's budget.
import { Meter } from '../../ui/meter'
import { useOrg } from '../organization'
import { moneyOf } from './money'

interface Props {
  spending: { costMicro: string; allowedMicro: string; leasedMicro: string }
  /** In millionths. Null: no budget. */
  budget: number | null
}

export function SpentThisMonth({ spending, budget }: Props) {
  const { currency } = useOrg()
  const [cost, allowed, leased] = [spending.costMicro, spending.allowedMicro, spending.leasedMicro].map(
    Number,
  )
  const spent = moneyOf(cost ?? 0, currency)
  if (budget === null) return <p className="tabular-nums">{spent} this month, without a budget</p>
  const most = budget + (allowed ?? 0)
  const text = `${spent} of ${moneyOf(most, currency)} this month`
  return (
    <div className="space-y-1.5">
      <p className="tabular-nums">{text}</p>
      <Meter label="Spent of the budget" value={cost ?? 0} most={most} text={text} />
      {(allowed ?? 0) > 0 && (
        <p className="text-xs text-muted">
          {moneyOf(allowed ?? 0, currency)} of it was allowed on top of the budget of{' '}
          {moneyOf(budget, currency)}.
        </p>
      )}
      {(leased ?? 0) > 0 && (
        <p className="text-xs text-muted">
          Servers may spend {moneyOf(leased ?? 0, currency)} without asking again: by that much it can be
          exceeded.
        </p>
      )}
    </div>
  )
}
