// Images: names for the programs or container images that servers launch agents from.
import { Boxes } from 'lucide-react'
import type { ReactNode } from 'react'
import { graphql, type ResultOf } from '../../api/graphql'
import { useAct } from '../../api/use-act'
import { useLive } from '../../api/use-live'
import { ArchiveButton } from '../../app/archive-button'
import { Chip, FilterBar } from '../../app/filters'
import { useOrg } from '../../app/organization'
import { GatedForm } from '../../permissions/gate'
import { Badge } from '../../ui/badge'
import { Empty } from '../../ui/empty'
import { WithPeek } from '../../ui/peek'
import { ProblemView } from '../../ui/problem'
import { ListSkeleton } from '../../ui/skeleton'
import { type Column, Table } from '../../ui/table'
import { Time } from '../../ui/time'
import { Visible } from '../../ui/visible'
import { CreateImage } from './create-image'
import { ImagePeek } from './image-peek'

const ImagesQuery = graphql(`
  query Images($orgId: Id!, $includeArchived: Boolean) {
    images(orgId: $orgId, includeArchived: $includeArchived) {
      id name description reference digest defaultModel profile revision archivedAt createdAt
    }
    organization(orgId: $orgId) { id defaultImage { id } }
  }
`)
const Archive = graphql(`
  mutation ArchiveImage($orgId: Id!, $id: Id!) { archiveImage(orgId: $orgId, id: $id) { id archivedAt } }
`)
const Restore = graphql(`
  mutation UnarchiveImage($orgId: Id!, $id: Id!) { unarchiveImage(orgId: $orgId, id: $id) { id archivedAt } }
`)

export type ImageRecord = NonNullable<ResultOf<typeof ImagesQuery>['images']>[number]

const COLUMNS: Column<ImageRecord>[] = [
  {
    id: 'name',
    head: 'Name',
    width: '1.5fr',
    cell: ({ name, description, archivedAt, reference }) => (
      <span className="min-w-0">
        <span className="flex items-center gap-2">
          <span className="truncate font-medium">
            <Visible text={name} />
          </span>
          {archivedAt && <Badge>Archived</Badge>}
        </span>
        {description && <span className="block truncate text-sm text-muted">{description}</span>}
        <span className="block truncate font-mono text-sm text-muted sm:hidden">{reference}</span>
      </span>
    ),
  },
  {
    id: 'reference',
    head: 'Reference',
    width: '1.5fr',
    from: 'sm',
    cell: ({ reference }) => (
      <span className="truncate font-mono text-sm" data-tip={reference}>
        <Visible text={reference} />
      </span>
    ),
  },
  {
    id: 'model',
    head: 'Default model',
    width: '1fr',
    from: 'lg',
    cell: ({ defaultModel }) => (
      <span className="truncate text-muted">{defaultModel ?? 'the program’s default'}</span>
    ),
  },
  {
    id: 'made',
    head: 'Created',
    width: '8rem',
    from: 'md',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

interface Props {
  archived: boolean
  onArchived: (archived: boolean) => void
  creating: boolean
  onClose: () => void
  peek: number | undefined
  onPeek: (id: number | undefined) => void
  /** The button that creates one. */
  create: ReactNode
}

export function Images({ archived, onArchived, creating, onClose, peek, onPeek, create }: Props) {
  const { id: orgId } = useOrg()
  const { data, error, loading, refetch } = useLive({
    query: ImagesQuery,
    variables: { orgId, includeArchived: archived },
    on: ['IMAGE', 'ORGANIZATION'],
  })
  const [archive, restore] = [useAct(Archive), useAct(Restore)]
  if (error && !data?.images) return <ProblemView error={error} retry={refetch} />
  if (loading || !data?.images) return <ListSkeleton />
  const shown = data.images.find(({ id }) => id === peek)
  return (
    <>
      <FilterBar apart filters={{ archived: archived || undefined }} onChange={() => onArchived(false)}>
        <Chip on={archived} onToggle={() => onArchived(!archived)}>
          Show archived ones
        </Chip>
      </FilterBar>
      <WithPeek
        list={
          <Table
            label="Images"
            items={[...data.images]}
            idOf={idOf}
            nameOf={nameOf}
            columns={peek ? COLUMNS.slice(0, 2) : COLUMNS}
            openId={peek}
            onOpen={({ id }) => onPeek(id)}
            onActive={({ id }) => peek && onPeek(id)}
            empty={
              <Empty
                icon={Boxes}
                title="No images yet"
                action={create}
                command={`mutation {\n  createImage(orgId: ${orgId}, input: { name: "Our agent", reference: "example/agent:1.2" }) { id }\n}`}
              >
                An image names the program that an agent runs. Create one for each program that the owners of
                your hosts have listed: a host starts nothing else.
              </Empty>
            }
          />
        }
        peek={
          shown && (
            <ImagePeek
              key={shown.id}
              image={shown}
              isDefault={data.organization?.defaultImage?.id === shown.id}
              onClose={() => onPeek(undefined)}
              actions={
                <ArchiveButton
                  what="image"
                  size="sm"
                  record={shown}
                  may={{ archive: 'image.edit', restore: 'image.edit' }}
                  onArchive={(options) => archive({ orgId, id: shown.id }, options)}
                  onRestore={(options) => restore({ orgId, id: shown.id }, options)}
                />
              }
            />
          )
        }
      />
      {creating && (
        <GatedForm may="image.edit" onClose={onClose}>
          <CreateImage
            onClose={onClose}
            onCreated={(id) => {
              onClose()
              onPeek(id)
            }}
          />
        </GatedForm>
      )}
    </>
  )
}

const idOf = ({ id }: ImageRecord) => id
const nameOf = ({ name }: ImageRecord) => name
