// The differences between two revisions, field by field. No React here.
import type { Json } from '../../api/graphql'

export interface FieldChange {
  field: string
  /** Its label in the settings: `approvalAskThreshold` → "Ask a person from a risk of". */
  label: string
  before: Json
  after: Json
}

/** The fields with different values, sorted by name. A missing field counts as null. */
export function differences(before: Json, after: Json): FieldChange[] {
  const [old, now] = [recordOf(before), recordOf(after)]
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .sort()
    .filter((field) => canonical(old[field]) !== canonical(now[field]))
    .map((field) => ({ field, label: labelOf(field), before: old[field] ?? null, after: now[field] ?? null }))
}

/** A readable value; null where nothing is set. */
export function valueText(value: Json): string | null {
  if (value === null || value === '') return null
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) {
    return value.length === 0 ? null : value.join('\n')
  }
  return JSON.stringify(value, null, 2)
}

/** The fields that hold ids, each with the kind of its records. */
const KINDS = {
  credentials: 'credentials',
  mcpServers: 'mcpServers',
  skills: 'skills',
  serverId: 'servers',
  imageId: 'images',
} as const

export type Names = Partial<Record<(typeof KINDS)[keyof typeof KINDS], ReadonlyMap<number, string>>>

export const hasIds = ({ field }: Pick<FieldChange, 'field'>) => field in KINDS

/** The names of the records in a field, one a line; a skill with its version. Deleted records keep their number. */
export function namesIn(field: string, value: Json, names: Names): string | null {
  const kind = KINDS[field as keyof typeof KINDS]
  const items = Array.isArray(value) ? value : value === null ? [] : [value]
  const lines = items.map((item) => {
    const { id, version } = recordOf(item)
    const number = Number(id ?? item)
    const name = names[kind]?.get(number) ?? `No. ${number}`
    return version === undefined ? name : `${name}, version ${version}`
  })
  return lines.length > 0 ? lines.join('\n') : null
}

/** The labels of the settings' forms, after the section's title where they say too little without it. */
const LABELS: Partial<Record<string, string>> = {
  approvalAskThreshold: 'Ask a person from a risk of',
  approvalBlockThreshold: 'Block from a risk of',
  approvalCategories: 'Always ask for',
  approvalTimeoutMinutes: 'Wait for a decision',
  backupSchedule: 'Backups: When',
  backupCron: 'Backups: Schedule',
  timezone: 'Time zone',
  backupRetention: 'Backups: Keep',
  backupFreeze: 'Keep all backups',
  responseStyle: 'Answers: Style',
  responseFormat: 'Answers: Format',
  noEmoji: 'Avoid emoji',
  singleMessage: 'Send each answer as a single message',
  cpuOverride: 'Processor',
  memoryMbOverride: 'Memory',
  restartPolicy: 'Restart the agent',
  sessionResetMode: 'Sessions: Start over',
  sessionResetTokens: 'Sessions: At',
  modelOverride: 'Model',
  modeOverride: 'Mode',
  credentialChoice: 'Model credential: Credential',
  modelCredentialProvider: 'Model credential: Provider',
  modelCredentialBaseUrl: 'Model credential: API address',
  networkPrivileged: 'Unrestricted network',
  disabledToolGroups: 'Disabled tools',
  monthlyBudgetMicro: 'Budget: A month',
  budgetAction: 'When the budget is used up',
  costGuardMode: 'Cost guard: Limit',
  costGuardTokensPerHour: 'Cost guard: An hour',
  costGuardAction: 'Cost guard: When they are used up',
}

export function labelOf(field: string): string {
  const label = LABELS[field]
  if (label) return label
  const words = field
    .replaceAll('_', ' ')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/ id$/, '')
    .replace(/\bmcp\b/, 'MCP')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function recordOf(value: Json): Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
}

/** A canonical form: equal values give equal text, regardless of key order. */
function canonical(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${entries.join()}}`
}
