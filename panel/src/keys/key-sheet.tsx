// All keys that do something here, from the registry: what `?` shows.
import { useSyncExternalStore } from 'react'
import { Dialog } from '../ui/dialog'
import { Kbd } from '../ui/kbd'
import { type Action, actionsNow, keysOf, onActions } from './registry'

const FIXED: Pick<Action, 'id' | 'label' | 'group' | 'keys'>[] = [
  { id: 'fixed.palette', label: 'Find anything', group: 'Panel', keys: 'mod+k' },
  { id: 'fixed.escape', label: 'Leave the field, then close what is open', group: 'Panel', keys: 'escape' },
]

export default function KeySheet({ onClose }: { onClose: () => void }) {
  const actions = useSyncExternalStore(onActions, actionsNow)
  const groups = grouped(unique([...FIXED, ...actions]))
  return (
    <Dialog open onClose={onClose} title="Keys" about="They do nothing while you type in a field." width="lg">
      <div role="group" tabIndex={0} aria-label="All keys" className="gap-8 pb-4 sm:columns-2">
        {[...groups].map(([group, inGroup]) => (
          <section key={group} className="mb-5 break-inside-avoid">
            <h3 className="mb-1 text-xs font-medium text-faint">{group}</h3>
            <dl>
              {inGroup.map(({ id, label, keys }) => (
                <div key={id} className="flex items-center justify-between gap-4 border-b border-line py-1.5">
                  <dt>{label}</dt>
                  <dd className="flex gap-2">
                    {keysOf({ keys } as Action).map((each) => (
                      <Kbd key={each} keys={each} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}

function grouped<A extends { group: string }>(actions: A[]): Map<string, A[]> {
  const groups = new Map<string, A[]>()
  for (const action of actions) groups.set(action.group, [...(groups.get(action.group) ?? []), action])
  return groups
}

/** The newest of those with the same name or keys; those without keys are the palette's. */
function unique<A extends Pick<Action, 'label' | 'keys'>>(actions: A[]): A[] {
  const seen = new Set<string>()
  return actions.filter(({ label, keys }) => {
    if (!keys || seen.has(label)) return false
    seen.add(label)
    return true
  })
}
