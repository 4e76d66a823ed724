// When a test of a connection counts as unanswered.

/** The lifetime of the host's command: a host that gets it later does not run it. */
export const ANSWER_SECONDS = 60

export const isOverdue = (askedAt: string, now: number): boolean =>
  now - Date.parse(askedAt) > ANSWER_SECONDS * 1000
