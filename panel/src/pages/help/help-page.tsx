// Help: the manual of this version, the keys of the panel, the version.
import { useEffect, useState } from 'react'
import { runNamed } from '../../keys/registry'
import { Button } from '../../ui/button'
import { PageBody, PageHeader } from '../../ui/page'
import { Fact, Facts, Panel } from '../../ui/panel'
import { MANUAL } from './manual'

export function HelpPage() {
  const version = useVersion()
  return (
    <>
      <PageHeader title="Help" about="The manual of this version, served by this installation." />
      <PageBody narrow>
        {MANUAL.map(({ title, pages }) => (
          <Panel key={title} title={title}>
            <Facts>
              {pages.map(({ name, to, about }) => (
                <Fact key={to} name={<Document to={`/docs/${to}`}>{name}</Document>}>
                  {about}
                </Fact>
              ))}
            </Facts>
          </Panel>
        ))}
        <Panel title="Reference">
          <Facts>
            <Fact name={<Document to="/docs">All pages</Document>}>the whole manual</Fact>
            <Fact name={<Document to="/docs/api">REST</Document>}>every operation of /v1, to try</Fact>
            <Fact name={<Document to="/docs/graphql">GraphQL</Document>}>the explorer of the schema</Fact>
          </Facts>
        </Panel>
        <Panel title="This panel">
          <Facts>
            <Fact name="Keys">
              <Button size="sm" keys="?" onClick={() => runNamed('panel.keys')}>
                Keyboard shortcuts
              </Button>
            </Fact>
            <Fact name="Version">{version ?? 'unknown'}</Fact>
          </Facts>
        </Panel>
      </PageBody>
    </>
  )
}

function Document({ to, children }: { to: string; children: string }) {
  return (
    <a href={to} target="_blank" rel="noopener" className="link">
      {children}
    </a>
  )
}

/** The version of the service, from its health probe. */
function useVersion(): string | null {
  const [version, setVersion] = useState<string | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    const read = async () => {
      const answer = await fetch('/health', { signal: stop.signal })
      const { version } = (await answer.json()) as { version?: unknown }
      if (typeof version === 'string') setVersion(version)
    }
    // Without an answer it is unknown.
    read().catch(() => undefined)
    return () => stop.abort()
  }, [])
  return version
}
