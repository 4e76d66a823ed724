// Registers a component's actions while it is mounted. Before painting: a visible page must respond to its shortcuts.
import { useLayoutEffect, useRef } from 'react'
import { type Action, register, registerEscape } from './registry'

/** Actions may close over anything: the latest ones run. They are registered again only if their names change. */
export function useActions(actions: (Action | false | null | undefined)[]): void {
  const present = actions.filter((action): action is Action => Boolean(action))
  const latest = useRef(present)
  latest.current = present
  const shape = JSON.stringify(
    present.map(({ id, label, group, keys, hidden, refused }) => [
      id,
      label,
      group,
      keys,
      hidden,
      Boolean(refused),
    ]),
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the actions
  useLayoutEffect(() => {
    const find = (id: string) => latest.current.find((action) => action.id === id)
    return register(
      latest.current.map((action) => ({
        ...action,
        run: () => find(action.id)?.run(),
        refused: action.refused ? () => find(action.id)?.refused?.() : null,
      })),
    )
  }, [shape])
}

/** Handles Esc while `active`. */
export function useEscape(run: () => void, active = true): void {
  const latest = useRef(run)
  latest.current = run
  useLayoutEffect(() => (active ? registerEscape(() => latest.current()) : undefined), [active])
}
