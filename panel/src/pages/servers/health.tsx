// A server's health: its connection, its usage, its hardware.

import { runLine } from '../../app/join-line'
import { CodeBlock } from '../../ui/code'
import { Notice } from '../../ui/notice'
import { Fact, Facts, Panel } from '../../ui/panel'
import { words } from '../../ui/status'
import { Duration, Time } from '../../ui/time'
import { Load } from './load'
import type { ServerRecord } from './server-page'

export function Health({ server }: { server: ServerRecord }) {
  return (
    <>
      <Connection server={server} />
      <Panel title="Load">
        <Facts>
          <Fact name="Processor">
            <Load label="Processor" of={server} pct={server.cpuPct} wide />
          </Fact>
          <Fact name="Memory">
            <Load label="Memory" of={server} pct={server.ramPct} wide />
          </Fact>
          <Fact name="Load average">
            {server.load1 === null ? (
              <None />
            ) : (
              <span className="tabular-nums">
                {[server.load1, server.load5, server.load15]
                  .map((load) => (load === null ? 'not measured' : load.toFixed(2)))
                  .join(' · ')}
                <span className="text-sm text-muted"> over 1, 5 and 15 minutes</span>
              </span>
            )}
          </Fact>
        </Facts>
      </Panel>
      <Panel title="The machine">
        <Facts>
          <Fact name="Processor">{server.cpuCores ? `${server.cpuCores} cores` : <None />}</Fact>
          <Fact name="Memory">{server.memoryMb ? size(server.memoryMb) : <None />}</Fact>
          <Fact name="Disk">{server.diskMb ? size(server.diskMb) : <None />}</Fact>
          <Fact name="System">{[server.os, server.arch].filter(Boolean).join(', ') || <None />}</Fact>
          <Fact name="Runs agents as">
            {server.runtime ? (
              <>
                {RUNTIMES[server.runtime]}
                {server.runtimeVersion && <span className="text-muted"> {server.runtimeVersion}</span>}
              </>
            ) : (
              <None />
            )}
          </Fact>
          <Fact name="Host version">
            {server.version ?? <None />}
            {server.protocolVersion !== null && (
              <span className="text-muted">, protocol {server.protocolVersion}</span>
            )}
          </Fact>
          <Fact name="First joined">
            <Time at={server.provisionedAt} none="not yet" />
          </Fact>
        </Facts>
      </Panel>
    </>
  )
}

const RUNTIMES: Record<string, string> = {
  DOCKER: 'Docker containers',
  PODMAN: 'Podman containers',
  PROCESS: 'plain processes',
}
const None = () => <span className="text-faint">not reported yet</span>
const size = (mib: number) =>
  mib >= 1024 ? `${(mib / 1024).toLocaleString(undefined, { maximumFractionDigits: 1 })} GiB` : `${mib} MiB`

/** Explains the state and the next step. */
function Connection({ server }: { server: ServerRecord }) {
  const { status, name, refusal } = server
  const refused = refusal && (
    <Notice tone="warn">
      Its host was refused (<code>{refusal.code}</code>, <Time at={refusal.at} as="stamp" />
      ). {refusal.reason}
    </Notice>
  )
  if (refused && status !== 'ONLINE' && status !== 'DEGRADED') {
    return <Panel title="Refused">{refused}</Panel>
  }
  if (status === 'OFFLINE') {
    return (
      <Panel title="Offline">
        <Notice tone="warn">
          The host last reported <Time at={server.lastSeenAt} as="stamp" />. The agents keep running while the
          machine is up, and their reports arrive when it is back.
        </Notice>
        <p className="mt-3 mb-1.5 text-sm text-muted">
          If the machine is on, start the host there, in the folder where it joined:
        </p>
        <CodeBlock text={runLine(server.id)} label="the line to run" />
      </Panel>
    )
  }
  if (status === 'PENDING') {
    const over =
      !server.hasProvisioningToken ||
      (server.provisioningTokenExpiresAt !== null && new Date(server.provisioningTokenExpiresAt) < new Date())
    return (
      <Panel title="Waiting to join" doc="hosts.md#from-nothing-to-a-host">
        <Notice tone="info">
          {over ? (
            <>The token has been used or has expired. Issue a new one, and run the line that comes with it.</>
          ) : (
            <>
              Run a line that was shown for {name} on its machine. The token is valid until{' '}
              <Time at={server.provisioningTokenExpiresAt} as="stamp" />. If the line is lost, make a new
              token.
            </>
          )}
        </Notice>
      </Panel>
    )
  }
  return (
    <Panel title={status === 'DEGRADED' ? 'Connected, and under load' : 'Connected'}>
      {refused}
      {status === 'DEGRADED' && (
        <Notice tone="warn">
          The load is above a limit of the organization. Move agents to another server, or change the limit in
          the settings.
        </Notice>
      )}
      <Facts>
        <Fact name="Last seen">
          <Time at={server.lastSeenAt} none={words('never')} />
        </Fact>
        {server.uptimeSeconds !== null && (
          <Fact name="Up for">
            <Duration from={new Date(Date.now() - server.uptimeSeconds * 1000).toISOString()} />
          </Fact>
        )}
      </Facts>
    </Panel>
  )
}
