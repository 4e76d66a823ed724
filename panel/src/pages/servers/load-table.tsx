// The numbers of the plots: a row for each period, the newest first.

interface Props {
  label: string
  rows: { since: number; values: string[] }[]
  heads: string[]
  when: (time: number) => string
}

const CELL = 'whitespace-nowrap px-3 py-1.5'

export function LoadTable({ label, rows, heads, when }: Props) {
  return (
    <div
      role="group"
      aria-label={label}
      tabIndex={0}
      className="max-h-96 overflow-auto rounded-card border border-line"
    >
      <table className="w-full text-sm tabular-nums">
        <caption className="sr-only">{label}</caption>
        <thead className="text-muted">
          <tr>
            <th scope="col" className={`${CELL} text-left font-medium`}>
              From
            </th>
            {heads.map((head) => (
              <th key={head} scope="col" className={`${CELL} text-right font-medium`}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line border-t border-line">
          {[...rows].reverse().map(({ since, values }) => (
            <tr key={since}>
              <th scope="row" className={`${CELL} text-left font-medium`}>
                {when(since)}
              </th>
              {values.map((value, at) => (
                <td key={heads[at]} className={`${CELL} text-right`}>
                  {value}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
