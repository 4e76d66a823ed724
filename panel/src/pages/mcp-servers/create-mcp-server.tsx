// Creates an MCP server.
import { useState } from 'react'
import { refusalsOf } from '../../api/bounds'
import { placeErrors } from '../../api/form-errors'
import { graphql } from '../../api/graphql'
import { useFormAct } from '../../api/use-form-act'
import { useOrg } from '../../app/organization'
import { RadioGroup } from '../../ui/choices'
import { Field } from '../../ui/field'
import { FormDialog } from '../../ui/form-dialog'
import { Select, TextInput } from '../../ui/inputs'
import { LinesInput } from '../../ui/lines-input'
import { Notice } from '../../ui/notice'
import { CATALOGUE, type Known } from './catalogue'
import { TRANSPORTS, type Transport, transportInput } from './transport'

const Create = graphql(`
  mutation CreateMcpServer($orgId: Id!, $input: CreateMcpServerInput!) {
    createMcpServer(orgId: $orgId, input: $input) { id name }
  }
`)

export function CreateMcpServer({
  onClose,
  onCreated,
}: {
  onClose: () => void
  onCreated: (id: number) => void
}) {
  const { id: orgId } = useOrg()
  const create = useFormAct(Create)
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [transport, setTransport] = useState<Transport>('HTTP')
  const [url, setUrl] = useState('')
  const [command, setCommand] = useState('')
  const [args, setArgs] = useState<string[]>([])
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState<string | null>(null)
  const [known, setKnown] = useState<Known>()
  const fill = (chosen: string) => {
    const entry = CATALOGUE.find(({ name }) => name === chosen)
    setKnown(entry)
    setName(entry?.name ?? '')
    setDescription(entry?.description ?? '')
    setTransport(entry?.transport ?? 'HTTP')
    setUrl(entry?.url ?? '')
    setCommand(entry?.command ?? '')
    setArgs(entry?.args ?? [])
  }
  const submit = async () => {
    const wrong = refusalsOf('CreateMcpServerInput', {
      name,
      description: description || null,
      ...(transport === 'STDIO' ? { command, args } : { url }),
    })
    setErrors(wrong)
    if (Object.keys(wrong).length > 0) return
    const { url: at, ...rest } = transportInput(transport, url, command, args)
    const input = { name, description: description || null, ...rest, ...(at !== null && { url: at }) }
    const { data, error } = await create({ orgId, input }, { quiet: true, said: `Created ${name}` })
    if (data?.createMcpServer) return onCreated(data.createMcpServer.id)
    const found = placeErrors(error, ['name', 'description', 'command', 'args', 'url'])
    setErrors(found.errors)
    setProblem(found.problem)
  }
  return (
    <FormDialog
      title="New MCP server"
      width="lg"
      action="Create the MCP server"
      busy={create.pending}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Known server" hint="Fills in the form. Its documentation says what it needs." optional>
        <Select
          value={known?.name ?? ''}
          onValue={fill}
          options={[
            { value: '', label: 'None' },
            ...CATALOGUE.map(({ name, title }) => ({ value: name, label: title })),
          ]}
        />
      </Field>
      {known && (
        <p className="text-sm text-muted">
          {known.credential ?? 'It needs no credential.'}{' '}
          <a className="link" href={known.documentation} target="_blank" rel="noreferrer">
            Documentation
          </a>
        </p>
      )}
      <Field label="Name" error={errors.name}>
        <TextInput value={name} onValue={setName} autoComplete="off" />
      </Field>
      <Field label="Description" optional error={errors.description}>
        <TextInput value={description} onValue={setDescription} />
      </Field>
      <RadioGroup
        label="Connection"
        doc="tools.md#an-mcp-server"
        value={transport}
        onValue={setTransport}
        options={TRANSPORTS}
      />
      {transport === 'STDIO' ? (
        <>
          <Field label="Command" doc="tools.md#installed-elsewhere" error={errors.command}>
            <TextInput value={command} onValue={setCommand} className="font-mono" spellCheck={false} />
          </Field>
          <Field label="Arguments" hint="One per line." optional error={errors.args}>
            <LinesInput value={args} onValue={setArgs} />
          </Field>
        </>
      ) : (
        <Field label="URL" doc="hosts.md#networks-that-agents-may-reach" error={errors.url}>
          <TextInput type="url" value={url} onValue={setUrl} placeholder="https://tickets.example.com/mcp" />
        </Field>
      )}
      {problem && <Notice>{problem}</Notice>}
    </FormDialog>
  )
}
