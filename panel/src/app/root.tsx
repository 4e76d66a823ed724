// Surrounds every page: the client, toasts, tooltips, shortcuts, and lazily loaded layers.
import { Outlet } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState, useSyncExternalStore } from 'react'
import { Provider } from 'urql'
import { fetched } from '../api/chunk'
import { clientNow, onClient } from '../api/current-client'
import { onSession, sessionNow } from '../api/session'
import { expectField, listen, takeTypedAhead } from '../keys/registry'
import { useActions, useEscape } from '../keys/use-actions'
import { onWhy, whyNow } from '../permissions/why-store'
import { loadOverlays } from '../ui/overlays'

const Toasts = lazy(() => fetched(() => import('../ui/toasts')))
const Tips = lazy(() => fetched(() => import('../ui/tip')))
const Palette = lazy(() => fetched(() => import('./palette')))
const KeySheet = lazy(() => fetched(() => import('../keys/key-sheet')))
const WhyDialog = lazy(() => fetched(() => import('../permissions/why-dialog')))
const SignInAgain = lazy(() => fetched(() => import('./sign-in-again')))

export function Root() {
  const client = useSyncExternalStore(onClient, clientNow)
  useEffect(listen, [])
  useEffect(() => {
    // After the first paint, when the browser is idle.
    const timer = setTimeout(() => void loadOverlays(), 600)
    return () => clearTimeout(timer)
  }, [])
  return (
    <Provider value={client}>
      <Outlet />
      <Layers />
      <Suspense>
        <Toasts />
        <Tips />
      </Suspense>
    </Provider>
  )
}

function Layers() {
  const session = useSyncExternalStore(onSession, sessionNow)
  const why = useSyncExternalStore(onWhy, whyNow)
  const [layer, open] = useState<'palette' | 'keys' | null>(null)
  const close = () => {
    takeTypedAhead()
    open(null)
  }
  const find = () => {
    if (layer === 'palette') return close()
    expectField()
    open('palette')
  }
  // Also while it loads.
  useEscape(close, layer !== null)
  useActions([
    {
      id: 'panel.palette',
      label: 'Find anything',
      group: 'Panel',
      keys: 'mod+k',
      hidden: true,
      run: find,
    },
    {
      id: 'panel.keys',
      label: 'Show keyboard shortcuts',
      group: 'Panel',
      keys: '?',
      run: () => open('keys'),
    },
  ])
  return (
    <Suspense>
      {layer === 'palette' && <Palette onClose={close} />}
      {layer === 'keys' && <KeySheet onClose={close} />}
      {why && <WhyDialog why={why} />}
      {session === 'ended' && <SignInAgain />}
    </Suspense>
  )
}
