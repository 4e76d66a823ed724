// Lighthouse gives the main pages 100 for accessibility and 100 for best practices. Its reports are in target/panel/.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { audit } from '../lighthouse/audit.mjs'
import { asks } from './acts.mjs'
import { keeps, launch, signIn, world } from './stage.mjs'

const org = `/o/${world.org}`

/** A port that is free. */
async function port() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A browser that Lighthouse can reach, with a person signed in. */
async function opens(t, person) {
  const [folder, debugged] = [mkdtempSync(join(tmpdir(), 'muster-lighthouse-')), await port()]
  const context = await launch({ folder, port: debugged })
  t.after(async () => {
    await context.close()
    rmSync(folder, { recursive: true, force: true })
  })
  if (person) await signIn(context, person)
  return debugged
}

async function isWhole(name, at, debugged) {
  const { address, problem, scores, lost, report } = await audit(world.base + at, debugged)
  keeps(`lighthouse-${name}.html`, report)
  assert.equal(problem, null, name)
  assert.equal(address, world.base + at, `${name} is shown`)
  assert.deepEqual({ scores, lost }, { scores: { accessibility: 100, 'best-practices': 100 }, lost: [] }, name)
}

test('the sign-in is whole to Lighthouse', async (t) => {
  await isWhole('sign-in', '/sign-in', await opens(t))
})

test('the pages of a signed-in person are whole to Lighthouse', { timeout: 120_000 }, async (t) => {
  await asks('do execute Clear the quay {"command": "rm -r quay"}')
  const debugged = await opens(t, world.people.ADMIN)
  await isWhole('overview', org, debugged)
  await isWhole('approvals', `${org}/approvals`, debugged)
  await isWhole('conversation', `${org}/conversations/${world.conversation}`, debugged)
  await isWhole('agent', `${org}/agents/${world.agent}`, debugged)
})
