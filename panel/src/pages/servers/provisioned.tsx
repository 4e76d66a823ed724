// A server's new token, shown once, and the commands that ask for it. The dialog notices when the machine has joined.
import { joinLine, serviceLine } from '../../app/join-line'
import { ProgramHint } from '../../app/program'
import { JoinCheck, useJoined } from '../../app/server-joined'
import { FieldDocLink } from '../../ui/doc-link'
import { ShownOnce } from '../../ui/shown-once'

export interface Fresh {
  id: number
  name: string
  token: string
}

export function Provisioned({ server, onDone }: { server: Fresh; onDone: () => void }) {
  const { joined, hostname } = useJoined(server.id)
  return (
    <ShownOnce
      open
      title={`Connect ${server.name}`}
      about="Run one of the lines on the machine. It asks for the token."
      secrets={[
        { label: 'The line to run as root: a service with a user of its own', text: serviceLine(server.id) },
        { label: 'Or, to try it out, as yourself', text: joinLine(server.id) },
        { label: 'The token', text: server.token },
      ]}
      used={joined}
      onDone={onDone}
    >
      <JoinCheck name={server.name} joined={joined} hostname={hostname} />
      <ProgramHint />
      <div className="flex items-start gap-2">
        <p className="text-sm text-muted">
          The token works once, for one machine. It is in neither line, so no shell’s history keeps it.
        </p>
        <FieldDocLink to="hosts.md#from-nothing-to-a-host" />
      </div>
    </ShownOnce>
  )
}
