// After the first answer: an agent with a program and a model of its own.
import { Link } from '@tanstack/react-router'
import { runLine } from '../../app/join-line'
import { useOrg } from '../../app/organization'
import { Code, CodeBlock } from '../../ui/code'
import type { StartServer } from './start-page'

export function RealAgent({ server }: { server: StartServer }) {
  const { id: org } = useOrg()
  return (
    <section className="mt-4 rounded-card border border-line p-4">
      <h2 className="font-semibold">Next: an agent with a model</h2>
      <div className="mt-2 space-y-2 text-sm text-muted">
        <p>
          Install OpenCode on {server.name} in a folder on every user’s <Code>PATH</Code>, such as{' '}
          <Code>/usr/local/bin</Code>. A host starts only programs that its owner allows: stop the host (its
          agents keep running), and start it with
        </p>
        <CodeBlock text={`${runLine(server.id)} --allow opencode`} label="the line that allows OpenCode" />
        <p>
          Then create an{' '}
          <Link to="/o/$org/agents" params={{ org }} search={{ tab: 'images' }} className="link">
            image
          </Link>{' '}
          with the reference <Code>opencode</Code> and the profile OpenCode, and an agent with this image. Its
          settings take the model and its key.
        </p>
      </div>
    </section>
  )
}
