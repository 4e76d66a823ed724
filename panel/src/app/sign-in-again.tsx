// The session ended while somebody worked: they sign in again over the page, and nothing that they typed is lost.
import { useQuery } from 'urql'
import { reopenSocket } from '../api/lazy-socket'
import { resync } from '../api/live'
import { signedIn } from '../api/session'
import { SignInForm } from '../pages/sign-in/sign-in-form'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { enter } from './person'
import { ViewerQuery } from './viewer'

export default function SignInAgain() {
  // From the cache: without a session the service does not answer this any more.
  const [{ data }] = useQuery({ query: ViewerQuery, requestPolicy: 'cache-only' })
  const before = data?.viewer?.user
  const goOn = (userId: number) => {
    if (before && before.id !== userId) {
      // Somebody else: nothing of what is shown is theirs.
      enter(userId)
      location.assign('/')
      return
    }
    signedIn()
    reopenSocket()
    resync()
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
      <SignInForm email={before?.email} onSignedIn={goOn} next={location.pathname + location.search} />
    </Dialog>
  )
}
