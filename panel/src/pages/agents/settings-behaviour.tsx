// How an agent answers.
import { Select, TextInput } from '../../ui/inputs'
import { labelIn, SectionField, SectionForm, SectionSwitch } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'

const FORMATS = [
  { value: 'MARKDOWN', label: 'Markdown' },
  { value: 'PLAIN', label: 'Plain text' },
  { value: 'PROSE', label: 'Paragraphs' },
  { value: 'STRUCTURED', label: 'Headings and lists' },
] as const
const STYLES = [
  { value: 'DEFAULT', label: 'As the model writes' },
  { value: 'CONCISE', label: 'Short' },
  { value: 'DETAILED', label: 'Detailed' },
  { value: 'FORMAL', label: 'Formal' },
  { value: 'FRIENDLY', label: 'Friendly' },
] as const

export function Behaviour({ agent }: { agent: AgentSettings }) {
  const form = useAgentSection(agent, [
    'language',
    'responseFormat',
    'responseStyle',
    'noEmoji',
    'singleMessage',
  ])
  const { values, set } = form
  return (
    <SectionForm title="Answers" form={form}>
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField form={form} name="responseStyle" label="Style" asText={labelIn(STYLES)}>
          <Select
            value={values.responseStyle}
            options={STYLES}
            onValue={(style) => set('responseStyle', style)}
          />
        </SectionField>
        <SectionField form={form} name="responseFormat" label="Format" asText={labelIn(FORMATS)}>
          <Select
            value={values.responseFormat}
            options={FORMATS}
            onValue={(format) => set('responseFormat', format)}
          />
        </SectionField>
        <SectionField
          form={form}
          name="language"
          label="Language"
          hint="A code such as en or pt-BR. Empty: the sender’s language."
          optional
        >
          <TextInput
            value={values.language ?? ''}
            onValue={(language) => set('language', language || null)}
            autoComplete="off"
            spellCheck={false}
          />
        </SectionField>
      </div>
      <SectionSwitch form={form} name="noEmoji" label="Avoid emoji" />
      <SectionSwitch form={form} name="singleMessage" label="Send each answer as a single message" />
    </SectionForm>
  )
}
