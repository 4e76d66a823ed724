// The frame of everything behind the sign-in: who is signed in, the organization that is shown, the navigation.
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
import { fetched } from '../api/chunk'
import { isSignedOut } from '../api/errors'
import { follow } from '../api/live'
import { onSession, sessionNow, signedIn } from '../api/session'
import { useLive } from '../api/use-live'
import { setZone } from '../ui/clock'
import { ProblemView } from '../ui/problem'
import { ConnectionBanner } from './connection-banner'
import { setDraftsOwner } from './drafts'
import { lastOrganization, rememberOrganization } from './last-organization'
import { Nav } from './nav'
import { type Org, OrganizationContext, OrganizationQuery } from './organization'
import { asked } from './person'
import { applyPreferences } from './preferences'
import { StopAction } from './stop-action'
import { setTitleFrame } from './title'
import { useViewer, ViewerContext, ViewerQuery } from './viewer'

const OrganizationProblem = lazy(() => fetched(() => import('./organization-problem')))
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
  // Before it is painted: whether single keys do something is settled when the page is seen.
  useLayoutEffect(() => {
    if (!viewer) return asked()
    signedIn()
    applyPreferences(viewer.preferences)
  }, [viewer])

  if (session === 'out' || (!viewer && isSignedOut(error))) {
    return <ToSignIn />
  }
  if (!viewer) return error ? <ProblemView error={error} retry={refetch} /> : null
  // Before any page looks for what was kept.
  setDraftsOwner(viewer.user.id)
  return (
    <ViewerContext value={viewer}>
      <Frame />
    </ViewerContext>
  )
}

/** Goes there once: while the page is fetched, this is still shown, with the next address already. */
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

/** With an organization in the address, everything of it; the account keeps the last one around it. */
function Frame() {
  const { org: orgId } = useParams({ strict: false })
  const { memberships } = useViewer()
  const { pathname } = useLocation()
  // The account belongs to no organization, but the way back stays visible.
  const last = lastOrganization()
  const around =
    pathname === '/account' && memberships.some(({ organizationId }) => organizationId === last) ? last : null
  const shown = orgId ?? around
  const { org, error, refetch } = useOrganization(shown)
  const isKnown = shown === null || org || (!orgId && error)
  // One navigation for all organizations, before one is known as well: a menu that was opened early stays.
  return (
    <OrganizationContext value={org}>
      <Columns>
        <Fragment key={shown}>
          {/* Always there: what covers the page shuts off what is here, also a banner that arrives later. */}
          <div className="shrink-0">
            {org?.stopped && (
              <Suspense>
                <StopBanner />
              </Suspense>
            )}
          </div>
          {org && <StopAction />}
          {isKnown ? (
            <Outlet />
          ) : (
            <Suspense>{error ? <OrganizationProblem error={error} retry={refetch} /> : null}</Suspense>
          )}
        </Fragment>
      </Columns>
    </OrganizationContext>
  )
}

/** The organization with this id, once it is known. */
function useOrganization(orgId: number | null) {
  const client = useClient()
  const { data, error, refetch } = useLive({
    query: OrganizationQuery,
    variables: { orgId: orgId ?? 0 },
    on: ['ORGANIZATION', 'MEMBER', 'POLICY'],
    pause: orgId === null,
  })
  // Until there is an answer, this is still the one before.
  const record = data?.organization?.id === orgId ? data?.organization : null
  useEffect(() => (orgId === null ? undefined : follow(client, orgId)), [client, orgId])
  useEffect(() => {
    if (!record) return
    rememberOrganization(record.id)
    setTitleFrame({ organization: record.name })
    setZone({ organization: record.timezone })
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
        <ConnectionBanner />
        <main id="main" tabIndex={-1} className="flex min-h-0 grow flex-col outline-none">
          {children}
        </main>
      </div>
    </div>
  )
}
