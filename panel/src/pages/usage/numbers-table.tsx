// The numbers of the plot: a row for each day with some, the newest first.
import { Visible } from '../../ui/visible'
import type { Series } from './series'

interface Props {
  label: string
  days: string[]
  series: Series[]
  format: (value: number) => string
}

const NUMBER = 'whitespace-nowrap px-3 py-1.5 text-right'
const sum = (values: number[]) => values.reduce((all, value) => all + value, 0)

export function NumbersTable({ label, days, series, format }: Props) {
  const lines = days
    .map((day, at) => ({ day, values: series.map(({ values }) => values[at] ?? 0) }))
    .filter(({ values }) => values.some((value) => value > 0))
    .reverse()
  return (
    <div
      role="group"
      aria-label={label}
      tabIndex={0}
      className="overflow-x-auto rounded-card border border-line"
    >
      <table className="w-full text-sm tabular-nums">
        <caption className="sr-only">{label}</caption>
        <thead className="text-muted">
          <tr>
            <th scope="col" className="px-3 py-1.5 text-left font-medium">
              Day
            </th>
            {series.map(({ id, label }) => (
              <th
                key={id}
                scope="col"
                className="min-w-24 max-w-40 px-3 py-1.5 text-right align-bottom font-medium"
              >
                <Visible text={label} />
              </th>
            ))}
            <th scope="col" className={`${NUMBER} font-medium`}>
              Total
            </th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line border-t border-line">
          {lines.map(({ day, values }) => (
            <tr key={day}>
              <th scope="row" className="whitespace-nowrap px-3 py-1.5 text-left font-medium">
                {day}
              </th>
              {series.map(({ id }, at) => (
                <td key={id} className={NUMBER}>
                  {format(values[at] ?? 0)}
                </td>
              ))}
              <td className={`${NUMBER} font-medium`}>{format(sum(values))}</td>
            </tr>
          ))}
        </tbody>
        <tfoot className="border-t border-line font-medium">
          <tr>
            <th scope="row" className="px-3 py-1.5 text-left">
              All days
            </th>
            {series.map(({ id, total }) => (
              <td key={id} className={NUMBER}>
                {format(total)}
              </td>
            ))}
            <td className={NUMBER}>{format(sum(series.map(({ total }) => total)))}</td>
          </tr>
        </tfoot>
      </table>
    </div>
  )
}
