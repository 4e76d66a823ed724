// Reports content that failed to load: what, why, and what to do. Replaces only the missing part, never the whole page.
import type { CombinedError } from '@urql/core'
import { Lock, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { problemOf, wordsOf } from '../api/errors'
import { Button } from './button'
import { Empty } from './empty'

export function ProblemView({
  error,
  retry,
  children,
}: {
  error: CombinedError
  retry?: () => void
  children?: ReactNode
}) {
  const code = problemOf(error)?.code
  if (code === 'NOT_FOUND') {
    return (
      <Empty title="Not found">This does not exist, was deleted, or you may not see it. {children}</Empty>
    )
  }
  if (code === 'PERMISSION_DENIED') {
    return (
      <Empty icon={Lock} title="You may not see this">
        {wordsOf(error)} Ask an owner or an admin for another role. {children}
      </Empty>
    )
  }
  return (
    <Empty
      icon={TriangleAlert}
      title="This could not be shown"
      action={retry && <Button onClick={retry}>Try again</Button>}
    >
      {wordsOf(error)} {children}
    </Empty>
  )
}
