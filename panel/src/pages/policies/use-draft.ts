// The draft of this browser, and what can be done with it.
import { useState } from 'react'
import { draftOf, saveDraft } from '../../app/drafts'
import { useOrg } from '../../app/organization'
import {
  begun,
  changed,
  clicked,
  type Draft,
  isChanged,
  rebased,
  restored,
  stored,
  textOf,
  typed,
} from './draft'
import type { Cell, Change } from './lines'
import type { Policy } from './queries'

const PLACE = 'policy'

export interface DraftState {
  /** The text of the draft, or of the rules in force. */
  text: string
  /** Null without changes. */
  draft: Draft | null
  /** Another version was published since the draft was begun. */
  isBehind: boolean
  type: (text: string) => void
  click: (cell: Cell, allowed: boolean) => void
  change: (change: Change) => void
  discard: () => void
  /** Brings a discarded draft back. */
  restore: (draft: Draft) => void
  /** Applies the draft's cells to the text in force. */
  rebase: () => void
  /** Keeps the draft's whole text, instead of the one in force. */
  overrule: () => void
}

/** While the rules can't be edited here, a draft stays in the browser, but does not show. */
export function useDraft({ version, text: inForce }: Policy, canEdit: boolean): DraftState {
  const { id: org } = useOrg()
  const [kept, keep] = useState(() => restored(draftOf(org, PLACE)))
  const base = inForce ?? ''
  const draft = canEdit && kept && textOf(kept, org) !== base ? kept : null
  const now = draft ?? begun(version, base)
  const set = (next: Draft | null) => {
    const worth = next && isChanged(next, org) ? next : null
    saveDraft(org, PLACE, worth ? stored(worth) : '')
    keep(worth)
  }
  return {
    text: textOf(now, org),
    draft,
    isBehind: draft !== null && draft.version !== version,
    type: (text) => set(typed(now, text)),
    click: (cell, allowed) => set(changed(now, clicked(now, cell, allowed))),
    change: (change) => set(changed(now, change)),
    discard: () => set(null),
    restore: set,
    rebase: () => set(rebased(now, org, version, base)),
    overrule: () => set({ ...begun(version, base), typed: textOf(now, org) }),
  }
}
