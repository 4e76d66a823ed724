// The spent share of a month's budget.
import { type ActOptions, useAct } from '../../api/use-act'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { Meter } from '../../ui/meter'
import { useOrg } from '../organization'
import { AllowSpending } from './allow-more'
import { moneyOf } from './money'

interface Props {
  spending: { costMicro: string; allowedMicro: string; leasedMicro: string }
  /** In millionths. Null: no budget. */
  budget: number | null
  /** The agent. Undefined: the whole organization. */
  agentId?: number
}

export function SpentThisMonth({ spending, budget, agentId }: Props) {
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
          {moneyOf(budget, currency)}. <WithdrawAllowance micro={allowed ?? 0} agentId={agentId} />
        </p>
      )}
      {(leased ?? 0) > 0 && (
        <p className="text-xs text-muted">
          Servers may spend {moneyOf(leased ?? 0, currency)} without asking again: the budget can be exceeded
          by that much.
        </p>
      )}
    </div>
  )
}

/** Withdraws an additional allowance. */
function WithdrawAllowance({ micro, agentId }: { micro: number; agentId?: number }) {
  const org = useOrg()
  const allow = useAct(AllowSpending)
  const give = (costMicro: number, options?: ActOptions) =>
    allow({ orgId: org.id, input: { agentId, costMicro } }, options)
  const said = `Withdrew ${moneyOf(micro, org.currency)}`
  return (
    <Gate may="organization.edit">
      <Button
        size="sm"
        look="quiet"
        busy={allow.pending}
        onClick={() => give(-micro, { said, undo: () => give(micro) })}
      >
        Withdraw it
      </Button>
    </Gate>
  )
}
