// A list in columns. Where space is short, beside a peek or on a phone, less important columns are hidden.
import type { ReactNode } from 'react'
import { cx } from './cx'
import { useFade } from './fade'
import { List, type ListProps } from './list'

export interface Column<Item> {
  id: string
  head: ReactNode
  cell: (item: Item) => ReactNode
  /** A CSS grid track: `2fr`, `8rem`. */
  width?: string
  /** Hidden in lists narrower than 32, 42, 56 or 64 rem. */
  from?: 'sm' | 'md' | 'lg' | 'xl'
  align?: 'end'
}

const FROM = {
  sm: 'hidden @lg:flex',
  md: 'hidden @2xl:flex',
  lg: 'hidden @4xl:flex',
  xl: 'hidden @5xl:flex',
}

/** Define `columns` outside the component or memoise them. */
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

/** `2fr` grows with weight 2; `8rem` is fixed. */
function flexOf(width = '1fr'): string {
  return width.endsWith('fr') ? `${Number.parseFloat(width)} 1 0` : `0 0 ${width}`
}
