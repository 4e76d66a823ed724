// The session ended while someone worked: they sign in again over the page, and nothing that they typed is lost. Tabs share
// the cookie, and a sign-in in one of them ends the session that the others began with: before anyone is asked, and whenever
// another tab tells of a sign-in, the service is asked whose the cookie is now.
import { useEffect, useState } from 'react'
import { useQuery } from 'urql'
import { makeClient } from '../api/client'
import { graphql } from '../api/graphql'
import { reopenSocket } from '../api/lazy-socket'
import { resync } from '../api/live'
import { signedIn } from '../api/session'
import { SignInForm } from '../pages/sign-in/sign-in-form'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { draftsOwner } from './drafts'
import { enter, tabs } from './person'
import { ViewerQuery } from './viewer'

const CookieQuery = graphql(`
  query CookieHolder { viewer { user { id } } }
`)

/** With a client of its own: until it is known whose the answer is, it does not belong with what is shown. */
async function cookieHolder(over: AbortSignal): Promise<number | undefined> {
  const { data } = await makeClient(over).query(CookieQuery, {}).toPromise()
  return data?.viewer?.user.id
}

/** Goes on as the person who is signed in now. Returns whether that is who it was before. */
function goOn(userId: number): boolean {
  if (draftsOwner() !== userId) {
    // Someone else: nothing of what is shown is theirs.
    enter(userId)
    location.assign('/')
    return false
  }
  signedIn()
  reopenSocket()
  resync()
  return true
}

/** Whether no one is signed in by the cookie. If someone is, the page goes on. */
function useIsOver(): boolean {
  const [isOver, setIsOver] = useState(false)
  useEffect(() => {
    const gone = new AbortController()
    const { signal } = gone
    const look = async () => {
      const userId = await cookieHolder(signal)
      if (signal.aborted) return
      if (userId) goOn(userId)
      else setIsOver(true)
    }
    tabs.addEventListener('message', look, { signal })
    void look()
    return () => gone.abort()
  }, [])
  return isOver
}

export default function SignInAgain() {
  // From the cache, if it still has it: without a session the service no longer answers this.
  const [{ data }] = useQuery({ query: ViewerQuery, requestPolicy: 'cache-only' })
  const isOver = useIsOver()
  if (!isOver) return null
  const onSignedIn = (userId: number) => {
    if (goOn(userId)) tabs.postMessage(userId)
  }
  return (
    <Dialog
      open
      firm
      onClose={() => {}}
      width="sm"
      title="Your session has ended"
      about="Sign in again to go on. What you see and what you typed stays."
      footer={
        <Button look="quiet" onClick={() => location.assign('/sign-in')}>
          Leave this page instead
        </Button>
      }
    >
      <SignInForm
        email={data?.viewer?.user.email}
        onSignedIn={onSignedIn}
        next={location.pathname + location.search}
      />
    </Dialog>
  )
}
