// The current model prices. The installation defines them, so they are read-only.
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Panel } from '../../ui/panel'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'

const PricesQuery = graphql(`
  query ModelPrices($orgId: Id!) {
    modelPrices(orgId: $orgId) { model currency input output cacheRead cacheWrite since }
  }
`)

export function Prices() {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: PricesQuery,
    variables: { orgId },
    on: ['ORGANIZATION'],
  })
  const prices = data?.modelPrices
  const isFine = prices?.some(({ input, output, cacheRead, cacheWrite }) =>
    [input, output, cacheRead, cacheWrite].some((micro) => Number(micro) % 10_000 !== 0),
  )
  const digits = isFine ? 4 : 2
  return (
    <Panel
      title="Prices"
      about="The price of a million tokens. The installation’s operator maintains the list. Where a budget is set, models without a price are refused."
    >
      {error && !prices ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !prices ? (
        <ListSkeleton />
      ) : prices.length === 0 ? (
        <p className="rounded-card border border-line p-4 text-muted">
          No price is known in the organization’s currency, so what calls cost is unknown.
        </p>
      ) : (
        <div
          className="overflow-x-auto rounded-card border border-line"
          role="group"
          aria-label="Prices of models"
          tabIndex={0}
        >
          <table className="w-full text-sm tabular-nums">
            <thead className="text-left text-muted">
              <tr>
                {HEADS.map((head, index) => (
                  <th key={head} scope="col" className={index === 0 ? 'px-3 py-2 font-medium' : NUMBER}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody className="divide-y divide-line border-t border-line">
              {prices.map((price) => (
                <tr key={`${price.model} ${price.since}`}>
                  <th scope="row" className="min-w-40 px-3 py-2 text-left font-medium">
                    {price.model}
                  </th>
                  <td className={NUMBER}>{amount(price.input, digits)}</td>
                  <td className={NUMBER}>{amount(price.output, digits)}</td>
                  <td className={NUMBER}>{amount(price.cacheRead ?? price.input, digits)}</td>
                  <td className={NUMBER}>{amount(price.cacheWrite ?? price.input, digits)}</td>
                  <td className={NUMBER}>{price.currency}</td>
                  <td className={NUMBER}>{price.since}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}

const HEADS = ['Model', 'Read', 'Written', 'From the cache', 'Into the cache', 'Currency', 'Since']
const NUMBER = 'whitespace-nowrap px-3 py-2 text-right'

/** A price; the service sends millionths. All prices of the list have the same digits. */
const amount = (micro: string, digits: number) =>
  (Number(micro) / 1_000_000).toLocaleString(undefined, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
