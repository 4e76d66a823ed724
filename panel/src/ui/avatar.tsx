// A picture, or the initials of the name.
import { cx } from './cx'

interface Props {
  name: string
  url?: string | null
  /** For organizations and agents; people are round. */
  square?: boolean
  size?: 'sm' | 'md' | 'lg'
}

const SIZES = { sm: 'size-5 text-2xs', md: 'size-6 text-2xs', lg: 'size-14 text-xl' }

export function Avatar({ name, url, square, size = 'md' }: Props) {
  const shape = cx('shrink-0 overflow-hidden', SIZES[size], square ? 'rounded-[5px]' : 'rounded-full')
  if (url) return <img src={url} alt="" className={cx(shape, 'object-cover')} loading="lazy" />
  return (
    <span
      aria-hidden
      className={cx(shape, 'flex items-center justify-center bg-accent-soft font-semibold text-accent-text')}
    >
      {initials(name)}
    </span>
  )
}

function initials(name: string): string {
  const words = name.trim().split(/\s+/)
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map((word) =>
    word ? [...word][0] : '',
  )
  return letters.join('').toLocaleUpperCase()
}
