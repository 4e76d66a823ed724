// Text that would run, fetch, mislead or overflow if it were taken for more than text; and an organization that is full of it.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { asks, begins, record, says, thread } from './acts.mjs'
import { records } from './pages.mjs'
import { api, apiAs, until, world } from './stage.mjs'

export const ATTACKS = [
  '<img src=x onerror="window.hurt=1">',
  '<script>window.hurt=1</script>',
  '<svg onload="window.hurt=1"><a href="javascript:window.hurt=1">x</a></svg>',
  '![seen](https://attacker.example/pixel.png?leak=1)',
  '[click](javascript:window.hurt=1)',
  '[https://bank.example](https://attacker.example/)',
  '<iframe src="https://attacker.example/"></iframe>',
  'invoice\u202egnp.exe',
  'zero\u200bwidth',
  `huge${'w'.repeat(3_000)}`,
  '{{constructor.constructor("window.hurt=1")()}}',
]

/** A name: one line, which the service keeps free of what turns the direction. What has no width stays in it. */
const NAME = `<img src=x onerror=window.hurt=1>\u200b${'w'.repeat(46)}`
/** The longest description: all of them, the huge word shorter. */
const TEXT = [...ATTACKS.filter((each) => each.length < 100), 'w'.repeat(900)].join('\n')
/** What is not kept to one line, and is short. */
const SHORT = `\u202egnp.exe<b>${'w'.repeat(60)}`

export async function unhurt(page) {
  assert.equal(await page.evaluate(() => window.hurt), undefined, 'nothing ran')
  assert.equal(await page.locator('#main script, #main iframe, #main img[src^="http"], #main svg[onload], #main [onerror]').count(), 0)
  assert.equal(await page.locator('a[href^="javascript"]').count(), 0)
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide`)
}

/** Where a character that turns the direction of text stands unmarked, and turns what stands beside it or a heading. */
export const turned = (page) =>
  page.evaluate(() => {
    const found = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!/[\u202a-\u202e\u2066-\u2069]/.test(node.textContent) || node.parentElement.closest('textarea, option, script')) continue
      let up = node.parentElement
      while (getComputedStyle(up).display.startsWith('inline') && up.localName !== 'bdi') up = up.parentElement
      const isAlone = up.localName === 'bdi' || up.textContent.trim() === node.textContent.trim()
      if (!isAlone || up.closest('h1, h2, h3')) found.push(`<${up.localName}> ${up.textContent.trim().slice(0, 80)}`)
    }
    return found
  })

/** Makes everything that has a name or a text hostile. Answers the ids of what was made besides. */
export async function spoil() {
  await people()
  const [contact, answered, dismissed, used] = [await outside(), await denied(), await ended(), await tool()]
  await api(
    `mutation(
      $org: Id!, $agent: Id!, $server: Id!, $skill: Id!, $credential: Id!, $mcpServer: Id!, $image: Id!, $model: Id!, $channel: Id!,
      $conversation: Id!, $contact: Id!, $name: String!, $text: String!, $short: String!, $labels: Labels!
    ) {
      updateServer(orgId: $org, id: $server, input: { name: $name, description: $text, region: $short, hostname: $short, address: $short, labels: $labels }) { id }
      updateSkill(orgId: $org, id: $skill, reason: $name, input: { name: $name, description: $text, content: $text, model: $name }) { id }
      updateCredential(orgId: $org, id: $credential, input: { name: $name, description: $text, fields: [{ label: $name, value: "sesame" }] }) { id }
      updateMcpServer(orgId: $org, id: $mcpServer, input: { name: $name, description: $text }) { id }
      updateImage(orgId: $org, id: $image, input: { name: $name, description: $text, defaultModel: $name }) { id }
      updateModelCredential(orgId: $org, id: $model, input: { name: $name, provider: $name, secret: "sesame" }) { id }
      updateChannel(orgId: $org, id: $channel, input: { name: $name, instructions: $text, destination: $short }) { id }
      updateConversation(orgId: $org, id: $conversation, input: { title: $name }) { id }
      updateContact(orgId: $org, id: $contact, input: { name: $name, note: $text }) { id }
      updateOrganization(orgId: $org, input: { name: $name, taxName: $short, taxAddress: $short }) { id }
      setSkillAgents(orgId: $org, id: $skill, input: { agentIds: [$agent] }) { id }
      setCredentialAgents(orgId: $org, id: $credential, input: { agentIds: [$agent] }) { id }
      updateAgent(orgId: $org, id: $agent, reason: $name, input: { name: $name, description: $text, role: $short, instructions: $text, modelOverride: $name, modeOverride: $name, approvalCategories: [$name] }) { id }
    }`,
    {
      ...records, agent: world.agent, model: records.modelCredential, conversation: world.conversation, contact: contact.id,
      name: NAME, text: TEXT, short: SHORT, labels: { [NAME]: TEXT.slice(0, 255), '\u202e': SHORT }, approval: undefined,
    },
  )
  // Last: from here on nothing runs, and every page says why.
  await api('mutation($org: Id!, $reason: String!) { stopOrganization(orgId: $org, reason: $reason) { id } }', {
    reason: `${NAME} ${ATTACKS[5]} ${'w'.repeat(100)}`,
  })
  return { answered, dismissed, used, outside: contact.conversation, hook: contact.channel }
}

async function people() {
  const names = Object.keys(world.people).map((role, n) => [role, `${NAME}${n}`])
  for (const [role, name] of names) await apiAs(role, 'mutation($name: String!) { changeName(name: $name) { id } }', { name })
  await apiAs('OWNER', 'mutation($org: Id!, $id: Id!, $name: String!) { updateServiceToken(orgId: $org, id: $id, input: { name: $name }) { id } }', {
    id: records.token,
    name: NAME,
  })
  await apiAs('OWNER', 'mutation($org: Id!, $id: Id!, $name: String!) { updateEventEndpoint(orgId: $org, id: $id, input: { name: $name }) { id } }', {
    id: records.endpoint,
    name: NAME,
  })
  await apiAs(
    'OWNER',
    'mutation($org: Id!, $text: String!, $reason: String!) { editPolicy(orgId: $org, input: { version: "none", text: $text, reason: $reason }) { version } }',
    { text: TEXT.replaceAll(/^/gm, '# '), reason: NAME },
  )
}

/** An outsider writes through a channel under a hostile name; another one is refused. Answers the contact. */
async function outside() {
  const secret = 'sesame-of-the-hook'
  const { createChannel } = await api(
    `mutation($org: Id!, $agent: Id!, $name: String!, $secret: SecretString!) {
      createChannel(orgId: $org, input: {
        name: $name, agentId: $agent, transport: WEBHOOK, direction: INBOUND, webhook: { inboundSecret: $secret, signatureHeader: "X-Signature" }
      }) { id inboundPath }
    }`,
    { agent: world.agent, name: `${NAME.slice(0, 70)} hook`, secret },
  )
  const writes = async (id) => {
    const body = JSON.stringify({ id: `m-${id}`, text: TEXT, title: TEXT.slice(0, 200), from: { id, name: `${SHORT} ${NAME}` } })
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
    const headers = { 'content-type': 'application/json', 'x-signature': signature }
    const answer = await fetch(world.base + createChannel.inboundPath, { method: 'POST', headers, body })
    assert.ok(answer.ok, `${answer.status}`)
    return answer.json()
  }
  const { conversation_id: conversation } = await writes(`stranger-${NAME}`)
  await api('mutation($org: Id!, $id: Id!, $origin: String!) { addWhitelistOrigin(orgId: $org, id: $id, input: { originId: $origin }) { id } }', {
    id: createChannel.id,
    origin: `${NAME} of the list`,
  })
  assert.equal((await writes(`refused-${NAME}`)).status, 'ignored')
  const contact = await until(async () => (await record('conversation', conversation, 'contactId')).contactId, 'the contact')
  return { id: contact, conversation, channel: createChannel.id }
}

/** An action with a hostile title, denied with hostile words. */
async function denied() {
  const { approval } = await asks(`do execute ${ATTACKS[0]} ${ATTACKS[7]} {"command": ${JSON.stringify(TEXT)}}`)
  await api(
    'mutation($org: Id!, $id: Id!, $text: String!) { answerApproval(orgId: $org, id: $id, input: { options: ["deny"], text: $text }) { id } }',
    { id: approval, text: TEXT },
  )
  return approval
}

/** A question, dismissed with a hostile comment. */
async function ended() {
  const { approval } = await asks(`ask ${ATTACKS[0]} ${'w'.repeat(300)} | ${ATTACKS[1]} | ${ATTACKS[7]}`)
  await api('mutation($org: Id!, $id: Id!, $text: String!) { dismissApproval(orgId: $org, id: $id, comment: $text) { id } }', {
    id: approval,
    text: TEXT,
  })
  return approval
}

/** A conversation in which a tool has answered with hostile text. */
async function tool() {
  const conversation = await begins('hello')
  await until(async () => (await thread(conversation)).some(({ role }) => role === 'ASSISTANT'), 'the answer')
  const asked = { question: 'Which?', options: [ATTACKS[0], ATTACKS[7]] }
  const file = { filename: `${NAME}.html`, content: ATTACKS[1], caption: TEXT }
  await says(conversation, `call ask_person ${JSON.stringify(asked)}\ncall send_file ${JSON.stringify(file)}`)
  const approval = await until(async () => {
    const { approvalFeed } = await api(
      'query($org: Id!, $id: Id!) { approvalFeed(orgId: $org, conversationId: $id, status: [PENDING]) { data { id } } }',
      { id: conversation },
    )
    return approvalFeed.data[0]
  }, 'the question')
  await api('mutation($org: Id!, $id: Id!, $text: String!) { answerApproval(orgId: $org, id: $id, input: { text: $text }) { id } }', {
    id: approval.id,
    text: TEXT,
  })
  await until(async () => (await thread(conversation)).some(({ kind }) => kind === 'FILE'), 'what the tools did')
  return conversation
}
