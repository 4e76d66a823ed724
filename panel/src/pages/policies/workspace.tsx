// The two columns of the matrix and of the text: the editor, and the effect. One above the other where space is short,
// each scrolling on its own: the heads of the columns and the explained cell stay in sight.
import type { ReactNode } from 'react'

export function Workspace({ children, beside }: { children: ReactNode; beside: ReactNode }) {
  return (
    <div className="flex min-h-0 grow flex-col overflow-y-auto lg:flex-row lg:overflow-hidden">
      <div className="min-h-40 min-w-0 grow basis-0 overflow-auto">{children}</div>
      <aside
        aria-label="Effect"
        className="max-h-[35dvh] shrink-0 overflow-y-auto border-line p-4 max-lg:border-t sm:px-6 lg:max-h-none lg:w-84 lg:border-l lg:px-4"
      >
        {beside}
      </aside>
    </div>
  )
}
