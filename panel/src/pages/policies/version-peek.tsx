// A version of the rules beside the list: its changes, the effect of going back to it, and the button for that.
import { Undo2 } from 'lucide-react'
import { useState } from 'react'
import { graphql } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { CodeBlock } from '../../ui/code'
import { Field } from '../../ui/field'
import { Select } from '../../ui/inputs'
import { Panel } from '../../ui/panel'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { Effect } from './effect'
import { LineDiff } from './line-diff'
import { writer } from './names'
import type { Permissions, Policy, Version } from './queries'
import { RevertDialog } from './revert-dialog'
import { useProposal } from './use-proposal'

const TwoQuery = graphql(`
  query ComparePolicyVersions($orgId: Id!, $one: Id!, $other: Id!, $hasOther: Boolean!) {
    one: policyVersion(orgId: $orgId, id: $one) { id at authorKind authorName reason revertsTo text }
    other: policyVersion(orgId: $orgId, id: $other) @include(if: $hasOther) { id text }
  }
`)

interface Props {
  policy: Policy
  permissions: Permissions
  id: number
  isInForce: boolean
  known: readonly Version[]
  against: number | undefined
  onAgainst: (id: number | undefined) => void
  onClose: () => void
}

export function VersionPeek(props: Props) {
  const { policy, permissions, id, isInForce, known, against, onAgainst, onClose } = props
  const { id: orgId } = useOrg()
  const [reverting, revert] = useState(false)
  // By default with the version before, which the list has next.
  const other = against ?? known[known.findIndex((version) => version.id === id) + 1]?.id
  const { data, error, loading, refetch } = useLive({
    query: TwoQuery,
    variables: { orgId, one: id, other: other ?? id, hasOther: other !== undefined },
    on: () => false,
  })
  const version = data?.one
  const text = version?.text ?? ''
  const proposing = useProposal(version && !isInForce ? text : null, policy.version)
  const goBack = {
    id: 'policies.revert',
    label: `Go back to version ${id}`,
    group: 'Policies',
    refused: useRefused('policy.edit'),
    run: () => revert(true),
  }
  const isEditable = policy.files[0]?.editable ?? false
  return (
    <Peek
      title={`Version ${id}`}
      onClose={onClose}
      actions={
        !isInForce &&
        isEditable && (
          <ActionButton
            size="sm"
            icon={Undo2}
            action={goBack}
            disabled={!proposing.proposed?.proposal.ok && !goBack.refused}
          >
            Go back to this…
          </ActionButton>
        )
      }
    >
      <div className="p-4">
        {error && !version && <ProblemView error={error} retry={refetch} />}
        {loading && <ListSkeleton rows={3} />}
        {version && (
          <>
            <p className="mb-4 text-sm text-muted">
              Published <Time at={version.at} /> by <Visible text={writer(version)} />:{' '}
              <Visible text={version.reason} />
              {version.revertsTo !== null && ` (back to version ${version.revertsTo})`}
            </p>
            {known.length > 1 && (
              <Field label="Compared with" className="mb-2">
                <Select
                  value={other === undefined ? NOTHING : String(other)}
                  options={[
                    ...known
                      .filter((each) => each.id !== id)
                      .map((each) => ({
                        value: String(each.id),
                        label: `Version ${each.id}: ${each.reason}`,
                      })),
                    ...(other === undefined ? [{ value: NOTHING, label: 'No rules' }] : []),
                  ]}
                  onValue={(value) => onAgainst(value === NOTHING ? undefined : Number(value))}
                />
              </Field>
            )}
            <div className="mb-8">
              <LineDiff before={data.other?.text ?? ''} after={text} label="Changed lines" />
            </div>
            {!isInForce && (
              <Effect permissions={permissions} proposing={proposing} title="Going back to it changes" />
            )}
            <Panel title="Text">
              {text.trim() ? (
                <CodeBlock text={text} label="the text of this version" />
              ) : (
                <p className="text-sm text-muted">No rules of its own.</p>
              )}
            </Panel>
          </>
        )}
      </div>
      {reverting && version && proposing.proposed && (
        <RevertDialog
          id={id}
          version={policy.version}
          changes={proposing.proposed.proposal.changes}
          before={policy.text ?? ''}
          text={text}
          onClose={() => revert(false)}
        />
      )}
    </Peek>
  )
}

const NOTHING = ''
