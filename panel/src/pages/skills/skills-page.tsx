// Skills: instructions in text that agents are given as files.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { BookOpen, Plus } from 'lucide-react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useLive } from '../../api/use-live'
import { useOrg } from '../../app/organization'
import { useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { Badge } from '../../ui/badge'
import { Checkbox } from '../../ui/choices'
import { Empty } from '../../ui/empty'
import { PageHeader } from '../../ui/page'
import { Pager } from '../../ui/pager'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { SearchInput } from '../../ui/search-input'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { CreateSkill } from './create-skill'
import { SkillPeek } from './skill-peek'

const PAGE = 200

const SkillsQuery = graphql(`
  query Skills($orgId: Id!, $page: Int!, $limit: Int!, $search: String, $includeArchived: Boolean) {
    skills(orgId: $orgId, page: $page, limit: $limit, search: $search, sort: NAME, includeArchived: $includeArchived) {
      total
      data { id name description version updatedAt archivedAt assignmentCount }
    }
  }
`)

type Row = NonNullable<ResultOf<typeof SkillsQuery>['skills']>['data'][number]

const COLUMNS: Column<Row>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '2fr',
    cell: ({ name, description, archivedAt }) => (
      <span className="min-w-0">
        <span className="flex items-center gap-2">
          <span className="truncate font-medium">
            <Visible text={name} />
          </span>
          {archivedAt && <Badge>Archived</Badge>}
        </span>
        {description && <span className="block truncate text-sm text-muted">{description}</span>}
      </span>
    ),
  },
  {
    id: 'agents',
    head: 'Agents',
    width: '5rem',
    cell: ({ assignmentCount }) => <span className="tabular-nums">{assignmentCount || '–'}</span>,
  },
  { id: 'version', head: 'Version', width: '5rem', from: 'md', cell: ({ version }) => version },
  {
    id: 'updated',
    head: 'Changed',
    width: '8rem',
    from: 'sm',
    cell: ({ updatedAt }) => <Time at={updatedAt} />,
  },
]

export function SkillsPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/skills' })
  const navigate = useNavigate({ from: '/o/$org/skills' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }) })
  const page = search.page ?? 1
  const variables = {
    orgId: org.id,
    page,
    limit: PAGE,
    search: search.q ?? null,
    includeArchived: search.archived ?? false,
  }
  const { data, error, loading, refetch } = useLive({ query: SkillsQuery, variables, on: ['SKILL'] })
  const skills = data?.skills
  const make = {
    id: 'skills.new',
    label: 'New skill',
    group: 'Skills',
    keys: 'c',
    also: 'create',
    refused: useRefused('skill.create'),
    run: () => set({ open: 'new' }),
  }
  const create = <ActionButton action={make} look="primary" icon={Plus} />
  return (
    <>
      <PageHeader title="Skills" about="Instructions that agents read when they need them." actions={create}>
        <div className="flex flex-wrap items-center gap-4 pb-2.5">
          <SearchInput label="Search skills" value={search.q} onValue={(q) => set({ q, page: undefined })} />
          <Checkbox
            label="Show archived ones"
            checked={search.archived ?? false}
            onChecked={(archived) => set({ archived: archived || undefined, page: undefined })}
          />
        </div>
      </PageHeader>
      {error && !skills ? (
        <ProblemView error={error} retry={refetch} />
      ) : loading || !skills ? (
        <ListSkeleton />
      ) : (
        <WithPeek
          list={
            <>
              <Table
                label="Skills"
                items={skills.data}
                idOf={idOf}
                nameOf={nameOf}
                columns={COLUMNS}
                question={JSON.stringify(variables)}
                openId={search.peek}
                onOpen={({ id }) => set({ peek: id })}
                onActive={({ id }) => search.peek && set({ peek: id })}
                empty={
                  search.q ? (
                    <Empty icon={BookOpen} title="No skill has this name">
                      Search for part of a name.
                    </Empty>
                  ) : (
                    <Empty
                      icon={BookOpen}
                      title="No skills yet"
                      action={create}
                      command={`mutation {\n  createSkill(orgId: ${org.id}, input: {\n    name: "tone-of-voice", content: "Write short sentences."\n  }) { id }\n}`}
                    >
                      A skill is a text, such as how you answer complaints. Write it once and give it to the
                      agents that need it; they get each change without a restart.
                    </Empty>
                  )
                }
              />
              <Pager
                page={page}
                size={PAGE}
                total={skills.total}
                onPage={(to) => set({ page: to > 1 ? to : undefined })}
              />
            </>
          }
          peek={
            search.peek && (
              <SkillPeek key={search.peek} id={search.peek} onClose={() => set({ peek: undefined })} />
            )
          }
        />
      )}
      {search.open === 'new' && (
        <CreateSkill
          onClose={() => set({ open: undefined })}
          onCreated={(id) => set({ open: undefined, peek: id, q: undefined })}
        />
      )}
    </>
  )
}

const idOf = ({ id }: Row) => id
const nameOf = ({ name }: Row) => name
