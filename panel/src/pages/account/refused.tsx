// Why an account change was refused, with a link to sign in again if that helps.
import type { CombinedError } from '@urql/core'
import { problemOf, wordsOf } from '../../api/errors'
import { useSignOut } from '../../app/person'
import { Button } from '../../ui/button'
import { Notice } from '../../ui/notice'

export function Refused({ error }: { error: CombinedError }) {
  const signOut = useSignOut()
  return (
    <Notice>
      <p>{wordsOf(error)}</p>
      {problemOf(error)?.code === 'SIGN_IN_AGAIN' && (
        <Button size="sm" className="mt-2" onClick={() => void signOut()}>
          Sign in again
        </Button>
      )}
    </Notice>
  )
}
