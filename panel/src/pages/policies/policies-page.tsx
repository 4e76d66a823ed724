// The policies: who may do what, as a matrix and as text, over one draft that is not in force until it is published.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { useLive } from '../../api/use-live'
import { lazyPart } from '../../app/lazy-page'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Button } from '../../ui/button'
import { PageHeader } from '../../ui/page'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Tabs } from '../../ui/tabs'
import { say, sayProblem } from '../../ui/toast-store'
import { Conflict } from './conflict'
import { type Editing, selectLine } from './editing'
import { Effect, NoDraft } from './effect'
import { MatrixView } from './matrix-view'
import { PublishDialog } from './publish-dialog'
import { type General, type Permissions, PoliciesQuery, type Policy } from './queries'
import { ReadOnly } from './read-only'
import { TextView } from './text-view'
import { useDraft } from './use-draft'
import { useProposal } from './use-proposal'
import { Workspace } from './workspace'

// Not shown first.
const History = lazyPart(() => import('./history'), 'History')

const TABS = [
  { id: 'matrix', label: 'Matrix' },
  { id: 'text', label: 'Text' },
  { id: 'history', label: 'History' },
]

const OWNED = 'A file of this installation has these rules. Only the operator can change it.'

export function PoliciesPage() {
  const org = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: PoliciesQuery,
    variables: { orgId: org.id },
    on: ['POLICY'],
  })
  const { policy, permissions, general } = data ?? {}
  if (policy && permissions) {
    return <Workbench policy={policy} permissions={permissions} general={general ?? null} refetch={refetch} />
  }
  return (
    <>
      <PageHeader title="Policies" />
      {loading || !error ? <ListSkeleton /> : <ProblemView error={error} retry={refetch} />}
    </>
  )
}

interface Props {
  policy: Policy
  permissions: Permissions
  general: General
  refetch: () => void
}

function Workbench({ policy, permissions, general, refetch }: Props) {
  const search = useSearch({ from: '/inside/o/$org/policies' })
  const navigate = useNavigate({ from: '/o/$org/policies' })
  const { tab = 'matrix' } = search
  const [publishing, publish] = useState(false)
  const editing = useRef<Editing>({})
  const refused = useRefused('policy.edit')
  const isOwned = !policy.files[0]?.editable
  const canEdit = !isOwned && !refused
  const state = useDraft(policy, canEdit)
  const { draft, text, isBehind } = state
  // Without rules there is nothing to try.
  const proposing = useProposal(draft || text.trim() ? text : null, policy.version)
  const proposed = proposing.proposed?.text === text ? proposing.proposed : null
  const toText = (line?: number) => {
    void navigate({ search: { tab: 'text' } }).then(() => line && selectLine(editing.current, line))
  }
  const action = {
    id: 'policies.publish',
    label: 'Publish the draft…',
    group: 'Policies',
    refused,
    run: () => publish(true),
  }
  const discard = () => {
    state.discard()
    say('Draft discarded', draft ? { undo: () => state.restore(draft) } : undefined)
  }
  const effect = (
    <>
      {!draft && canEdit && <NoDraft onText={tab === 'text' ? null : () => toText()} />}
      <Effect
        permissions={permissions}
        proposing={proposing}
        title={draft ? 'The draft changes' : null}
        onLine={toText}
        // The correction of an earlier text would undo what was typed since.
        onText={proposed ? state.type : undefined}
      />
    </>
  )
  const isReady = draft !== null && !isBehind && proposed?.proposal.ok
  return (
    <>
      <PageHeader
        title="Policies"
        doc="policies.md#in-the-panel"
        beside={draft && <Badge tone="warn">Draft, not in force</Badge>}
        about="Who may do what in this organization."
        actions={
          !isOwned && (
            <>
              {draft && (
                <Button look="quiet" onClick={discard}>
                  Discard the draft
                </Button>
              )}
              <ActionButton action={action} look="primary" disabled={!isReady && !refused}>
                Publish…
              </ActionButton>
            </>
          )
        }
      >
        <Tabs label="Parts of the policies" tabs={TABS} current={tab} />
      </PageHeader>
      <ReadOnly policy={policy} permissions={permissions} isOwned={isOwned} refused={refused} />
      {isBehind && <Conflict state={state} theirs={policy.text ?? ''} />}
      {tab === 'history' ? (
        <History policy={policy} permissions={permissions} general={general} isOwned={isOwned} />
      ) : tab === 'text' ? (
        <Workspace beside={effect}>
          <TextView
            policy={policy}
            permissions={permissions}
            text={text}
            onText={canEdit ? state.type : null}
            proposed={proposed}
            version={draft?.version ?? policy.version}
            editing={editing.current}
          />
        </Workspace>
      ) : (
        <MatrixView
          policy={policy}
          permissions={permissions}
          general={general}
          state={state}
          proposal={proposed?.proposal}
          canEdit={canEdit}
          onRefused={() => (isOwned ? sayProblem(OWNED) : refused?.())}
          onLine={toText}
        >
          {effect}
        </MatrixView>
      )}
      {publishing && draft && proposed && (
        <PublishDialog
          // Not the version in force: one that was published since is not replaced unseen.
          version={draft.version}
          before={policy.text ?? ''}
          text={text}
          changes={proposed.proposal.changes}
          onClose={() => publish(false)}
          onPublished={() => {
            publish(false)
            state.discard()
            refetch()
          }}
          onConflict={() => {
            publish(false)
            refetch()
          }}
        />
      )}
    </>
  )
}
