// Opens a record of a list on its own page, in this tab or a new one.
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

/** Whether the target is a link or button in the row with its own behaviour. */
export function isInteractive(target: EventTarget, row: Element): boolean {
  const hit =
    target instanceof Element
      ? target.closest('a, button, input, select, textarea, label, [role="menuitem"]')
      : null
  return hit !== null && row.contains(hit)
}
