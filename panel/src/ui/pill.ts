// The looks of filters.
import { buttonClass } from './button'
import { cx } from './cx'

/** The classes of a filter above a list, `on` while it narrows the list. */
export const pillClass = (on: boolean) =>
  buttonClass(
    'secondary',
    'sm',
    cx('rounded-full', on && 'border-accent-text! bg-selected! text-accent-text!'),
  )
