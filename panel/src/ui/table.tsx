// A list in columns. Where space is short, beside a peek or on a phone, less important columns are hidden.
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
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
  /** The service's sort key: the head of the column selects it. */
  sort?: string
}

/** The order of a list that the service sorts. */
export interface Sorting {
  by: string
  isDescending?: boolean
  onSort: (by: string) => void
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
  sorting,
  ...list
}: Omit<ListProps<Item>, 'row' | 'head'> & { columns: Column<Item>[]; sorting?: Sorting }) {
  const cells = (content: (column: Column<Item>) => ReactNode, role: 'gridcell' | 'columnheader') =>
    columns.map((column) => (
      <Cell
        key={column.id}
        role={role}
        column={column as Column<never>}
        sorting={role === 'columnheader' ? sorting : undefined}
      >
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
              {cells(
                ({ sort, head }) =>
                  sort && sorting ? (
                    <SortButton list={list.label} sort={sort} sorting={sorting}>
                      {head}
                    </SortButton>
                  ) : (
                    head
                  ),
                'columnheader',
              )}
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
  sorting?: Sorting
  children: ReactNode
}

function Cell({ role, column: { width, from, align, sort }, sorting, children }: CellProps) {
  const ref = useFade<HTMLDivElement>()
  const isSorted = sorting !== undefined && sorting.by === sort
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: only a columnheader is sorted
    <div
      ref={ref}
      role={role}
      aria-sort={isSorted ? (sorting.isDescending ? 'descending' : 'ascending') : undefined}
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

/** The head that was pressed. The list is rendered again in its order, and the head gets the focus back. */
let pressed: string | null = null

interface SortButtonProps {
  list: string
  sort: string
  sorting: Sorting
  children: ReactNode
}

function SortButton({ list, sort, sorting, children }: SortButtonProps) {
  const button = useRef<HTMLButtonElement>(null)
  const id = `${list} ${sort}`
  useEffect(() => {
    if (pressed !== id || document.activeElement !== document.body) return
    pressed = null
    button.current?.focus()
  }, [id])
  const Arrow = sorting.isDescending ? ArrowDown : ArrowUp
  return (
    <button
      ref={button}
      type="button"
      onClick={() => {
        pressed = id
        sorting.onSort(sort)
      }}
      className="flex min-h-6 min-w-0 items-center gap-1 rounded-control hover:text-ink coarse:min-h-11"
    >
      <span className="truncate">{children}</span>
      {sorting.by === sort && <Arrow size={12} aria-hidden className="shrink-0" />}
    </button>
  )
}

/** `2fr` grows with weight 2; `8rem` is fixed. */
function flexOf(width = '1fr'): string {
  return width.endsWith('fr') ? `${Number.parseFloat(width)} 1 0` : `0 0 ${width}`
}
