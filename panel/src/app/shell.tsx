// The frame of all signed-in pages: the user, the current organization, the navigation.
import { Outlet, useLocation, useNavigate, useParams } from '@tanstack/react-router'
import {
  Fragment,
  lazy,
  Suspense,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
} from 'react'
import { useClient } from 'urql'
import '../api/cache'
import { fetched } from '../api/chunk'
import { isSignedOut } from '../api/errors'
import { follow, resync } from '../api/live'
import { onSession, sessionNow, signedIn } from '../api/session'
import { useLive } from '../api/use-live'
import { setZone } from '../ui/clock'
import { ProblemView } from '../ui/problem'
import { setDraftsOwner } from './drafts'
import { lastOrganization, rememberOrganization } from './last-organization'
import { Nav } from './nav'
import { type Org, OrganizationContext, OrganizationQuery } from './organization'
import { trackViewerRequest } from './person'
import { placeAt } from './places'
import { applyPreferences } from './preferences'
import { StopAction } from './stop-action'
import { setTitleFrame } from './title'
import { useViewer, ViewerContext, ViewerQuery } from './viewer'

const ConnectionBanner = lazy(() => fetched(() => import('./connection-banner')))
const OrganizationProblem = lazy(() => fetched(() => import('./organization-problem')))
const PlaceRefused = lazy(() => fetched(() => import('./place-refused')))
const StopBanner = lazy(() => fetched(() => import('./stop-banner')))

export function Shell() {
  const session = useSyncExternalStore(onSession, sessionNow)
  const { data, error, refetch } = useLive({
    query: ViewerQuery,
    variables: {},
    on: ['MEMBER'],
    pause: session === 'out',
  })
  const viewer = data?.viewer
  // Before painting, because single-key shortcuts must be settled when the page appears.
  useLayoutEffect(() => {
    if (!viewer) return trackViewerRequest()
    signedIn()
    applyPreferences(viewer.preferences)
  }, [viewer])

  if (session === 'out' || (!viewer && isSignedOut(error))) {
    return <ToSignIn />
  }
  if (!viewer) return error ? <ProblemView error={error} retry={refetch} /> : null
  // Before any page reads a draft.
  setDraftsOwner(viewer.user.id)
  return (
    <ViewerContext value={viewer}>
      <Frame />
    </ViewerContext>
  )
}

/** Redirects once: this stays rendered while the page loads, with the new address already set. */
function ToSignIn() {
  const { href } = useLocation()
  const navigate = useNavigate()
  const going = useRef(false)
  useEffect(() => {
    if (going.current) return
    going.current = true
    const search = href === '/' || href.startsWith('/sign-in') ? {} : { next: href }
    void navigate({ to: '/sign-in', search, replace: true })
  }, [href, navigate])
  return null
}

/** With an organization in the address, all of it; on the account page, the last one. */
function Frame() {
  const { org: orgId } = useParams({ strict: false })
  const { memberships } = useViewer()
  const { pathname } = useLocation()
  // The account belongs to no organization, but the navigation back stays.
  const last = lastOrganization()
  const around =
    pathname === '/account' && memberships.some(({ organizationId }) => organizationId === last) ? last : null
  const shown = orgId ?? around
  const { org, error, refetch } = useOrganization(shown)
  const isKnown = shown === null || org || (!orgId && error)
  const place = orgId && org ? placeAt(pathname) : undefined
  // Pages for creating something explain themselves.
  const refused = place?.needs.endsWith('.view') && !org?.can(place.needs) ? place : null
  // One navigation element throughout, so that a menu opened early survives.
  return (
    <OrganizationContext value={org}>
      <Columns>
        <Fragment key={shown}>
          {/* Always rendered: a peek that covers the page makes this inert, including banners that appear later. */}
          <div className="shrink-0">
            {org?.stopped && (
              <Suspense>
                <StopBanner />
              </Suspense>
            )}
          </div>
          {org && <StopAction />}
          {refused ? (
            <Suspense>
              <PlaceRefused key={refused.id} place={refused} />
            </Suspense>
          ) : isKnown ? (
            <Outlet />
          ) : (
            <Suspense>{error ? <OrganizationProblem error={error} retry={refetch} /> : null}</Suspense>
          )}
        </Fragment>
      </Columns>
    </OrganizationContext>
  )
}

/** The organization with this id, once loaded. */
function useOrganization(orgId: number | null) {
  const client = useClient()
  const { data, error, refetch } = useLive({
    query: OrganizationQuery,
    variables: { orgId: orgId ?? 0 },
    on: ['ORGANIZATION', 'MEMBER', 'POLICY'],
    pause: orgId === null,
  })
  // Until the answer arrives, `data` is about the previous organization.
  const record = data?.organization?.id === orgId ? data?.organization : null
  useEffect(() => (orgId === null ? undefined : follow(client, orgId)), [client, orgId])
  useEffect(() => {
    if (!record) return
    rememberOrganization(record.id)
    setTitleFrame({ organization: record.name })
    setZone({ organization: record.timezone })
  }, [record])
  // With another role, every record has other permissions.
  const role = useRef<string>(undefined)
  useEffect(() => {
    const now = record && `${record.id} ${record.viewerPermissions}`
    if (now && role.current?.startsWith(`${record.id} `) && role.current !== now) resync()
    role.current = now ?? undefined
  }, [record])
  const org = useMemo<Org | null>(() => {
    if (!record) return null
    const may = new Set<string>(record.viewerPermissions)
    return { ...record, can: (permission) => may.has(permission) }
  }, [record])
  return { org, error, refetch }
}

function Columns({ children }: { children: React.ReactNode }) {
  return (
    <div data-frame className="flex h-dvh flex-col md:flex-row">
      <a
        href="#main"
        className="fixed top-2 left-2 z-[90] -translate-y-16 rounded-control bg-accent px-3 py-2 text-on-accent focus:translate-y-0"
      >
        Skip to the page
      </a>
      <Nav />
      <div className="flex min-h-0 min-w-0 grow flex-col">
        <Suspense>
          <ConnectionBanner />
        </Suspense>
        <main id="main" tabIndex={-1} className="flex min-h-0 grow flex-col outline-none">
          {children}
        </main>
      </div>
    </div>
  )
}
