// The frame of the signed-out pages: a title and one task.
import type { ReactNode } from 'react'
import { useEffect } from 'react'
import { setTitle } from './title'

export function Card({ title, about, children }: { title: string; about?: ReactNode; children: ReactNode }) {
  useEffect(() => setTitle(title), [title])
  return (
    <main id="main" className="flex min-h-full flex-col items-center bg-sunken px-4 py-[9vh]">
      <div className="mb-6 flex items-center gap-2 text-lg font-semibold">
        <svg viewBox="0 0 32 32" className="size-7" aria-hidden="true">
          <rect width="32" height="32" rx="8" className="fill-accent" />
          <path
            d="M8 23V10l8 8 8-8v13"
            fill="none"
            className="stroke-on-accent"
            strokeWidth="3"
            strokeLinecap="round"
            strokeLinejoin="round"
          />
        </svg>
        Muster
      </div>
      <div className="w-full max-w-sm rounded-card border border-line bg-canvas p-6">
        <h1 className="text-lg font-semibold">{title}</h1>
        {about && <div className="mt-1 text-muted">{about}</div>}
        <div className="mt-5">{children}</div>
      </div>
    </main>
  )
}
