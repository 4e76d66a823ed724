// Another version was published while the draft was open: its change beside the draft's, and how to go on.
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { Button } from '../../ui/button'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { LineDiff } from './line-diff'
import { writer } from './names'
import { HistoryQuery } from './queries'
import type { DraftState } from './use-draft'

export function Conflict({ state, theirs }: { state: DraftState; theirs: string }) {
  const { id: orgId } = useOrg()
  const { data } = useLive({
    query: HistoryQuery,
    variables: { orgId, page: 1, limit: 1 },
    on: ['POLICY'],
  })
  const newest = data?.policyHistory?.data[0]
  const base = state.draft?.base ?? ''
  return (
    <section
      aria-label="Another version was published"
      className="shrink-0 border-b border-line bg-warn-soft px-4 py-3 sm:px-6"
    >
      <p role="status" className="text-sm text-warn-text">
        <Visible text={newest ? writer(newest) : 'Someone'} /> published another version
        {newest && (
          <>
            {' '}
            <Time at={newest.at} />: <Visible text={newest.reason} />
          </>
        )}
        . Your draft is kept.
      </p>
      <div className="mt-2 grid gap-3 md:grid-cols-2">
        <div className="min-w-0 rounded-control bg-canvas p-2">
          <h2 className="mb-1 text-sm font-medium">Theirs, in force</h2>
          <LineDiff before={base} after={theirs} label="Lines changed by them" />
        </div>
        <div className="min-w-0 rounded-control bg-canvas p-2">
          <h2 className="mb-1 text-sm font-medium">Yours</h2>
          <LineDiff before={base} after={state.text} label="Lines changed by you" />
        </div>
      </div>
      <div className="mt-2 flex flex-wrap gap-2">
        <Button look="primary" onClick={state.rebase}>
          Apply my cells to theirs
        </Button>
        <Button onClick={state.overrule}>Keep my text instead of theirs</Button>
        <Button look="quiet" onClick={state.discard}>
          Discard mine
        </Button>
      </div>
    </section>
  )
}
