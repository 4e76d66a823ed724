// Defines an action once and offers it as a button or menu entry and in the palette.
import { type ReactNode, useMemo } from 'react'
import { type Action, keysOf } from '../keys/registry'
import { useActions } from '../keys/use-actions'
import { RefusalContext } from '../permissions/refusal'
import { Button, type ButtonProps } from './button'
import type { MenuEntry } from './menu'

/** An action with its permission check: `refused: useRefused('skill.create')`. */
export interface Offered extends Action {
  refused: (() => void) | null
}

interface Props extends Omit<ButtonProps, 'onClick' | 'keys' | 'type'> {
  action: Offered
  /** The button's text, if shorter than the action's label. */
  children?: ReactNode
}

/** A button for an action, which the palette and the shortcuts offer as well. */
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

/** Adds a menu's entries to the palette. `group` names their subject: "Conversation". */
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
