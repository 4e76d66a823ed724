// All agents: their state, who needs attention, and where they run. The second tab lists images.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Bot, Plus } from 'lucide-react'
import { useOrg } from '../../app/organization'
import { GatedForm, useRefused } from '../../permissions/gate'
import { ActionButton } from '../../ui/actions'
import { buttonClass } from '../../ui/button'
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
  const close = () => set({ open: undefined })
  const images = search.tab === 'images'
  const [mayNotAgent, mayNotImage] = [useRefused('agent.create'), useRefused('image.edit')]
  const create = () => void navigate({ search: (before) => ({ ...before, open: 'new' as const }) })
  const make = images
    ? { id: 'images.new', label: 'New image', group: 'Images', refused: mayNotImage }
    : { id: 'agents.new', label: 'New agent', group: 'Agents', refused: mayNotAgent }
  const button = (
    <ActionButton look="primary" icon={Plus} action={{ ...make, keys: 'c', also: 'create', run: create }} />
  )
  return (
    <>
      <PageHeader
        title="Agents"
        doc="agents.md"
        about={images ? 'Programs for agents to run.' : undefined}
        actions={button}
      >
        <Tabs label="Agents and images" tabs={TABS} current={images ? 'images' : 'agents'} />
      </PageHeader>
      {images ? (
        <Images
          archived={search.archived === 'true'}
          onArchived={(archived) => set({ archived: archived ? 'true' : undefined })}
          creating={search.open === 'new'}
          onClose={close}
          peek={search.peek}
          onPeek={(peek) => set({ peek })}
          create={button}
        />
      ) : (
        <>
          <Filters search={search} onChange={set} />
          <AgentList
            search={search}
            onSort={set}
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
        <GatedForm may="agent.create" onClose={close}>
          <CreateAgent
            onClose={close}
            onCreated={(id) => void navigate({ to: '/o/$org/agents/$id', params: { org: org.id, id } })}
          />
        </GatedForm>
      )}
    </>
  )
}
