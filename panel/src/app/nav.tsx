// The navigation: a sidebar, or a bar with a menu on narrow screens. Badges count pending items.
import { Link, useLocation } from '@tanstack/react-router'
import { Menu as MenuIcon, Search, X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { runNamed } from '../keys/registry'
import { useEscape } from '../keys/use-actions'
import { IconButton } from '../ui/button'
import { Count } from '../ui/count'
import { cx } from '../ui/cx'
import { Kbd } from '../ui/kbd'
import { useOrgIfAny } from './organization'
import { OrganizationSwitch } from './organization-switch'
import { PersonMenu } from './person-menu'
import { GROUPS, NAV_ITEMS, type NavItem } from './places'
import { usePreferences } from './preferences'
import { useBadges } from './use-badges'
import { useShellActions } from './use-shell-actions'

export function Nav() {
  const org = useOrgIfAny()
  const [open, setOpen] = useState(false)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigating closes the menu
  useEffect(() => setOpen(false), [pathname])
  // The menu covers the page, so close it when the focus leaves.
  useEffect(() => {
    if (!open) return
    const main = document.getElementById('main')
    const close = () => setOpen(false)
    main?.addEventListener('focusin', close)
    return () => main?.removeEventListener('focusin', close)
  }, [open])
  useEscape(() => setOpen(false), open)
  useShellActions()
  const badges = useBadges()
  const [{ startPutAway }] = usePreferences()
  const isShown = ({ id, needs }: NavItem) =>
    org?.can(needs) && !(id === 'start' && startPutAway?.includes(org.id))
  const places = NAV_ITEMS.filter(isShown)
  return (
    <>
      <header className="flex h-12 shrink-0 items-center gap-1 border-b border-line bg-sunken px-2 md:hidden">
        <IconButton
          icon={open ? X : MenuIcon}
          label={open ? 'Close the menu' : 'Open the menu'}
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        />
        <OrganizationSwitch />
        <span className="grow" />
        {badges.approvals > 0 && org && (
          <Link
            to="/o/$org/approvals"
            params={{ org: org.id }}
            className="rounded-control p-2"
            aria-label={badges.approvals === 1 ? '1 approval waits' : `${badges.approvals} approvals wait`}
          >
            <Count
              value={badges.approvals}
              label={badges.approvals === 1 ? 'approval waits' : 'approvals wait'}
              tone="danger"
            />
          </Link>
        )}
        <IconButton icon={Search} label="Find anything" keys="mod+k" onClick={openPalette} />
      </header>
      <div
        className={cx(
          'flex min-h-0 flex-col bg-sunken md:w-58 md:shrink-0 md:border-r md:border-line',
          open ? 'fixed inset-x-0 top-12 bottom-0 z-30' : 'hidden md:flex',
        )}
      >
        <div className="hidden items-center gap-1 p-2 md:flex">
          <OrganizationSwitch />
        </div>
        <PaletteButton />
        <nav aria-label="Pages" className="min-h-0 grow overflow-y-auto px-2 pb-4">
          {GROUPS.map(({ id, label }) => {
            const inGroup = places.filter(({ group }) => group === id)
            return inGroup.length === 0 ? null : (
              <section key={id} aria-label={label ?? 'Work'} className="mt-3 first:mt-1">
                {label && <h2 className="px-2 pb-1 text-xs font-medium text-faint">{label}</h2>}
                <ul className="space-y-px">
                  {inGroup.map((place) => (
                    <li key={place.id}>
                      <PlaceLink
                        place={place}
                        org={org?.id ?? 0}
                        badge={badges[place.id as keyof typeof badges] ?? 0}
                      />
                    </li>
                  ))}
                </ul>
              </section>
            )
          })}
        </nav>
        <div className="border-t border-line p-2">
          <PersonMenu />
        </div>
      </div>
    </>
  )
}

function PlaceLink({
  place: { icon: Icon, label, to, keys, id },
  org,
  badge,
}: {
  place: NavItem
  org: number
  badge: number
}) {
  return (
    <Link
      to={to}
      params={{ org } as never}
      activeOptions={{ exact: id === 'overview', includeSearch: false }}
      data-tip={keys ? label : undefined}
      data-keys={keys}
      className="flex h-8 items-center gap-2.5 rounded-control px-2 text-muted hover:bg-hover hover:text-ink coarse:h-11"
      activeProps={{ className: 'bg-selected! font-medium text-ink!', 'aria-current': 'page' }}
    >
      <Icon size={16} aria-hidden className="shrink-0" />
      <span className="min-w-0 grow truncate">{label}</span>
      <Count
        value={badge}
        label={id === 'conversations' ? 'unread' : 'waiting'}
        tone={id === 'approvals' ? 'danger' : 'accent'}
      />
    </Link>
  )
}

function PaletteButton() {
  return (
    <div className="px-2 pb-1">
      <button
        type="button"
        onClick={openPalette}
        className="flex h-8 w-full items-center gap-2 rounded-control border border-line bg-canvas px-2 text-muted hover:border-outline coarse:h-11"
      >
        <Search size={14} aria-hidden />
        <span className="grow text-left">Find anything</span>
        <Kbd keys="mod+k" />
      </button>
    </div>
  )
}

const openPalette = () => runNamed('panel.palette')
