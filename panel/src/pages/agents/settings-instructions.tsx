// The instructions that people write for an agent.
import { Link } from '@tanstack/react-router'
import { boundsOf } from '../../api/bounds'
import { useOrg } from '../../app/organization'
import { TextArea } from '../../ui/inputs'
import { SectionField, SectionForm } from '../../ui/section-form'
import type { AgentSettings } from './settings'
import { useAgentSection } from './use-agent-section'
import { countInWords } from './words'

const { maxLength } = boundsOf('UpdateAgentInput.instructions')

export function Instructions({ agent }: { agent: AgentSettings }) {
  const org = useOrg()
  const form = useAgentSection(agent, ['instructions'])
  const text = form.values.instructions ?? ''
  return (
    <SectionForm
      title="Instructions"
      doc="agents.md#instructions"
      about={
        <>
          The agent gets them at the beginning of each conversation, and again after each change. Earlier ones
          are in its{' '}
          <Link to="." search={{ tab: 'revisions' } as never} className="link">
            revisions
          </Link>
          . For what it needs only sometimes, write a{' '}
          <Link to="/o/$org/skills" params={{ org: org.id }} className="link">
            skill
          </Link>
          .
        </>
      }
      form={form}
    >
      <SectionField
        form={form}
        name="instructions"
        label="Instructions"
        hint={`In force from the next turn. ${countInWords(text, maxLength)}`}
        optional
      >
        <TextArea
          rows={8}
          maxRows={30}
          value={text}
          onValue={(value) => form.set('instructions', value || null)}
        />
      </SectionField>
    </SectionForm>
  )
}
