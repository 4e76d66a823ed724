// The versions of a skill. Restoring one creates a new version, so it can be undone too.
import { useState } from 'react'
import { graphql, type Json, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { authorOf } from '../../app/author'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Button } from '../../ui/button'
import { CodeBlock } from '../../ui/code'
import { Dialog } from '../../ui/dialog'
import { Panel } from '../../ui/panel'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import type { Skill } from './skill-peek'

const VersionsQuery = graphql(`
  query SkillVersions($orgId: Id!, $skillId: Id!) {
    skillVersions(orgId: $orgId, skillId: $skillId, page: 1, limit: 20) {
      total
      data { id version createdAt authorKind authorName reason content }
    }
  }
`)
const Revert = graphql(`
  mutation RevertSkill($orgId: Id!, $id: Id!, $version: Int!, $reason: String!) {
    revertSkill(orgId: $orgId, id: $id, version: $version, reason: $reason) {
      id name description content effort model version revision
    }
  }
`)

type Version = NonNullable<ResultOf<typeof VersionsQuery>['skillVersions']>['data'][number]

export function Versions({ skill }: { skill: Skill }) {
  const { id: orgId } = useOrg()
  const [shown, show] = useState<Version | null>(null)
  const { data } = useLive({
    query: VersionsQuery,
    variables: { orgId, skillId: skill.id },
    on: ({ kind, id }) => kind === 'SKILL' && id === skill.id,
  })
  const versions = data?.skillVersions
  if (!versions) return null
  return (
    <Panel title="Versions">
      <ol className="divide-y divide-line rounded-card border border-line">
        {versions.data.map((version) => (
          <li key={version.id} className="flex items-center gap-3 px-3 py-2">
            <span className="min-w-0 grow">
              <span className="block">
                {version.version}. {version.reason ? <Visible text={version.reason} /> : 'Edited'}
              </span>
              <span className="block text-sm text-muted">
                <Time at={version.createdAt} /> by {authorOf(version.authorKind, version.authorName)}
              </span>
            </span>
            {version.version === skill.version ? (
              <span className="text-sm text-muted">present</span>
            ) : (
              <Button size="sm" onClick={() => show(version)}>
                Look
              </Button>
            )}
          </li>
        ))}
      </ol>
      {versions.total > versions.data.length && (
        <p className="mt-2 text-sm text-muted">
          The newest {versions.data.length} of {versions.total}.
        </p>
      )}
      {shown && <Look version={shown} skill={skill} onClose={() => show(null)} />}
    </Panel>
  )
}

function Look({ version, skill, onClose }: { version: Version; skill: Skill; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const revert = useAct(Revert)
  const goTo = (to: number, reason: string) => ({ orgId, id: skill.id, version: to, reason })
  return (
    <Dialog
      open
      onClose={onClose}
      width="lg"
      title={`Version ${version.version} of ${skill.name}`}
      footer={
        <>
          <Button onClick={onClose}>Close</Button>
          <Gate on={skill} may="skill.edit">
            <Button
              look="primary"
              busy={revert.pending}
              onClick={async () => {
                const present = skill.version
                await revert(goTo(version.version, `Back to version ${version.version}`), {
                  said: `Back to version ${version.version}`,
                  undo: () => revert(goTo(present, `Back to version ${present}`), { said: 'Undone' }),
                })
                onClose()
              }}
            >
              Go back to this
            </Button>
          </Gate>
        </>
      }
    >
      <CodeBlock text={textOf(version.content)} label="The text of this version" maxHeight="lg" />
    </Dialog>
  )
}

/** A version holds all settings; people look for the text. */
function textOf(content: Json): string {
  const text =
    typeof content === 'object' && content !== null && !Array.isArray(content) ? content.content : null
  return typeof text === 'string' ? text : JSON.stringify(content, null, 2)
}
