// A crashed page: caused by a bug, or by a newer panel installed while this one was open.
import type { ErrorComponentProps } from '@tanstack/react-router'
import { Button } from '../ui/button'
import { Empty } from '../ui/empty'

export function PageFailed({ error }: ErrorComponentProps) {
  const message = error instanceof Error ? error.message : String(error)
  const isOld = /dynamically imported module|Importing a module script/i.test(message)
  return (
    <Empty
      title={isOld ? 'Muster was updated' : 'This page crashed'}
      action={
        <Button look="primary" onClick={() => location.reload()}>
          Load again
        </Button>
      }
    >
      {isOld ? 'Reload the page to continue with the new version.' : `Nothing was changed. ${message}`}
    </Empty>
  )
}
