// Skills: text instructions that agents receive as files.
import { BookOpen } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import {
  AGENTS_COLUMN,
  CHANGED_COLUMN,
  CREATED_COLUMN,
  nameColumn,
  ResourcePage,
} from '../../app/resource-page'
import type { Column } from '../../ui/table'
import { CreateSkill } from './create-skill'
import { SkillPeek } from './skill-peek'

const SkillsQuery = graphql(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $sort: ListSort, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: $sort, includeArchived: $includeArchived) {
      total
      data { id name description version createdAt updatedAt archivedAt assignmentCount }
    }
  }
`)

type Data = ResultOf<typeof SkillsQuery>

const COLUMNS: Column<NonNullable<Data['skills']>['data'][number]>[] = [
  nameColumn('2fr'),
  AGENTS_COLUMN,
  { id: 'version', head: 'Version', width: '5rem', from: 'md', cell: ({ version }) => version },
  CREATED_COLUMN,
  CHANGED_COLUMN,
]

export function SkillsPage() {
  return (
    <ResourcePage
      path="skills"
      title="Skills"
      about="Instructions that agents read when they need them."
      doc="tools.md#a-skill"
      icon={BookOpen}
      names={['skill', 'skills']}
      query={SkillsQuery}
      pageOf={({ skills }) => skills}
      on={['SKILL']}
      columns={COLUMNS}
      may="skill.create"
      hint="Search for part of a name."
      empty={{
        title: 'No skills yet',
        about:
          'A skill is a text, such as how you answer complaints. Write it once and give it to the agents that need it; they get each change without a restart.',
        command: (org) =>
          `mutation {\n  createSkill(orgId: ${org}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`,
      }}
      peek={(of) => <SkillPeek {...of} />}
      create={(of) => <CreateSkill {...of} />}
    />
  )
}
