// Finds a record by part of its name, on Base UI's combobox. The service filters, not the browser.
import { Combobox as Base } from '@base-ui/react/combobox'
import { CSPProvider } from '@base-ui/react/csp-provider'
import { ChevronsUpDown, X } from 'lucide-react'
import { type KeyboardEvent, useEffect, useState } from 'react'
import type { Choice, PickerProps } from '../picker'

const same = (a: Choice, b: Choice) => a.id === b.id
const NONE: Choice[] = []

export function Picker({
  value,
  onValue,
  choices,
  search,
  placeholder,
  disabled,
  clearable,
  empty,
  id,
  ...rest
}: PickerProps & { autoFocus?: boolean }) {
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const found = useChoices(choices, search, text, isOpen)
  return (
    <CSPProvider disableStyleElements>
      {/* One element: a field would put a gap before the root's hidden input. */}
      <div>
        <Base.Root<Choice>
          items={found ?? NONE}
          filter={null}
          value={value}
          disabled={disabled}
          loopFocus={false}
          autoHighlight
          itemToStringLabel={({ name }) => name}
          isItemEqualToValue={same}
          onValueChange={(next) => onValue(next)}
          onInputValueChange={(next, { reason }) => setText(reason === 'item-press' ? '' : next)}
          onOpenChange={(open, { reason }) => {
            setOpen(open)
            if (open && reason !== 'input-change') setText('')
          }}
        >
          <Base.InputGroup className="relative flex">
            <Base.Input
              id={id}
              {...rest}
              placeholder={placeholder}
              className="control pr-14"
              onKeyDown={stayInForm}
            />
            <span className="absolute inset-y-0 right-1.5 flex items-center text-faint">
              {clearable && value && (
                <Base.Clear
                  aria-label="Clear"
                  className="grid size-6 place-items-center rounded hover:text-ink"
                >
                  <X size={14} aria-hidden />
                </Base.Clear>
              )}
              <Base.Trigger
                aria-label="Show choices"
                className="grid size-6 place-items-center rounded hover:text-ink"
              >
                <ChevronsUpDown size={14} aria-hidden />
              </Base.Trigger>
            </span>
          </Base.InputGroup>
          <Base.Portal>
            <Base.Positioner sideOffset={4} className="z-[60] outline-none">
              <Base.Popup className="arrive max-h-72 w-(--anchor-width) min-w-56 overflow-y-auto rounded-control border border-line bg-raised p-1 shadow-raised">
                <Base.Empty className="px-2 py-1.5 text-muted empty:hidden">
                  {found && (empty ?? 'Nothing found.')}
                </Base.Empty>
                <Base.List>
                  {(choice: Choice) => (
                    <Base.Item
                      key={choice.id}
                      value={choice}
                      className="flex items-center gap-2 rounded-[5px] px-2 py-1.5 outline-none data-[highlighted]:bg-hover coarse:py-2.5"
                    >
                      <span className="min-w-0 grow truncate">{choice.name}</span>
                      {choice.detail && <span className="shrink-0 text-xs text-muted">{choice.detail}</span>}
                      <Base.ItemIndicator className="text-accent-text">✓</Base.ItemIndicator>
                    </Base.Item>
                  )}
                </Base.List>
              </Base.Popup>
            </Base.Positioner>
          </Base.Portal>
        </Base.Root>
      </div>
    </CSPProvider>
  )
}

/** Enter in an open list selects or closes; it never submits the surrounding form. */
function stayInForm(event: KeyboardEvent<HTMLInputElement>): void {
  if (event.key === 'Enter' && event.currentTarget.ariaExpanded === 'true') event.preventDefault()
}

/**
 * The options: the matching `choices`, or the service's results, requested while the list is open. Stale answers never
 * replace newer ones. Undefined before the first answer.
 */
function useChoices(
  choices: Choice[] | undefined,
  search: PickerProps['search'],
  text: string,
  isOpen: boolean,
): Choice[] | undefined {
  const [found, setFound] = useState<Choice[]>()
  useEffect(() => {
    if (!search || !isOpen) return
    let current = true
    // Enter must not choose a result for another text.
    setFound(undefined)
    const timer = setTimeout(
      () => void search(text).then((next) => current && setFound(next)),
      text ? 120 : 0,
    )
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [search, text, isOpen])
  if (!choices) return found
  const wanted = text.trim().toLocaleLowerCase()
  return choices.filter(({ name, detail }) => `${name} ${detail ?? ''}`.toLocaleLowerCase().includes(wanted))
}
