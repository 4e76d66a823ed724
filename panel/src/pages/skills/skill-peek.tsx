// A skill beside the list: its text, its agents, its versions.
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { ArchiveButton } from '../../app/archive-button'
import { AssignedAgents } from '../../app/assigned-agents'
import { useOrg } from '../../app/organization'
import { Gate } from '../../permissions/gate'
import { Select, TextArea, TextInput } from '../../ui/inputs'
import { Peek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SectionField, SectionForm } from '../../ui/section-form'
import { ListSkeleton } from '../../ui/skeleton'
import { useSection } from '../../ui/use-section'
import { Versions } from './versions'

const SkillQuery = graphql(`
  query Skill($orgId: Id!, $id: Id!) {
    skill(orgId: $orgId, id: $id) {
      id name description content effort model version revision archivedAt viewerCan
      agents { id name avatarUrl }
    }
  }
`)
const Update = graphql(`
  mutation UpdateSkill($orgId: Id!, $id: Id!, $ifRevision: Int, $input: UpdateSkillInput!) {
    updateSkill(orgId: $orgId, id: $id, ifRevision: $ifRevision, input: $input) {
      id name description content effort model version revision
    }
  }
`)
const Archive = graphql(`
  mutation ArchiveSkill($orgId: Id!, $id: Id!) {
    archiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`)
const Restore = graphql(`
  mutation UnarchiveSkill($orgId: Id!, $id: Id!) {
    unarchiveSkill(orgId: $orgId, id: $id) { id archivedAt }
  }
`)

export type Skill = NonNullable<ResultOf<typeof SkillQuery>['skill']>

const EFFORTS = [
  { value: 'ANY', label: 'No preference' },
  { value: 'LOW', label: 'Low' },
  { value: 'MEDIUM', label: 'Medium' },
  { value: 'HIGH', label: 'High' },
  { value: 'MAX', label: 'Highest' },
] as const

export function SkillPeek({ id, onClose }: { id: number; onClose: () => void }) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: SkillQuery,
    variables: { orgId, id },
    on: ({ kind, id: changed }) => kind === 'SKILL' && changed === id,
  })
  const [archive, restore] = [useAct(Archive), useAct(Restore)]
  const skill = data?.skill
  return (
    <Peek title={skill?.name ?? 'Skill'} onClose={onClose}>
      {error && !skill ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !skill ? (
        <ListSkeleton />
      ) : (
        <div className="p-4">
          <Gate on={skill} may="skill.edit">
            <Edit skill={skill} />
          </Gate>
          <AssignedAgents kind="skill" what="this skill" record={skill} may="skill.edit" />
          <Versions skill={skill} />
          <ArchiveButton
            what="skill"
            record={skill}
            may={{ archive: 'skill.delete', restore: 'skill.edit' }}
            onArchive={(options) => archive({ orgId, id }, options)}
            onRestore={(options) => restore({ orgId, id }, options)}
          />
        </div>
      )}
    </Peek>
  )
}

const pick = ({ name, description, content, effort, model }: Skill) => ({
  name,
  description,
  content,
  effort,
  model,
})

function Edit({ skill }: { skill: Skill }) {
  const { id: orgId } = useOrg()
  const update = useAct(Update)
  const form = useSection({
    stored: pick(skill),
    revision: skill.revision,
    bounds: {
      name: 'UpdateSkillInput.name',
      description: 'UpdateSkillInput.description',
      content: 'UpdateSkillInput.content',
      model: 'UpdateSkillInput.model',
    },
    save: (changes, ifRevision) =>
      update({ orgId, id: skill.id, ifRevision, input: changes as never }, { quiet: true }),
    ofCurrent: pick,
  })
  return (
    <SectionForm title="The skill" form={form}>
      <SectionField form={form} name="name" label="Name">
        <TextInput value={form.values.name} onValue={(name) => form.set('name', name)} spellCheck={false} />
      </SectionField>
      <SectionField form={form} name="description" label="What it is for" optional>
        <TextInput
          value={form.values.description ?? ''}
          onValue={(description) => form.set('description', description || null)}
        />
      </SectionField>
      <SectionField
        form={form}
        name="content"
        label="Text"
        optional
        asText={(text) => shortened(String(text))}
      >
        <TextArea
          rows={10}
          maxRows={28}
          className="font-mono text-sm"
          value={form.values.content}
          onValue={(content) => form.set('content', content)}
        />
      </SectionField>
      <div className="grid gap-4 sm:grid-cols-2">
        <SectionField form={form} name="effort" label="Preferred effort">
          <Select
            value={form.values.effort ?? 'ANY'}
            options={EFFORTS}
            onValue={(effort) => form.set('effort', effort === 'ANY' ? null : (effort as Skill['effort']))}
          />
        </SectionField>
        <SectionField form={form} name="model" label="Preferred model" optional>
          <TextInput
            value={form.values.model ?? ''}
            onValue={(model) => form.set('model', model || null)}
            spellCheck={false}
          />
        </SectionField>
      </div>
    </SectionForm>
  )
}

/** Enough of the text to recognize it. */
const shortened = (text: string) => (text.length > 600 ? `${text.slice(0, 600)}…` : text)
