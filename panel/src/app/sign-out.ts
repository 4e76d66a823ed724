// Ends the session, and forgets all that was read: here, and in this browser's other tabs.
import { useNavigate } from '@tanstack/react-router'
import { useCallback } from 'react'
import { startOver } from '../api/current-client'
import { isSignedOut } from '../api/errors'
import { graphql } from '../api/graphql'
import { leaving, signedOut } from '../api/session'
import { useAct } from '../api/use-act'
import { forgetKept } from './kept'

const SignOut = graphql(`
  mutation SignOut { signOut }
`)

const tabs = new BroadcastChannel('muster.signed-out')
tabs.onmessage = forget

function forget(): void {
  forgetKept()
  signedOut()
  startOver()
}

export function useSignOut(): () => Promise<void> {
  const act = useAct(SignOut)
  const navigate = useNavigate()
  return useCallback(async () => {
    leaving(true)
    const { error } = await act({})
    leaving(false)
    if (error && !isSignedOut(error)) return
    forget()
    tabs.postMessage(null)
    await navigate({ to: '/sign-in' })
  }, [act, navigate])
}
