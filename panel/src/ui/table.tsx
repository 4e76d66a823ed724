// A list in columns. Where there is little room, beside a peek or on a phone, the columns that matter less go.
import type { ReactNode } from 'react'
import { cx } from './cx'
import { useFade } from './fade'
import { List, type ListProps } from './list'

export interface Column<Item> {
  id: string
  head: ReactNode
  cell: (item: Item) => ReactNode
  /** A part of CSS's grid-template-columns: `2fr`, `8rem`. */
  width?: string
  /** Where the list itself is narrower than 32, 42, 56 or 64 rem it is not shown. */
  from?: 'sm' | 'md' | 'lg' | 'xl'
  align?: 'end'
}

const FROM = {
  sm: 'hidden @lg:flex',
  md: 'hidden @2xl:flex',
  lg: 'hidden @4xl:flex',
  xl: 'hidden @5xl:flex',
}

/** Give `columns` once, outside of the component or memoised. */
export function Table<Item>({
  columns,
  ...list
}: Omit<ListProps<Item>, 'row' | 'head'> & { columns: Column<Item>[] }) {
  const cells = (content: (column: Column<Item>) => ReactNode, role: 'gridcell' | 'columnheader') =>
    columns.map((column) => (
      <Cell key={column.id} role={role} column={column as Column<never>}>
        {content(column)}
      </Cell>
    ))
  return (
    <div className="@container flex min-h-0 grow flex-col">
      <List
        {...list}
        row={(item) => (
          <div className="flex min-h-row items-center gap-4 px-4 py-1 sm:px-6">
            {cells((column) => column.cell(item), 'gridcell')}
          </div>
        )}
        head={
          <div role="rowgroup" className="sticky top-0 z-[1] border-b border-line bg-canvas">
            <div
              role="row"
              tabIndex={-1}
              className="flex h-8 items-center gap-4 px-4 text-xs font-medium text-muted sm:px-6"
            >
              {cells((column) => column.head, 'columnheader')}
            </div>
          </div>
        }
      />
    </div>
  )
}

interface CellProps {
  role: 'gridcell' | 'columnheader'
  column: Column<never>
  children: ReactNode
}

function Cell({ role, column: { width, from, align }, children }: CellProps) {
  const ref = useFade<HTMLDivElement>()
  return (
    <div
      ref={ref}
      role={role}
      style={{ flex: flexOf(width) }}
      className={cx(
        'min-w-0 items-center rounded-control',
        from ? FROM[from] : 'flex',
        align === 'end' && 'justify-end text-right',
      )}
    >
      {children}
    </div>
  )
}

/** `2fr` → grows twice; `8rem` → stays. */
function flexOf(width = '1fr'): string {
  return width.endsWith('fr') ? `${Number.parseFloat(width)} 1 0` : `0 0 ${width}`
}
