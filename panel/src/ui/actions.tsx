// What can be done here, once for all who offer it: a button, or a menu, and the palette with it.
import { type ReactNode, useMemo } from 'react'
import { type Action, keysOf } from '../keys/registry'
import { useActions } from '../keys/use-actions'
import { RefusalContext } from '../permissions/refusal'
import { Button, type ButtonProps } from './button'
import type { MenuEntry } from './menu'

/** An action that says whether the person may: `refused: useRefused('skill.create')`. */
export interface Offered extends Action {
  refused: (() => void) | null
}

interface Props extends Omit<ButtonProps, 'onClick' | 'keys' | 'type'> {
  action: Offered
  /** What the button says, if the action's label says more than its place needs. */
  children?: ReactNode
}

/** A button of an action. The palette and its keys offer the same. */
export function ActionButton({ action, busy, disabled, children, ...look }: Props) {
  const { label, refused, run } = action
  useActions([!disabled && { ...action, run: () => !busy && run() }])
  const refusal = useMemo(() => (refused ? { explain: refused } : null), [refused])
  return (
    <RefusalContext value={refusal}>
      <Button {...look} busy={busy} disabled={disabled} keys={keysOf(action)[0]} onClick={run}>
        {children ?? label}
      </Button>
    </RefusalContext>
  )
}

/** Has the palette offer what a menu does. `group` is what it is done to: "Conversation". */
export function useMenuActions(group: string, entries: MenuEntry[]): void {
  useActions(
    entries.map((entry) =>
      entry === 'line' || entry.disabled || entry.checked
        ? null
        : {
            id: `${group}.${entry.label}`,
            label: entry.inFull ?? entry.label,
            group,
            also: group,
            refused: entry.refused,
            run: entry.onSelect,
          },
    ),
  )
}
