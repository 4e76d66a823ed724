// The page to which a vendor sends the browser back. It connects the account to the channel, and returns there.
import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { Card } from '../../app/card'
import { buttonClass } from '../../ui/button'
import { Notice } from '../../ui/notice'
import { refusalOf, returnedIn } from './authorization'

const Complete = graphql(`
  mutation CompleteChannelAuthorization($orgId: Id!, $id: Id!, $code: SecretString!, $state: SecretString!) {
    completeChannelAuthorization(orgId: $orgId, id: $id, code: $code, state: $state) { id }
  }
`)

export function ChannelAuthorizationPage() {
  const [returned] = useState(() => returnedIn(location.search))
  const [problem, setProblem] = useState<string>()
  const complete = useAct(Complete)
  const navigate = useNavigate()
  const begun = useRef(false)
  useEffect(() => {
    // The code counts once.
    if (begun.current || !returned?.code) return
    begun.current = true
    history.replaceState(history.state, '', location.pathname)
    const { orgId, id, code, state } = returned
    void complete({ orgId, id, code, state }, { quiet: true, said: 'Connected the account' }).then(
      ({ error }) => {
        if (error) return setProblem(wordsOf(error))
        void navigate({ to: '/o/$org/channels', params: { org: orgId }, search: { peek: id }, replace: true })
      },
    )
  }, [returned, complete, navigate])
  const failed =
    problem ?? (returned ? returned.error && refusalOf(returned.error) : 'The address is incomplete.')
  if (!failed) return <Card title="Connecting the account …">{null}</Card>
  return (
    <Card title="The account is not connected">
      <div className="space-y-4">
        <Notice>{failed}</Notice>
        {returned ? (
          <Link
            to="/o/$org/channels"
            params={{ org: returned.orgId }}
            search={{ peek: returned.id }}
            className={buttonClass('primary', 'md', 'w-full')}
          >
            Back to the channel
          </Link>
        ) : (
          <Link to="/" className={buttonClass('secondary', 'md', 'w-full')}>
            Go to Muster
          </Link>
        )}
      </div>
    </Card>
  )
}
