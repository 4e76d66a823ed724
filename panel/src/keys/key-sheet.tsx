// The `?` dialog: the page's keyboard shortcuts, from the registry.
import { Link } from '@tanstack/react-router'
import { useSyncExternalStore } from 'react'
import { Dialog } from '../ui/dialog'
import { Kbd } from '../ui/kbd'
import { type Action, actionsNow, keysOf, onActions, singleKeysNow } from './registry'

const FIXED: Pick<Action, 'id' | 'label' | 'group' | 'keys'>[] = [
  { id: 'fixed.palette', label: 'Find anything', group: 'Panel', keys: 'mod+k' },
  { id: 'fixed.escape', label: 'Leave the field, then close the open view', group: 'Panel', keys: 'escape' },
]

export default function KeySheet({ onClose }: { onClose: () => void }) {
  const actions = useSyncExternalStore(onActions, actionsNow)
  const hasSingle = useSyncExternalStore(onActions, singleKeysNow)
  const groups = grouped(unique([...FIXED, ...actions]))
  return (
    <Dialog
      open
      onClose={onClose}
      title="Keyboard shortcuts"
      about="They are off while you type in a field."
      width="lg"
    >
      <p className="mb-4 text-muted">
        Single-key shortcuts {hasSingle ? 'can be' : 'are'} switched off under{' '}
        <Link to="/account" search={{ tab: 'appearance' }} className="link" onClick={onClose}>
          Your account → Appearance
        </Link>
        .
      </p>
      <div role="group" tabIndex={0} aria-label="All shortcuts" className="gap-8 pb-4 sm:columns-2">
        {[...groups].map(([group, inGroup]) => (
          <section key={group} className="mb-5 break-inside-avoid">
            <h3 className="mb-1 text-xs font-medium text-faint">{group}</h3>
            <dl>
              {inGroup.map((action) => (
                <div
                  key={action.id}
                  className="flex items-center justify-between gap-4 border-b border-line py-1.5"
                >
                  <dt>{action.label}</dt>
                  <dd className="flex gap-2">
                    {keysOf(action).map((each) => (
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

function grouped<A extends Pick<Action, 'group'>>(actions: A[]): Map<string, A[]> {
  const groups = new Map<string, A[]>()
  for (const action of actions) groups.set(action.group, [...(groups.get(action.group) ?? []), action])
  return groups
}

/** The latest action per label; actions without enabled shortcuts are for the palette. */
function unique<A extends Pick<Action, 'label' | 'keys'>>(actions: A[]): A[] {
  const seen = new Set<string>()
  return actions.filter((action) => {
    if (keysOf(action).length === 0 || seen.has(action.label)) return false
    seen.add(action.label)
    return true
  })
}
