import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asks, begins, opens, thread } from './acts.mjs'
import { ATTACKS, unhurt } from './hostile.mjs'
import { api, browse, isAccessible, until, world } from './stage.mjs'

// `browse` fails on any request to elsewhere and on any breach of the policy.

/** Looks at a page on a phone and in a wide window: what is loaded narrow and then has more room never sticks out in between. */
async function inBoth(page, route, at, look) {
  await page.setViewportSize({ width: 375, height: 800 })
  await opens(page, { route, at: `/o/${world.org}/${at}` })
  await look(375)
  await page.setViewportSize({ width: 1280, height: 800 })
  await look(1280)
}

test('hostile text in messages is text', async (t) => {
  const conversation = await begins(ATTACKS.join('\n\n'))
  await until(async () => (await thread(conversation)).some(({ role }) => role === 'ASSISTANT'), 'the answer')
  const page = await browse(t, { as: 'ADMIN' })
  await inBoth(page, 'conversation', `conversations/${conversation}`, async (width) => {
    await page.getByText('U+202E').first().waitFor()
    await unhurt(page)
    if (width === 375) await isAccessible(page, 'with hostile text')
  })
})

test('hostile titles, tools and inputs of an approval are text, with what hides made visible', async (t) => {
  const input = { '<b>name</b>': ATTACKS, path: 'safe\u202egnp.exe' }
  const asked = await asks(`do execute ${ATTACKS[0]} \u202egnp {"command": ${JSON.stringify(JSON.stringify(input))}}`)
  const page = await browse(t, { as: 'ADMIN' })
  for (const [route, at] of Object.entries({
    approvals: `approvals?peek=${asked.approval}`,
    approval: `approvals/${asked.approval}`,
    conversation: `conversations/${asked.conversation}`,
  })) {
    await inBoth(page, route, at, async () => {
      await page.getByRole('button', { name: 'Deny' }).waitFor()
      await page.getByText('U+202E').first().waitFor()
      await page.getByText(/hidden characters? stands?/).first().waitFor()
      await unhurt(page)
    })
  }
})

test('a hostile question with hostile options is text', async (t) => {
  const asked = await asks(`ask ${ATTACKS[1]} | ${ATTACKS[0]} | ${ATTACKS[7]} | ${ATTACKS[9].slice(0, 400)}`)
  const page = await browse(t, { as: 'ADMIN', width: 375, at: `/o/${world.org}/approvals/${asked.approval}` })
  await page.getByRole('radio').first().waitFor()
  await unhurt(page)
})

test('a hostile subject is text in the list, the header and the browser’s tab', async (t) => {
  const conversation = await begins('hello')
  await api(
    'mutation($org: Id!, $id: Id!, $title: String!) { updateConversation(orgId: $org, id: $id, input: { title: $title }) { id } }',
    { id: conversation, title: `${ATTACKS[0]} ${'w'.repeat(120)}` },
  )
  const page = await browse(t, { as: 'ADMIN' })
  for (const [route, at] of Object.entries({ list: 'conversations', one: `conversations/${conversation}?panel=details` })) {
    await inBoth(page, route, at, async () => {
      await page.getByText('onerror').first().waitFor()
      await unhurt(page)
    })
  }
})

test('a file that calls itself a picture is drawn as a picture or not at all', async (t) => {
  const page = await browse(t, { as: 'OPERATOR', at: `/o/${world.org}/conversations/${await begins('hello')}` })
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
  const script = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>window.hurt=1</script></svg>')
  await page.locator('input[type=file]').setInputFiles([
    { name: 'evil.png', mimeType: 'image/png', buffer: script },
    { name: 'evil.svg', mimeType: 'image/svg+xml', buffer: script },
    { name: '<img src=x onerror=alert(1)>.html', mimeType: 'text/html', buffer: script },
  ])
  await page.getByRole('textbox', { name: 'Message' }).fill('files')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: /Save evil\.svg/ }).waitFor()
  await page.waitForTimeout(800)
  assert.equal(await page.getByRole('article').locator('img').count(), 0)
  await unhurt(page)
})
