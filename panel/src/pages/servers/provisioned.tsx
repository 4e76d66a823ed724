// A server's new token inside the join command. It is shown once; the dialog notices when the machine has joined.
import { joinLine } from '../../app/join-line'
import { ProgramHint } from '../../app/program'
import { JoinCheck, useJoined } from '../../app/server-joined'
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
      about="Run this on the machine, ideally as a dedicated user, not as root."
      secrets={[{ label: 'The line to run', text: joinLine(server.token, server.id) }]}
      used={joined}
      onDone={onDone}
    >
      <JoinCheck name={server.name} joined={joined} hostname={hostname} />
      <ProgramHint />
      <p className="text-sm text-muted">
        The token in it works once, for one machine. To keep the host running, “muster host unit” prints a
        systemd unit.
      </p>
    </ShownOnce>
  )
}
