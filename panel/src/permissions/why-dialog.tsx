// Explains why the user lacks a permission: the deciding rule and who can change it, as the service words it.
import type { ReactNode } from 'react'
import { useQuery } from 'urql'
import { wordsOf } from '../api/errors'
import { graphql } from '../api/graphql'
import { Button } from '../ui/button'
import { CodeBlock } from '../ui/code'
import { Dialog } from '../ui/dialog'
import { Notice } from '../ui/notice'
import { Skeleton } from '../ui/skeleton'
import { words } from '../ui/status'
import { closeWhy, type Why } from './why-store'

const Explain = graphql(`
  query WhyNot($orgId: Id!, $permissions: [Permission!]!) {
    viewerCan(orgId: $orgId, permissions: $permissions) {
      permission
      allowed
      reason
      decidedBy { file line text }
      remedy { change file line text withinCeiling }
    }
    permissions { permission meaning }
    organization(orgId: $orgId) { id viewerRole }
  }
`)

export default function WhyDialog({ why: { orgId, permission } }: { why: Why }) {
  const [{ data, error }] = useQuery({
    query: Explain,
    variables: { orgId, permissions: [permission] },
    requestPolicy: 'network-only',
  })
  const found = data?.viewerCan?.[0]
  const meaning = data?.permissions?.find((each) => each.permission === permission)?.meaning
  return (
    <Dialog
      open
      onClose={closeWhy}
      title="You may not do this"
      about={needs(permission, meaning, data?.organization?.viewerRole)}
      footer={<Button onClick={closeWhy}>Close</Button>}
    >
      {error && !found && <Notice>{wordsOf(error)}</Notice>}
      {!found && !error && <Skeleton className="w-3/4" />}
      {found?.allowed && <Notice tone="ok">By now you may. Close this and try again.</Notice>}
      {found && !found.allowed && (
        <div className="space-y-4 pb-2">
          {!found.decidedBy && <p>{found.remedy ? 'No rule allows it.' : found.reason}</p>}
          {found.decidedBy && (
            <div>
              <p className="mb-1 text-sm font-medium">
                The rule, {found.decidedBy.file} line {found.decidedBy.line}
              </p>
              <CodeBlock text={found.decidedBy.text} label="the rule" />
            </div>
          )}
          <Remedy remedy={found.remedy} />
        </div>
      )}
    </Dialog>
  )
}

/** "Your role is Viewer. This needs the permission to edit agents (`agent.edit`)." */
function needs(permission: string, meaning: string | undefined, role: string | null | undefined): ReactNode {
  const what = meaning?.replace(/\.$/, '')
  return (
    <>
      {role && `Your role is ${words(role)}. `}This needs the permission
      {what && ` to ${what.charAt(0).toLowerCase()}${what.slice(1)}`} (<code>{permission}</code>).
    </>
  )
}

function Remedy({
  remedy,
}: {
  remedy: { withinCeiling: boolean; file: string; text: string | null } | null
}) {
  if (!remedy) return <p className="text-muted">Ask an administrator of the organization for another role.</p>
  return (
    <div>
      <p className="mb-1 text-sm font-medium">
        {remedy.withinCeiling
          ? 'Members who may edit the organization’s policy can change it: by default, an OWNER. Or ask for another role.'
          : `Only the operator of this installation can change it, in ${remedy.file}. Or ask for another role.`}
      </p>
      {remedy.text && <CodeBlock text={remedy.text} label="the line" />}
    </div>
  )
}
