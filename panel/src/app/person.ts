// The user of this browser. All tabs share the cookie, so signing in or out in one affects all. Nothing the previous
// user started is shown to, or sent as, the next one.
import { useNavigate } from '@tanstack/react-router'
import { useCallback } from 'react'
import { resetClient } from '../api/current-client'
import { isSignedOut } from '../api/errors'
import { graphql } from '../api/graphql'
import { reopenSocket } from '../api/lazy-socket'
import { setSigningOut, signedIn, signedOut } from '../api/session'
import { useAct } from '../api/use-act'
import { dismissAll } from '../ui/toast-store'
import { draftsOwner, SIGNED_OUT, setDraftsOwner } from './drafts'

const SignOut = graphql(`
  mutation SignOut { signOut }
`)

let isAsked = false

/** Records a request for the signed-in user: until it ends, its answer may be about the previous one. */
export function trackViewerRequest(): () => void {
  isAsked = true
  return () => {
    isAsked = false
  }
}

/** Announces the cookie's new owner to other tabs. A tab whose session ended checks again (app/sign-in-again). */
export const tabs = new BroadcastChannel('muster.person')
tabs.onmessage = ({ data: person }: MessageEvent<number>) => {
  if (isAsked) location.reload()
  else if (draftsOwner() !== SIGNED_OUT && person !== draftsOwner()) leave()
}

/** Discards everything the previous user read or started. */
function changeTo(person: number): void {
  setDraftsOwner(person)
  resetClient()
  dismissAll()
}

function leave(): void {
  signedOut()
  changeTo(SIGNED_OUT)
}

/** Someone signed in here: reload everything as that user. */
export function startSession(person: number): void {
  changeTo(person)
  reopenSocket()
  signedIn()
  tabs.postMessage(person)
}

/** Ends the session and discards all data, here and in this browser's other tabs. */
export function useSignOut(): () => Promise<void> {
  const act = useAct(SignOut)
  const navigate = useNavigate()
  return useCallback(async () => {
    setSigningOut(true)
    const { error } = await act({})
    setSigningOut(false)
    if (error && !isSignedOut(error)) return
    leave()
    tabs.postMessage(SIGNED_OUT)
    await navigate({ to: '/sign-in' })
  }, [act, navigate])
}
