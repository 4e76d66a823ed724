// The page for unknown addresses.
import { Link } from '@tanstack/react-router'
import { buttonClass } from '../ui/button'
import { Empty } from '../ui/empty'

export function NotFound() {
  return (
    <Empty
      isPage
      title="Page not found"
      action={
        <Link to="/" className={buttonClass('primary')}>
          To the overview
        </Link>
      }
    >
      The address may be mistyped, or from another version of Muster.
    </Empty>
  )
}
