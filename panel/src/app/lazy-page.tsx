// A lazily loaded page or part of a page. The router's own wrapper reloads everything if a chunk fails to load, which
// leaves an empty page while the service is down. This one reports the failure inside the shell and tries again.
import { CombinedError } from '@urql/core'
import { type ComponentType, useEffect, useState } from 'react'
import { connectionNow, onReturn } from '../api/connection'
import { ProblemView } from '../ui/problem'
import { ListSkeleton } from '../ui/skeleton'

const NO_ANSWER = new CombinedError({ networkError: new Error('offline') })

interface Chunk {
  // `lazyPage` supplies its props.
  page?: ComponentType<object>
  failure?: unknown
  fetch: () => Promise<void>
}

/** `lazyPage(() => import('./pages/x/x-page'), 'XPage')`. The router calls `preload` before showing the page. */
export function lazyPage<T extends Record<string, unknown>>(load: () => Promise<T>, name: keyof T & string) {
  const chunk = chunkOf(load, name)
  return Object.assign(() => <LazyPage chunk={chunk} />, { preload: chunk.fetch })
}

/** The same for a part of a page with props. */
export function lazyPart<Name extends string, Props extends object>(
  load: () => Promise<Record<Name, ComponentType<Props>>>,
  name: Name,
) {
  const chunk = chunkOf(load, name)
  return Object.assign((props: Props) => <LazyPage chunk={chunk} props={props} />, { preload: chunk.fetch })
}

function chunkOf(load: () => Promise<Record<string, unknown>>, name: string): Chunk {
  let pending: Promise<void> | undefined
  const read = async () => {
    try {
      chunk.page = (await load())[name] as ComponentType<object>
      chunk.failure = undefined
    } catch (error) {
      chunk.failure = error
    }
    pending = undefined
  }
  const chunk: Chunk = {
    fetch: () => {
      if (chunk.page) return Promise.resolve()
      pending ??= read()
      return pending
    },
  }
  return chunk
}

function LazyPage({ chunk, props }: { chunk: Chunk; props?: object }) {
  const [tries, setTries] = useState(0)
  const attempt = () => void chunk.fetch().then(() => setTries((before) => before + 1))
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, and after each reconnection
  useEffect(() => {
    if (!chunk.page && !chunk.failure) attempt()
    return onReturn(() => !chunk.page && attempt())
  }, [])
  if (chunk.page) return <chunk.page {...props} />
  if (!chunk.failure) return <ListSkeleton />
  // The service responds but the chunk is missing: a newer panel was installed, which app/page-failed explains.
  if (tries > 1 && connectionNow().state === 'live') throw chunk.failure
  return <ProblemView error={NO_ANSWER} retry={attempt} />
}
