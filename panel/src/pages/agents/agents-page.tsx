// All agents: which are up, which need somebody, and where they run. Images, what agents run from, are its second tab.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Bot, Plus } from 'lucide-react'
import { useOrg } from '../../app/organization'
import { useActions } from '../../keys/use-actions'
import { Gate, useRefused } from '../../permissions/gate'
import { Button, buttonClass } from '../../ui/button'
import { PageHeader } from '../../ui/page'
import { Tabs } from '../../ui/tabs'
import { AgentList } from './agent-list'
import { CreateAgent } from './create-agent'
import { Filters } from './filters'
import { Images } from './images'

const TABS = [
  { id: 'agents', label: 'Agents', link: { to: '.', search: {} } as object },
  { id: 'images', label: 'Images' },
]

export function AgentsPage() {
  const org = useOrg()
  const search = useSearch({ from: '/inside/o/$org/agents' })
  const navigate = useNavigate({ from: '/o/$org/agents' })
  const set = (change: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true })
  const images = search.tab === 'images'
  const refused = useRefused('agent.create')
  const create = () => void navigate({ search: (before) => ({ ...before, open: 'new' as const }) })
  useActions([
    {
      id: 'agents.new',
      label: 'New agent',
      group: 'Agents',
      keys: 'c',
      also: 'create',
      run: create,
      refused,
    },
  ])
  const button = (
    <Gate may="agent.create">
      <Button look="primary" icon={Plus} keys="c" onClick={create}>
        New agent
      </Button>
    </Gate>
  )
  return (
    <>
      <PageHeader
        title="Agents"
        about={images ? 'What agents run from.' : undefined}
        actions={images ? <NewImage onOpen={() => set({ open: 'new' })} /> : button}
      >
        <Tabs label="Agents and images" tabs={TABS} current={images ? 'images' : 'agents'} />
      </PageHeader>
      {images ? (
        <Images
          archived={search.archived === 'true'}
          onArchived={(archived) => set({ archived: archived ? 'true' : undefined })}
          creating={search.open === 'new'}
          onClose={() => set({ open: undefined })}
          peek={search.peek}
          onPeek={(peek) => set({ peek })}
        />
      ) : (
        <>
          <Filters search={search} onChange={set} />
          <AgentList
            search={search}
            create={
              <>
                {button}
                <Link to="/o/$org/start" params={{ org: org.id }} className={buttonClass()}>
                  <Bot size={15} aria-hidden /> Step by step
                </Link>
              </>
            }
          />
        </>
      )}
      {!images && search.open === 'new' && (
        <CreateAgent
          onClose={() => set({ open: undefined })}
          onCreated={(id) => void navigate({ to: '/o/$org/agents/$id', params: { org: org.id, id } })}
        />
      )}
    </>
  )
}

function NewImage({ onOpen }: { onOpen: () => void }) {
  return (
    <Gate may="image.edit">
      <Button look="primary" icon={Plus} onClick={onOpen}>
        New image
      </Button>
    </Gate>
  )
}
