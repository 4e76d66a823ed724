// A link to the documentation of a transport.
import { guideOf, transportName } from './transports'

export function Guide({ transport }: { transport: string }) {
  const guide = guideOf(transport)
  return (
    guide && (
      <a href={guide} target="_blank" rel="noopener" className="link">
        Guide to {transportName(transport)} channels
      </a>
    )
  )
}
