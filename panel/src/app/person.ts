// Who uses the panel in this browser. All tabs share the cookie: anyone who signs in or out in one of them does so in all, and nothing
// that the person before has begun is shown or sent under the other's name.
import { useNavigate } from '@tanstack/react-router'
import { useCallback } from 'react'
import { startOver } from '../api/current-client'
import { isSignedOut } from '../api/errors'
import { graphql } from '../api/graphql'
import { reopenSocket } from '../api/lazy-socket'
import { leaving, signedIn, signedOut } from '../api/session'
import { useAct } from '../api/use-act'
import { dismissAll } from '../ui/toast-store'
import { draftsOwner, SIGNED_OUT, setDraftsOwner } from './drafts'

const SignOut = graphql(`
  mutation SignOut { signOut }
`)

let isAsked = false

/** Who is signed in was asked: until that ends, the answer may be about the person before. */
export function asked(): () => void {
  isAsked = true
  return () => {
    isAsked = false
  }
}

/** Tells the other tabs whose the cookie is now. One whose session has ended looks again (app/sign-in-again). */
export const tabs = new BroadcastChannel('muster.person')
tabs.onmessage = ({ data: person }: MessageEvent<number>) => {
  if (isAsked) location.reload()
  else if (draftsOwner() !== SIGNED_OUT && person !== draftsOwner()) leave()
}

/** Forgets all that the person before has read and begun. */
function changeTo(person: number): void {
  setDraftsOwner(person)
  startOver()
  dismissAll()
}

function leave(): void {
  signedOut()
  changeTo(SIGNED_OUT)
}

/** Someone has signed in here: everything is read again, as them. */
export function enter(person: number): void {
  changeTo(person)
  reopenSocket()
  signedIn()
  tabs.postMessage(person)
}

/** Ends the session, and forgets all that was read: here, and in this browser's other tabs. */
export function useSignOut(): () => Promise<void> {
  const act = useAct(SignOut)
  const navigate = useNavigate()
  return useCallback(async () => {
    leaving(true)
    const { error } = await act({})
    leaving(false)
    if (error && !isSignedOut(error)) return
    leave()
    tabs.postMessage(SIGNED_OUT)
    await navigate({ to: '/sign-in' })
  }, [act, navigate])
}
