// An empty state: explains what belongs here, the next step, and the equivalent for programs.
import type { LucideIcon } from 'lucide-react'
import { lazy, type ReactNode, Suspense } from 'react'
import { fetched } from '../api/chunk'

// Keeps the code block out of the first page.
const CodeBlock = lazy(() => fetched(async () => ({ default: (await import('./code')).CodeBlock })))

interface Props {
  icon?: LucideIcon
  title: string
  /** The page has nothing else, so this title is the page's heading. */
  isPage?: boolean
  /** What this is and why it is useful, in one or two sentences. */
  children?: ReactNode
  /** The next step: a button. */
  action?: ReactNode
  /** The equivalent in a terminal or through the API. */
  command?: string
}

export function Empty({ icon: Icon, title, isPage, children, action, command }: Props) {
  const Title = isPage ? 'h1' : 'h2'
  return (
    <div className="mx-auto flex max-w-md flex-col items-center px-6 py-14 text-center">
      {Icon && (
        <span className="mb-4 flex size-11 items-center justify-center rounded-full bg-sunken text-muted">
          <Icon size={20} aria-hidden />
        </span>
      )}
      <Title className="text-lg font-semibold">{title}</Title>
      {children && <div className="mt-1.5 text-muted">{children}</div>}
      {action && <div className="mt-5 flex flex-wrap justify-center gap-2">{action}</div>}
      {command && (
        <div className="mt-6 w-full text-left">
          <p className="mb-1 text-xs text-faint">From a program</p>
          <Suspense fallback={<div className="h-11" />}>
            <CodeBlock text={command} />
          </Suspense>
        </div>
      )}
    </div>
  )
}
