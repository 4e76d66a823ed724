// Where a record of a list leads: its own page, here or in a tab of its own.
import { type LinkProps, useNavigate, useRouter } from '@tanstack/react-router'

export function useOpen<Item>(linkOf: ((item: Item) => LinkProps) | undefined) {
  const navigate = useNavigate()
  const router = useRouter()
  return {
    here: (item: Item) => linkOf && void navigate(linkOf(item) as never),
    page: (item: Item) =>
      linkOf && window.open(router.buildLocation(linkOf(item) as never).href, '_blank', 'noopener'),
  }
}

/** A link or button in the row does its own thing. */
export function isInteractive(target: EventTarget, row: Element): boolean {
  const hit =
    target instanceof Element
      ? target.closest('a, button, input, select, textarea, label, [role="menuitem"]')
      : null
  return hit !== null && row.contains(hit)
}
