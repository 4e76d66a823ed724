import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { asCurl, asGraphql, inExplorer } from './request-text'

const request = {
  name: 'One',
  query: 'query One($q: String) {\n  search(orgId: 1, q: $q) { id }\n}\n',
  variables: { q: `it's "$HOME" \`id\`\nEND` },
}

test('a document carries its variables as a comment, line by line', () => {
  const text = asGraphql([request, { ...request, variables: {} }])
  expect(text.split('\n').filter((line) => line.startsWith('# '))).toEqual([
    '# Variables:',
    '# {',
    String.raw`#   "q": "it's \"$HOME\" ${'`'}id${'`'}\nEND"`,
    '# }',
    '# Variables:',
    '# {}',
  ])
})

test('a shell hands curl exactly what the page asks', () => {
  const script = asCurl([request], 'https://muster.example/graphql')
  // Instead of curl: its arguments, and what it reads.
  const shell = `curl() { printf '%s\\n' "$@"; cat; }\nMUSTER_TOKEN=secret\n${script}`
  const said = execFileSync('sh', ['-c', shell], { encoding: 'utf8' }).trim().split('\n')
  expect(said.slice(0, -1)).toEqual([
    '--fail-with-body',
    '--silent',
    '--show-error',
    '--write-out',
    String.raw`\n`,
    'https://muster.example/graphql',
    '--header',
    'authorization: Bearer secret',
    '--header',
    'content-type: application/json',
    '--data-binary',
    '@-',
  ])
  expect(JSON.parse(said.at(-1) ?? '')).toEqual({ query: request.query.trim(), variables: request.variables })
})

test('the explorer gets both from its address', () => {
  const given = new URL(inExplorer(request), 'https://muster.example').searchParams
  expect(given.get('query')).toBe(request.query.trim())
  expect(JSON.parse(given.get('variables') ?? '')).toEqual(request.variables)
})
