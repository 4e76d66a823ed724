// A side of a change: a value before it or after it.
import { Visible } from '../../ui/visible'

interface Props {
  name: string
  /** Null where nothing is set. */
  text: string | null
  tone: string
}

export function Side({ name, text, tone }: Props) {
  return (
    <div className={`min-w-0 rounded-control px-2 py-1 ${tone}`} data-outlined>
      <span className="block text-xs">{name}</span>
      <span className="block max-h-48 overflow-auto whitespace-pre-wrap break-words text-sm">
        {text === null ? <em>nothing</em> : <Visible text={text} />}
      </span>
    </div>
  )
}
