// Saved views of a list: filters and order under a name, one menu away. They are stored with the account, by
// organization and page. Selecting one sets the address, so links to it work for everyone.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Bookmark, Pencil, Plus, RefreshCw, Trash2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { fetched } from '../api/chunk'
import { pillClass } from '../ui/button'
import { Menu, type MenuEntry } from '../ui/menu'
import { say } from '../ui/toast-store'
import { useOrg } from './organization'
import { type Preferences, usePreferences } from './preferences'
import { readViews, searchOfView, type View, viewOf, withoutView, withView } from './saved-views-list'

const NameView = lazy(() => fetched(() => import('./saved-views-name')))

/** `page` names the list, such as `approvals`. */
export function SavedViews({ page }: { page: string }) {
  const { views, change } = useViews(page)
  const navigate = useNavigate()
  const shown = viewOf(useSearch({ strict: false }))
  const current = views.find(({ search }) => search === shown)
  // The selected view, while its filters are being changed.
  const [chosen, choose] = useState<string | null>(null)
  const changed = current ? undefined : views.find(({ name }) => name === chosen)
  const [naming, setNaming] = useState<'new' | 'rename' | null>(null)
  const show = (view: View) => {
    choose(view.name)
    void navigate({ to: '.', search: searchOfView(view) as never })
  }
  const save = async (name: string) => {
    const view = { name: name.trim(), search: naming === 'rename' && current ? current.search : shown }
    await change((before) => withView(before, view, naming === 'rename' ? current?.name : undefined))
    choose(view.name)
    setNaming(null)
  }
  const remove = async ({ name, search }: View) => {
    await change((before) => withoutView(before, name))
    say(`Deleted the view ${name}`, { undo: () => change((before) => withView(before, { name, search })) })
  }
  const entries: (MenuEntry | false)[] = [
    ...views.map((view) => ({
      label: view.name,
      checked: view === current,
      onSelect: () => show(view),
    })),
    views.length > 0 && 'line',
    changed !== undefined && {
      label: `Change “${changed.name}” to this`,
      icon: RefreshCw,
      onSelect: () => void change((before) => withView(before, { name: changed.name, search: shown })),
    },
    {
      label: 'Save this view…',
      icon: Plus,
      about: shown === '' ? 'Choose filters or an order first' : undefined,
      disabled: shown === '' || current !== undefined,
      onSelect: () => setNaming('new'),
    },
    current !== undefined && {
      label: `Rename “${current.name}”…`,
      icon: Pencil,
      onSelect: () => setNaming('rename'),
    },
    current !== undefined && {
      label: `Delete “${current.name}”`,
      icon: Trash2,
      look: 'danger' as const,
      onSelect: () => void remove(current),
    },
  ]
  return (
    <>
      <Menu
        align="start"
        entries={entries.filter((entry) => entry !== false)}
        trigger={
          <button
            type="button"
            aria-label={current ? `Saved views: ${current.name}` : 'Saved views'}
            className={pillClass(current !== undefined)}
          >
            <Bookmark size={13} aria-hidden />
            <span className="max-w-40 truncate">{current?.name ?? 'Views'}</span>
          </button>
        }
      />
      {naming && (
        <Suspense>
          <NameView
            views={views}
            now={naming === 'rename' ? current?.name : undefined}
            onSave={save}
            onClose={() => setNaming(null)}
          />
        </Suspense>
      )}
    </>
  )
}

/** A page's views, and a function that changes their current state, which another tab may have changed. */
function useViews(page: string) {
  const org = useOrg()
  const [preferences, set] = usePreferences()
  const place = `${org.id}/${page}`
  const of = (from: Preferences['views']) => readViews(from?.[place])
  const change = (to: (before: View[]) => View[]) =>
    set(({ views }) => ({ views: { ...views, [place]: to(of(views)) } }))
  return { views: of(preferences.views), change }
}
