// The session ended while somebody worked: they sign in again over the page, and nothing that they typed is lost.
import { useQuery } from 'urql'
import { reopenSocket } from '../api/lazy-socket'
import { resync } from '../api/live'
import { signedIn } from '../api/session'
import { SignInForm } from '../pages/sign-in/sign-in-form'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { keptFor } from './kept'
import { enter } from './person'
import { ViewerQuery } from './viewer'

export default function SignInAgain() {
  // From the cache, if it still has it: without a session the service does not answer this any more.
  const [{ data }] = useQuery({ query: ViewerQuery, requestPolicy: 'cache-only' })
  const goOn = (userId: number) => {
    if (keptFor() !== userId) {
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
      <SignInForm
        email={data?.viewer?.user.email}
        onSignedIn={goOn}
        next={location.pathname + location.search}
      />
    </Dialog>
  )
}
