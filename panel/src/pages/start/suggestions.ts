// Questions for the demo's agent, which answers by rules instead of a model.

/** The model's name that stands for these rules. */
const DEMO_MODEL = 'muster-demo'

export const isOfDemo = (agent: { modelOverride: string | null } | null | undefined): boolean =>
  agent?.modelOverride === DEMO_MODEL

/** A newcomer starts with the first one. */
export const SUGGESTIONS = [
  'Where is order 1004?',
  'Which orders do you know?',
  'Please refund order 1005.',
  'What is your refund policy?',
] as const
