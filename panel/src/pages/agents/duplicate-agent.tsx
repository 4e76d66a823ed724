// Duplicates an agent: the form of a new one, with the settings of this one. Skills, MCP servers and credentials are
// assigned afterwards, each as on its own page. Channels and conversations stay with the original.
import { useEffect, useState } from 'react'
import { boundsOf } from '../../api/bounds'
import { wordsOf } from '../../api/errors'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { type Kind, useGive } from '../../app/assigned-agents-calls'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Checkbox } from '../../ui/choices'
import { Notice } from '../../ui/notice'
import { sayProblem } from '../../ui/toast-store'
import { Visible } from '../../ui/visible'
import { CreateAgent } from './create-agent'
import { editsLike, nameOfCopy } from './duplicate'
import { SettingsFields } from './settings-fields'
import { useUpdateAgent } from './use-agent-section'

const SourceQuery = graphql(
  `
  query AgentToDuplicate($orgId: Id!, $id: Id!) {
    settings: agent(orgId: $orgId, id: $id) {
      ...SettingsFields effortOverride thinkingEnabled mcpHttpBridge hubAvailable voiceEnabled voiceId
    }
    agent(orgId: $orgId, id: $id) {
      id
      server { id name }
      image { id name }
      credentials { id name viewerCan }
      mcpServers { id name viewerCan }
      skills { id name viewerCan }
    }
  }
`,
  [SettingsFields],
)

type Source = ResultOf<typeof SourceQuery>
type Access = NonNullable<Source['agent']>

interface Props {
  id: number
  onClose: () => void
  onCreated: (id: number) => void
}

export function DuplicateAgent({ id, onClose, onCreated }: Props) {
  const { id: orgId } = useOrg()
  const { data, error } = useLive({ query: SourceQuery, variables: { orgId, id }, on: () => false })
  const has = data?.settings && data.agent
  const failed = error && !has ? wordsOf(error) : null
  useEffect(() => {
    if (!failed) return
    sayProblem(failed)
    onClose()
  }, [failed, onClose])
  if (!data?.settings || !data.agent) return null
  return <Form settings={data.settings} access={data.agent} onClose={onClose} onCreated={onCreated} />
}

interface FormProps extends Omit<Props, 'id'> {
  settings: NonNullable<Source['settings']>
  access: Access
}

function Form({ settings, access, onClose, onCreated }: FormProps) {
  const org = useOrg()
  const update = useUpdateAgent()
  const give = useGive()
  const items = itemsOf(access)
  const [without, setWithout] = useState<readonly string[]>([])
  const isGiven = (item: Item) =>
    !without.includes(keyOf(item)) && org.can(item.may) && item.viewerCan.includes(item.may)
  const complete = async (made: { id: number; name: string }) => {
    const lacking: string[] = []
    for (const { what, input } of editsLike(settings)) {
      const { error } = await update({ orgId: org.id, id: made.id, input: input as never }, { quiet: true })
      if (error) lacking.push(`${what}: ${wordsOf(error)}`)
    }
    for (const item of items.filter(isGiven)) {
      const refusal = await give(item.kind, item.id, made.id)
      if (refusal) lacking.push(`${item.name}: ${refusal}`)
    }
    if (lacking.length > 0) sayProblem(`${made.name} lacks ${lacking.join(' · ')}`)
    return lacking.length === 0
  }
  return (
    <CreateAgent
      title={`Duplicate ${settings.name}`}
      first={{
        text: {
          name: nameOfCopy(settings.name, boundsOf('CreateAgentInput.name').maxLength),
          role: settings.role ?? '',
          description: settings.description ?? '',
          instructions: settings.instructions ?? '',
          modelOverride: settings.modelOverride ?? '',
        },
        server: access.server,
        image: access.image,
      }}
      complete={complete}
      onClose={onClose}
      onCreated={onCreated}
    >
      {items.length > 0 && (
        <fieldset className="space-y-2">
          <legend className="mb-1.5 text-sm font-medium">Access</legend>
          {items.map((item) => (
            <Gate key={keyOf(item)} on={item} may={item.may}>
              <Checkbox
                checked={isGiven(item)}
                onChecked={(on) => {
                  const others = without.filter((key) => key !== keyOf(item))
                  setWithout(on ? others : [...others, keyOf(item)])
                }}
                label={<Visible text={item.name} />}
                hint={item.word}
              />
            </Gate>
          ))}
        </fieldset>
      )}
      <p className="text-sm text-muted">
        The duplicate gets all settings of {settings.name}, but no channels and no conversations.
      </p>
      {settings.hasModelCredential && (
        <Notice tone="info">
          A model key can’t be read, so the duplicate does not get it. Set one in its settings.
        </Notice>
      )}
    </CreateAgent>
  )
}

const KINDS = [
  { kind: 'skill', list: 'skills', may: 'skill.edit', word: 'Skill' },
  { kind: 'mcp', list: 'mcpServers', may: 'mcp.edit', word: 'MCP server' },
  { kind: 'credential', list: 'credentials', may: 'credential.edit', word: 'Credential' },
] as const satisfies readonly { kind: Kind; list: keyof Access; may: string; word: string }[]

type Item = ReturnType<typeof itemsOf>[number]

const itemsOf = (access: Access) =>
  KINDS.flatMap(({ list, ...about }) => access[list].map((record) => ({ ...record, ...about })))

const keyOf = ({ kind, id }: Item) => `${kind} ${id}`
