// The action that stops the whole organization, for the palette and other places. The dialog loads on demand.
import { lazy, Suspense, useSyncExternalStore } from 'react'
import { fetched } from '../api/chunk'
import { useActions } from '../keys/use-actions'
import { useRefused } from '../permissions/gate'
import { useOrg } from './organization'
import { askStop, onStopAsked, stopAsked } from './stop-store'

const StopDialog = lazy(() => fetched(() => import('./stop-dialog')))

export function StopAction() {
  const org = useOrg()
  const isAsked = useSyncExternalStore(onStopAsked, stopAsked)
  const refused = useRefused('organization.stop')
  useActions([
    !org.stopped && {
      id: 'organization.stop',
      label: 'Stop all agents',
      group: 'Organization',
      also: 'emergency halt',
      refused,
      run: () => askStop(true),
    },
  ])
  if (org.stopped || !isAsked) return null
  return (
    <Suspense>
      <StopDialog />
    </Suspense>
  )
}
