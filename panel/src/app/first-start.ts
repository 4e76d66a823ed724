// Whether the installation waits for its first person: signing in leads to the page that makes one.
import { useQuery } from 'urql'
import { graphql } from '../api/graphql'

const FirstStartQuery = graphql(`query FirstStart { firstStart { isOpen } }`)

/** `isOpen` is null until known, and if it can't be read. */
export function useFirstStart(): { isOpen: boolean | null; loading: boolean } {
  const [{ data, fetching }] = useQuery({ query: FirstStartQuery, requestPolicy: 'cache-first' })
  return { isOpen: data?.firstStart?.isOpen ?? null, loading: fetching }
}
