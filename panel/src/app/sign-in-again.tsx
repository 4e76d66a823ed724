// The session ended during work: a dialog asks the user to sign in again, and nothing typed is lost. Tabs share the
// cookie, and a sign-in in one ends the others' session. So before asking, and after another tab announces a sign-in,
// check whose cookie it is now.
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
import { startSession, tabs } from './person'
import { ViewerQuery } from './viewer'

const CookieQuery = graphql(`
  query CookieHolder { viewer { user { id } } }
`)

/** Uses a separate client: until the owner is known, the answer must stay out of the page's cache. */
async function cookieHolder(over: AbortSignal): Promise<number | undefined> {
  const { data } = await makeClient(over).query(CookieQuery, {}).toPromise()
  return data?.viewer?.user.id
}

/** Continues as the current user. Returns whether that is the same user. */
function goOn(userId: number): boolean {
  if (draftsOwner() !== userId) {
    // Another user: drop everything shown.
    startSession(userId)
    location.assign('/')
    return false
  }
  signedIn()
  reopenSocket()
  resync()
  return true
}

/** Whether the cookie has no session. If it has one, the page continues. */
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
  // From the cache if possible: without a session the service no longer answers this.
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
      about="Sign in again to continue. Nothing you typed is lost."
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
