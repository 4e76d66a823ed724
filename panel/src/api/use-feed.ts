// Reads long lists: cursor pages as one list that stays up to date.
import type { AnyVariables, CombinedError, TypedDocumentNode } from '@urql/core'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useClient } from 'urql'
import { pipe, subscribe } from 'wonka'
import { isRetryable } from './errors'
import { concerns, type Interest, onChange, paced } from './live'
import { readFresh } from './requests'

/** The service's maximum page size. */
const MAX_PAGE = 200
const FIRST = 50

export interface Page<Item> {
  data: readonly Item[]
  next: string | null
  total?: number
}

export interface Feed<Item> {
  items: Item[]
  /** Identifies the query: changes with the variables, once the new answer is there. */
  question: string
  total: number | undefined
  /** There is nothing to show yet. */
  loading: boolean
  /** More pages exist; `loadMore` reads the next one. */
  hasMore: boolean
  loadMore: () => void
  error: CombinedError | undefined
  refetch: () => void
}

interface Options<Data, Variables extends AnyVariables, Item> {
  /** Takes `$after: String` and `$limit: Int` in addition to its own variables. */
  query: TypedDocumentNode<Data, Variables & { after?: string | null; limit?: number | null }>
  variables: Variables
  pageOf: (data: Data) => Page<Item> | null
  idOf: (item: Item) => number | string
  on: Interest
}

interface State<Item> {
  key: string
  pages: { after: string | null; limit: number; page: Page<Item> }[]
  error: CombinedError | undefined
}

export function useFeed<Data, Variables extends AnyVariables, Item>(
  options: Options<Data, Variables, Item>,
): Feed<Item> {
  const client = useClient()
  const latest = useRef(options)
  latest.current = options
  const key = JSON.stringify(options.variables)
  const [state, setState] = useState<State<Item>>({ key, pages: [], error: undefined })
  const wanted = useRef(FIRST)
  const now = useRef({ more: () => {}, again: () => {} })

  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for the variables
  useEffect(() => {
    let alive = true
    let unfollow: (() => void)[] = []
    let pages: State<Item>['pages'] = []
    // The data may be out of date: read from the top.
    let isOld = true
    // Pages are being read: until all are, the cache may have refreshed only some of them.
    let isReading = false
    wanted.current = FIRST
    const { query } = options
    const variablesOf = (after: string | null, limit: number) => ({
      ...latest.current.variables,
      after,
      limit,
    })

    // Reads the missing pages at the end or, after a change, all pages from the top, so that they neither overlap nor
    // leave a gap.
    const read = async () => {
      isReading = true
      const found = isOld ? [] : [...pages]
      isOld = false
      let missing = wanted.current - asked(found)
      let after = found.at(-1)?.page.next ?? null
      while (missing > 0 && alive && (after || found.length === 0)) {
        const limit = Math.min(MAX_PAGE, missing)
        const result: { data?: Data; error?: CombinedError } = await readFresh(
          client,
          query,
          variablesOf(after, limit),
        )
        const page: Page<Item> | null = result.data ? latest.current.pageOf(result.data) : null
        if (!alive) return true
        if (!page) {
          isOld = true
          isReading = false
          setState((before) => ({
            key,
            pages: before.key === key ? before.pages : [],
            error: result.error,
          }))
          return !isRetryable(result.error)
        }
        found.push({ after, limit, page })
        // An empty page is not the end: a search may skip items that do not match.
        if (page.data.length > 0) missing -= limit
        after = page.next
      }
      if (!alive) return true
      isReading = false
      pages = found
      setState({ key, pages, error: undefined })
      follow()
      return true
    }
    // Changes made elsewhere in the panel show at once: the cache updates the displayed pages.
    const follow = () => {
      for (const stop of unfollow) stop()
      unfollow = pages.map(({ after, limit }, index) => {
        const followed = client.query(query, variablesOf(after, limit) as never, {
          requestPolicy: 'cache-only',
        })
        const sink = subscribe(({ data }: { data?: Data }) => {
          const page = data ? latest.current.pageOf(data) : null
          const before = pages[index]?.page
          if (!alive || !page || !before || before === page) return
          // A row that moved to the next page would be missing from both until that page is read.
          if (isReading && !hasSameRows(before, page, latest.current.idOf)) return
          pages = pages.with(index, { after, limit, page })
          setState({ key, pages, error: undefined })
        })
        return pipe(followed, sink).unsubscribe
      })
    }
    const pace = paced(read, 300)
    const again = () => {
      isOld = true
      pace.ask()
    }
    // One page at a time, however often the end is reached.
    const more = () => {
      wanted.current = asked(pages) + FIRST * 2
      pace.ask()
    }
    now.current = { more, again }
    pace.ask()
    const stop = onChange((change) => concerns(latest.current.on, change), again)
    return () => {
      alive = false
      stop()
      pace.stop()
      for (const end of unfollow) end()
    }
  }, [client, options.query, key])

  const items = useMemo(
    () =>
      distinct(
        state.pages.flatMap(({ page }) => page.data),
        options.idOf,
      ),
    [state.pages, options.idOf],
  )
  const last = state.pages.at(-1)?.page
  const loadMore = useCallback(() => now.current.more(), [])
  return {
    items,
    question: state.key,
    total: state.pages[0]?.page.total,
    loading: state.pages.length === 0 && !state.error,
    hasMore: Boolean(last?.next),
    loadMore,
    error: state.error,
    refetch: useCallback(() => now.current.again(), []),
  }
}

/** How many items were requested. */
const asked = (pages: readonly { limit: number }[]) => pages.reduce((sum, { limit }) => sum + limit, 0)

function hasSameRows<Item>(
  one: Page<Item>,
  other: Page<Item>,
  idOf: (item: Item) => number | string,
): boolean {
  const ids = other.data.map(idOf)
  return one.data.length === ids.length && one.data.every((item, at) => idOf(item) === ids[at])
}

function distinct<Item>(items: Item[], idOf: (item: Item) => number | string): Item[] {
  const seen = new Set<number | string>()
  return items.filter((item) => {
    const id = idOf(item)
    if (seen.has(id)) return false
    seen.add(id)
    return true
  })
}
