// The two columns of the matrix and of the text: the editor, and the effect. Stacked where space is short.
import type { ReactNode } from 'react'

export function Workspace({ children, beside }: { children: ReactNode; beside: ReactNode }) {
  return (
    <div className="min-h-0 grow overflow-y-auto lg:flex lg:overflow-y-hidden">
      <div className="min-w-0 overflow-x-auto lg:grow lg:overflow-y-auto">{children}</div>
      <aside
        aria-label="Effect"
        className="border-line p-4 max-lg:border-t sm:px-6 lg:w-84 lg:shrink-0 lg:overflow-y-auto lg:border-l lg:px-4"
      >
        {beside}
      </aside>
    </div>
  )
}
