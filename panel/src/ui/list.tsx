// A virtual list of records: a thousand rows cost as much as thirty. J/K and the arrows move, Enter opens the record
// beside the list, Mod+Enter on its own page. The order is frozen while someone works in the list or has scrolled down.

import type { LinkProps } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import {
  type ReactNode,
  type Ref,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { useActions } from '../keys/use-actions'
import { Button } from './button'
import { cx } from './cx'
import { focusRow, isFocusFree, isInHand } from './list-focus'
import { isInteractive, useOpen } from './list-open'
import type { Selection } from './use-selection'
import { useStableOrder } from './use-stable-order'

export interface ListHandle {
  /** The focus is in the list or nowhere, so it may be moved. */
  isFocusFree: () => boolean
  /** Moves to a row like J and K. The focus follows if it may be moved. */
  goTo: (id: string | number) => void
}

export interface ListProps<Item> {
  label: string
  items: Item[]
  idOf: (item: Item) => string | number
  row: (item: Item, state: { active: boolean; open: boolean }) => ReactNode
  /** The accessible name of an item. */
  nameOf: (item: Item) => string
  /** The link to the item's own page. */
  linkOf?: (item: Item) => LinkProps
  /** Opens the item beside the list. By default Enter opens its page. */
  onOpen?: (item: Item) => void
  /** The item that is open beside the list. */
  openId?: string | number | null
  /** The active row changed: with a record open, J/K step through the list. */
  onActive?: (item: Item) => void
  /** A row received the focus. */
  onMark?: (item: Item) => void
  /** Reports the rendered items in order, before painting. New items may be held back while the order is frozen. */
  onShown?: (items: Item[]) => void
  handle?: Ref<ListHandle>
  rowHeight?: number
  selection?: Selection
  /**
   * Identifies the query: filters, order, page. A new one starts at the top. If set, the order is also frozen for
   * anyone who has scrolled down.
   */
  question?: string
  /** Called near the end, to load the next page. */
  onEnd?: () => void
  hasMore?: boolean
  /** Rendered above the rows; scrolls sideways with them. */
  head?: ReactNode
  /** Shown instead of rows. */
  empty?: ReactNode
}

export function List<Item>(props: ListProps<Item>) {
  return <Rows key={props.question} {...props} />
}

function Rows<Item>(props: ListProps<Item>) {
  const {
    label,
    idOf,
    row,
    nameOf,
    linkOf,
    onOpen,
    openId,
    onActive,
    onMark,
    onShown,
    handle,
    rowHeight = 44,
    selection,
    onEnd,
    hasMore,
    head,
    empty,
  } = props
  const box = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const isInUse = () => {
    const isDown = props.question !== undefined && (scroller.current?.scrollTop ?? 0) > 0
    return isDown || isInHand(box.current)
  }
  const { items, waiting, settle, refresh } = useStableOrder(props.items, idOf, isInUse, openId)
  useLayoutEffect(() => {
    onShown?.(items)
    return () => onShown?.([])
  }, [onShown, items])
  const [activeId, setActiveId] = useState<string | number | null>(null)
  const active = Math.max(
    0,
    items.findIndex((item) => idOf(item) === activeId),
  )
  const open = useOpen(linkOf)

  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => (items[index] === undefined ? index : idOf(items[index])),
    overscan: 12,
  })
  const rows = virtual.getVirtualItems()
  const lastShown = rows.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasMore && lastShown >= items.length - 15) onEnd?.()
  }, [hasMore, lastShown, items.length, onEnd])

  // J and K continue from a record that was opened elsewhere.
  const shownOpen = useRef<string | number | null | undefined>(null)
  useEffect(() => {
    if (openId === shownOpen.current) return
    const index = items.findIndex((item) => idOf(item) === openId)
    // A record that was just created comes with the next answer.
    if (index < 0) {
      shownOpen.current = null
      return
    }
    shownOpen.current = openId
    // The active row is in view and must not move under a pressed pointer.
    if (openId == null || openId === activeId) return
    setActiveId(openId)
    virtual.scrollToIndex(index)
  }, [openId, activeId, items, idOf, virtual])

  const activate = (index: number, focus: boolean) => {
    const item = items[index]
    if (item === undefined) return
    setActiveId(idOf(item))
    virtual.scrollToIndex(index)
    // Immediately, since the next key is for this row. A row that is not rendered yet exists in the next frame.
    if (focus && !focusRow(scroller.current, index))
      requestAnimationFrame(() => focusRow(scroller.current, index))
    onActive?.(item)
  }
  useImperativeHandle(handle, () => ({
    isFocusFree: () => isFocusFree(scroller.current),
    goTo: (id) =>
      activate(
        items.findIndex((item) => idOf(item) === id),
        isFocusFree(scroller.current),
      ),
  }))
  const step = (by: number) =>
    activate(activeId === null ? 0 : Math.max(0, Math.min(items.length - 1, active + by)), true)
  const current = () => items[active]
  const toggle = (range: boolean) => {
    const item = current()
    if (item !== undefined && selection) selection.toggle(idOf(item), range ? items.map(idOf) : undefined)
  }
  useActions([
    {
      id: 'list.next',
      label: 'Next',
      group: 'List',
      keys: ['j', 'arrowdown'],
      hidden: true,
      run: () => step(1),
    },
    {
      id: 'list.previous',
      label: 'Previous',
      group: 'List',
      keys: ['k', 'arrowup'],
      hidden: true,
      run: () => step(-1),
    },
    linkOf && {
      id: 'list.page',
      label: 'Open on its own page',
      group: 'List',
      keys: 'mod+enter',
      hidden: true,
      run: () => current() !== undefined && open.page(current() as Item),
    },
    selection && {
      id: 'list.select',
      label: 'Select',
      group: 'List',
      keys: 'x',
      hidden: true,
      run: () => toggle(false),
    },
    selection && {
      id: 'list.select-range',
      label: 'Select up to here',
      group: 'List',
      keys: 'shift+x',
      hidden: true,
      run: () => toggle(true),
    },
    selection && {
      id: 'list.select-all',
      label: 'Select all',
      group: 'List',
      keys: 'mod+shift+a',
      run: () => selection.all(items.map(idOf)),
    },
  ])

  if (items.length === 0 && waiting === 0) return <div className="min-h-0 grow overflow-y-auto">{empty}</div>
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: not operable, only tracks the pointer
    <div
      ref={box}
      className="relative flex min-h-0 grow flex-col"
      onPointerEnter={settle}
      onPointerLeave={settle}
      onFocus={settle}
      onBlur={() => requestAnimationFrame(settle)}
    >
      {waiting > 0 && (
        <div className={cx('arrive absolute inset-x-0 z-10 flex justify-center', head ? 'top-10' : 'top-2')}>
          <Button size="sm" look="primary" className="rounded-full shadow-raised" onClick={refresh}>
            {waiting === 1 ? '1 changed' : `${waiting} changed`}, refresh the order
          </Button>
        </div>
      )}
      <div
        ref={scroller}
        role="grid"
        aria-label={label}
        aria-rowcount={hasMore ? -1 : items.length}
        aria-multiselectable={selection ? true : undefined}
        className="min-h-0 grow overflow-auto overscroll-contain"
        onScroll={settle}
      >
        {head}
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {rows.map(({ index, start, key }) => {
            const item = items[index]
            if (item === undefined) return null
            const id = idOf(item)
            const isActive = index === active
            const isOpen = id === openId
            const selected = selection?.has(id) ?? false
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                role="row"
                aria-rowindex={index + 1}
                aria-label={nameOf(item)}
                aria-selected={selection ? selected : isOpen || undefined}
                tabIndex={isActive ? 0 : -1}
                onFocus={() => {
                  setActiveId(id)
                  onMark?.(item)
                }}
                onKeyDown={(event) => {
                  if (event.target !== event.currentTarget || (event.key !== 'Enter' && event.key !== ' '))
                    return
                  if (event.ctrlKey || event.metaKey) return
                  event.preventDefault()
                  if (onOpen) onOpen(item)
                  else open.here(item)
                }}
                onClick={(event) => {
                  if (isInteractive(event.target, event.currentTarget) || getSelection()?.toString()) return
                  setActiveId(id)
                  if (selection && event.shiftKey) selection.toggle(id, items.map(idOf))
                  else if (event.ctrlKey || event.metaKey) open.page(item)
                  else if (onOpen) onOpen(item)
                  else open.here(item)
                }}
                onAuxClick={(event) => {
                  if (event.button === 1 && !isInteractive(event.target, event.currentTarget)) open.page(item)
                }}
                style={{ position: 'absolute', insetInline: 0, transform: `translateY(${start}px)` }}
                className={cx(
                  'cursor-pointer border-b border-line -outline-offset-2 hover:bg-hover',
                  (isOpen || selected) && 'bg-selected hover:bg-selected',
                )}
              >
                {row(item, { active: isActive, open: isOpen })}
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}
