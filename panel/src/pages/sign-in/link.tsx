// Shared parts of the pages that mails link to.
import { Link } from '@tanstack/react-router'
import { Card } from '../../app/card'
import { buttonClass } from '../../ui/button'
import { Notice } from '../../ui/notice'

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
        Continue
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
