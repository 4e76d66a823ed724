// The banner of a stopped organization: who stopped it, why and when, and a button to release it.
import { OctagonX } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../api/graphql'
import { useAct } from '../api/use-act'
import { Gate } from '../permissions/gate'
import { Button } from '../ui/button'
import { ConfirmDialog } from '../ui/confirm'
import { Time } from '../ui/time'
import { useOrg } from './organization'

const Release = graphql(`
  mutation ReleaseOrganization($orgId: Id!) {
    releaseOrganization(orgId: $orgId) { id stopped { at by reason userId } }
  }
`)

export default function StopBanner() {
  const org = useOrg()
  const release = useAct(Release)
  const [asking, ask] = useState(false)
  const letGo = async () => {
    await release({ orgId: org.id }, { said: 'Released. Agents resume their work.' })
    ask(false)
  }
  if (!org.stopped) return null
  const { by, reason, at } = org.stopped
  return (
    <section
      aria-label="The organization is stopped"
      className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-danger-soft px-4 py-2 text-danger-text sm:px-6"
    >
      <OctagonX size={18} aria-hidden className="shrink-0" />
      <p className="min-w-0 grow">
        <strong className="font-semibold">All agents are on hold.</strong> {by} stopped the organization{' '}
        <Time at={at} />: “{reason}”. No turn starts until it is released.
      </p>
      <Gate may="organization.release">
        <Button size="sm" onClick={() => ask(true)}>
          Release
        </Button>
      </Gate>
      <ConfirmDialog
        open={asking}
        onClose={() => ask(false)}
        title={`Release ${org.name}?`}
        action="Release"
        look="primary"
        busy={release.pending}
        onConfirm={letGo}
      >
        All agents resume at once: messages received meanwhile start turns, a few per second. {by} stopped
        them: “{reason}”.
      </ConfirmDialog>
    </section>
  )
}
