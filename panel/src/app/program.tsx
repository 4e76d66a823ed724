// How to install Muster's program on a machine for agents.
import { Code, CodeBlock } from '../ui/code'

const COPY = 'scp "$(command -v muster)" you@the-machine:/usr/local/bin/muster'
const BUILD = 'cargo install --locked --path .'

export function ProgramHint() {
  return (
    <details className="rounded-control border border-line px-3 py-2 text-sm" data-outlined>
      <summary className="rounded-sm font-medium">
        The machine does not know <Code>muster</Code> yet?
      </summary>
      <div className="mt-2 space-y-2 text-muted">
        <p>
          It is one program, which is also the service. On the machine that runs Muster it is already there.
          Copy it from there to another machine with the same kind of Linux:
        </p>
        <CodeBlock text={COPY} label="the line that copies the program" />
        <p>Or build it on the machine, in a copy of Muster’s source (it needs Rust and a C compiler):</p>
        <CodeBlock text={BUILD} label="the line that builds the program" />
        <p>
          If you started Muster with <Code>cargo run</Code>, write <Code>cargo run --</Code> in place of{' '}
          <Code>muster</Code>, in the same folder.
        </p>
      </div>
    </details>
  )
}
