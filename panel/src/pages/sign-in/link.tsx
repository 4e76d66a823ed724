// Shared parts of the pages that mails link to.
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Card } from '../../app/card'
import { buttonClass } from '../../ui/button'
import { Notice } from '../../ui/problem'

/** The link's token; null if the link is incomplete. Removed from the address at once, and so from the history. */
export function useToken(): string | null {
  const [token] = useState(() => new URLSearchParams(location.hash.slice(1)).get('token'))
  useEffect(() => {
    if (location.hash) history.replaceState(history.state, '', location.pathname)
  }, [])
  return token
}

export function Incomplete({ title, again }: { title: string; again?: boolean }) {
  return (
    <Card title={title}>
      <div className="space-y-4">
        <Notice>The link is incomplete. Open it again from the mail.</Notice>
        {again ? (
          <Again />
        ) : (
          <Link to="/" className={buttonClass('secondary', 'md', 'w-full')}>
            Go to Muster
          </Link>
        )}
      </div>
    </Card>
  )
}

export function Done({ title, children }: { title: string; children: string }) {
  return (
    <Card title={title} about={children}>
      <Link to="/" className={buttonClass('primary', 'md', 'w-full')}>
        Go on
      </Link>
    </Card>
  )
}

export function Again() {
  return (
    <a href="/sign-in#forgot" className="inline-block text-accent-text hover:underline">
      Request a new link
    </a>
  )
}
