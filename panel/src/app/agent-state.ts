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
    what: 'The model’s provider refuses the agent’s credential.',
    todo: 'Store a valid model credential in the settings, then start the agent again.',
  },
  BACKUP_FAILED: {
    what: 'The agent’s home could not be backed up.',
    todo: 'The agent keeps running. The list of backups shows the cause; the next successful backup clears this.',
  },
  DISK_FULL: {
    what: 'The server’s disk is full.',
    todo: 'Free space on the server, then start the agent again.',
  },
  ENGINE_AWAY: {
    what: 'The server can’t reach its container engine, and keeps trying.',
    todo: 'Start the engine on that server.',
  },
  EXITED: {
    what: 'The program exited.',
    todo: 'Start the agent again.',
  },
  HOST_AWAY: {
    what: 'The server is not connected. The agent keeps running.',
    todo: 'Check the server: the machine may be off, or the host program may have stopped.',
  },
  HOST_NOT_CONFIRMED: {
    what: 'The agent needs secrets, and the server’s host is not confirmed.',
    todo: 'Confirm the host on the server’s page, if you know who runs it. The agent then starts.',
  },
  IMAGE_NOT_FOUND: {
    what: 'The server does not know the image.',
    todo: 'Choose another image, or ask the host’s owner to list this one.',
  },
  KILLED: {
    what: 'The program was killed on its server.',
    todo: 'Ask the host’s owner, then start the agent again.',
  },
  LIMIT_REACHED: {
    what: 'The agent was stopped because its spending limit is used up.',
    todo: 'Check what the agent did. Allow more, or raise the limit, then start the agent again.',
  },
  LINE_TOO_LONG: {
    what: 'The program wrote a line that is too long.',
    todo: 'Start the agent again. If this happens again, the program needs a fix.',
  },
  NO_PROTOCOL: {
    what: 'The program does not speak the Agent Client Protocol, or did not in time.',
    todo: 'Check that the image is an agent that speaks the protocol on standard input and output.',
  },
  ORGANIZATION_STOPPED: {
    what: 'The organization is stopped.',
    todo: 'Nothing runs until the organization is released.',
  },
  OUT_OF_MEMORY: {
    what: 'The agent ran out of memory.',
    todo: 'Allow more memory in the settings, then start the agent again.',
  },
  RESTARTING: {
    what: 'The agent finishes its work and shuts down, then starts again.',
    todo: 'To prevent the start, stop the agent.',
  },
  SHIM_LOST: {
    what: 'The supervisor is gone, so the reason is unknown.',
    todo: 'The server may have restarted. Start the agent again.',
  },
  SPAWN_FAILED: {
    what: 'The program could not be started.',
    todo: 'The host’s owner can run “muster host doctor”.',
  },
  START_TIMEOUT: {
    what: 'The agent did not start in time.',
    todo: 'Start the agent again. If this happens again, check the server’s load.',
  },
  SYNC_FAILED: {
    what: 'A change to skills, MCP servers or credentials failed to apply.',
    todo: 'The agent keeps running without the change.',
  },
  WAITING_FOR_HOST: {
    what: 'The agent waits for its server, which is not connected.',
    todo: 'The agent starts as soon as the server is back.',
  },
}

const STATES: Record<string, string> = {
  RUNNING: 'The agent is up and takes new work.',
  SPAWNING: 'The agent is starting on its server.',
  PAUSED: 'The agent stays in memory and takes no new turns. New work waits.',
  STOPPING: 'The agent finishes its work and shuts down.',
  STOPPED: 'The agent is not running. New work waits until the agent is started.',
  ERROR: 'The agent has failed.',
}

/** Explains the state and the next step. */
export function stateInWords(status: string, reason: string | null): { what: string; todo: string | null } {
  const known = reason ? REASONS[reason as Reason] : undefined
  return known ?? { what: STATES[status] ?? '', todo: null }
}
