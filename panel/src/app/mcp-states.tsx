// MCP server states as reported by hosts: one line per MCP server on an agent, one per agent on an MCP server.
import { Badge, type Tone } from '../ui/badge'
import { Time } from '../ui/time'

type State = {
  status: 'IDLE' | 'STARTING' | 'RUNNING' | 'FAILED'
  error: string | null
  stderr: string | null
  tools: readonly string[]
  reportedAt: string | null
}

const SHOWN: Record<State['status'], { word: string; tone: Tone; tip: string }> = {
  IDLE: { word: 'Idle', tone: 'plain', tip: 'No session of the agent is open.' },
  STARTING: { word: 'Starting', tone: 'info', tip: 'The server was started and has not responded yet.' },
  RUNNING: { word: 'Running', tone: 'ok', tip: 'The server answers.' },
  FAILED: {
    word: 'Failed',
    tone: 'danger',
    tip: 'The server could not be started or reached, or has exited.',
  },
}

export function McpStates<S extends State>({
  states,
  nameOf,
}: {
  states: readonly S[]
  nameOf: (state: S) => string | undefined
}) {
  if (states.length === 0) return null
  return (
    <ul className="space-y-2 text-sm" aria-label="MCP status">
      {states.map((state, at) => {
        const { word, tone, tip } = SHOWN[state.status]
        return (
          <li key={nameOf(state) ?? at}>
            <div className="flex flex-wrap items-center gap-2">
              <span>{nameOf(state)}</span>
              <Badge tone={tone} tip={tip}>
                {word}
              </Badge>
              {state.tools.length > 0 && <span className="text-faint">{state.tools.length} tools</span>}
              <Time at={state.reportedAt} />
            </div>
            {state.error && <p className="mt-1">{state.error}</p>}
            {state.stderr && (
              <pre className="mt-1 max-h-48 overflow-auto rounded-card border border-line p-2 font-mono text-xs">
                {state.stderr}
              </pre>
            )}
          </li>
        )
      })}
    </ul>
  )
}
