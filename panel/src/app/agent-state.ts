// Explains an agent's state and the next step. No React here.

export type Reason =
  | 'AUTH_REQUIRED'
  | 'BACKUP_FAILED'
  | 'DISK_FULL'
  | 'ENGINE_AWAY'
  | 'EXITED'
  | 'HOST_AWAY'
  | 'HOST_NOT_CONFIRMED'
  | 'IMAGE_NOT_FOUND'
  | 'KILLED'
  | 'LIMIT_REACHED'
  | 'LINE_TOO_LONG'
  | 'NO_PROTOCOL'
  | 'ORGANIZATION_STOPPED'
  | 'OUT_OF_MEMORY'
  | 'RESTARTING'
  | 'SHIM_LOST'
  | 'SPAWN_FAILED'
  | 'START_TIMEOUT'
  | 'SYNC_FAILED'
  | 'WAITING_FOR_HOST'

const REASONS: Record<Reason, { what: string; todo: string }> = {
  AUTH_REQUIRED: {
    what: 'Its model refuses its credential.',
    todo: 'Give it a valid model credential in its settings, then start it again.',
  },
  BACKUP_FAILED: {
    what: 'Its home could not be backed up.',
    todo: 'It keeps running. Its backups show the cause; the next successful one clears this.',
  },
  DISK_FULL: {
    what: 'The disk of its server is full.',
    todo: 'Free space on the server, then start it again.',
  },
  ENGINE_AWAY: {
    what: 'Its server can’t reach its container engine, and keeps trying.',
    todo: 'Start the engine there. The details name it.',
  },
  EXITED: {
    what: 'Its program exited.',
    todo: 'Read its output below, then start it again.',
  },
  HOST_AWAY: {
    what: 'Its server is not connected. The agent keeps running.',
    todo: 'Look at the server: its machine may be off, or its host program may have stopped.',
  },
  HOST_NOT_CONFIRMED: {
    what: 'It needs secrets, and the host of its server is not confirmed.',
    todo: 'Confirm the host on the server’s page, if you know who runs it. The agent then starts.',
  },
  IMAGE_NOT_FOUND: {
    what: 'Its server does not know its image.',
    todo: 'Choose another image, or have the host’s owner list this one.',
  },
  KILLED: {
    what: 'Something on its server killed it.',
    todo: 'Ask the host’s owner, then start it again.',
  },
  LIMIT_REACHED: {
    what: 'It was stopped because its spending limit is used up.',
    todo: 'Look at what it did. Allow more, or raise the limit, then start it again.',
  },
  LINE_TOO_LONG: {
    what: 'It wrote a line that is too long.',
    todo: 'Start it again. If it happens again, the agent’s program needs a fix.',
  },
  NO_PROTOCOL: {
    what: 'Its program does not speak the Agent Client Protocol, or did not in time.',
    todo: 'Check that its image is an agent that speaks the protocol on standard input and output.',
  },
  ORGANIZATION_STOPPED: {
    what: 'The organization is stopped.',
    todo: 'Nothing runs until it is released.',
  },
  OUT_OF_MEMORY: {
    what: 'It ran out of memory.',
    todo: 'Give it more memory in its settings, then start it again.',
  },
  RESTARTING: {
    what: 'It finishes its work and shuts down, then starts again.',
    todo: 'Stop it to keep it down.',
  },
  SHIM_LOST: {
    what: 'Its supervisor is gone, so the reason is unknown.',
    todo: 'Its server may have restarted. Start it again.',
  },
  SPAWN_FAILED: {
    what: 'Its program could not be started.',
    todo: 'The cause is below. The host’s owner can run “muster host doctor”.',
  },
  START_TIMEOUT: {
    what: 'It did not start in time.',
    todo: 'Start it again. If it happens again, look at the load of its server.',
  },
  SYNC_FAILED: {
    what: 'A change to its skills, MCP servers or credentials failed to apply.',
    todo: 'It keeps running without the change. See the details for the cause.',
  },
  WAITING_FOR_HOST: {
    what: 'It waits for its server, which is not connected.',
    todo: 'It starts as soon as the server is back.',
  },
}

const STATES: Record<string, string> = {
  RUNNING: 'It is up and takes new work.',
  SPAWNING: 'It is being launched on its server.',
  PAUSED: 'It stays in memory and takes no new turns. New work waits.',
  STOPPING: 'It finishes its work and shuts down.',
  STOPPED: 'It is not running. New work waits until it is started.',
  ERROR: 'It has failed.',
}

/** Explains the state and the next step. */
export function stateInWords(status: string, reason: string | null): { what: string; todo: string | null } {
  const known = reason ? REASONS[reason as Reason] : undefined
  return known ?? { what: STATES[status] ?? '', todo: null }
}
