// Runs the script of a page as a browser would, as far as our pages use one, and says what it has come to.
//
//   node page.mjs '{"page": "<html>…", "base": "http://…", "address": "/sign-in#…", "storage": {}, "steps": [["click", "show"]]}'
//
// A step fills an element, submits a form or clicks a button, which is named by its id or by its text; between two steps
// everything that is under way ends. fetch is Node's own, with the page's addresses below `base`.
import vm from 'node:vm'
import { webcrypto } from 'node:crypto'

const { page, base, address: opened, storage, steps } = JSON.parse(process.argv[2])
const script = page.split('<script>')[1].split('</script>')[0]
const kept = new Map(Object.entries(storage))
let went = null
let address = opened
let focused = null
let underWay = 0

class Element {
  constructor(hidden) { Object.assign(this, { hidden, value: '', textContent: '', children: [], listeners: {} }) }
  addEventListener(type, listener) { this.listeners[type] = listener }
  append(child) { this.children.push(child) }
  replaceChildren() { this.children = [] }
  focus() { focused = this }
}
const elements = new Map()
for (const [tag, id] of page.matchAll(/<[a-z][a-z0-9]*\b[^>]*\bid="([^"]+)"[^>]*>/g)) elements.set(id, new Element(/\bhidden\b/.test(tag)))
const find = (name) => elements.get(name) ?? [...elements.values()].flatMap((one) => one.children).find((one) => one.textContent === name)

const context = {
  document: {
    getElementById: (id) => elements.get(id) ?? (() => { throw new Error(`there is no ${id}`) })(),
    createElement: () => new Element(false),
  },
  location: {
    get hash() { return address.includes('#') ? address.slice(address.indexOf('#')) : '' },
    get pathname() { return address.split('#')[0] },
    assign: (to) => { went = to },
  },
  history: { replaceState: (_state, _title, to) => { address = to } },
  sessionStorage: {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  },
  fetch: async (path, options) => {
    underWay += 1
    try {
      const answer = await fetch(base + path, options)
      const body = await answer.json()
      return { json: async () => body }
    } finally {
      underWay -= 1
    }
  },
  crypto: webcrypto, URLSearchParams, Uint8Array, JSON, Error, Boolean, console,
}
const settle = async () => {
  // What an answer leads to begins within a few turns of the loop after it.
  for (let quiet = 0; quiet < 5; quiet = underWay ? 0 : quiet + 1) await new Promise((done) => setTimeout(done, 5))
}

vm.runInNewContext(script, context)
await settle()
for (const [what, name, value] of steps) {
  const element = find(name)
  if (!element) throw new Error(`there is no ${name}`)
  if (what === 'fill') element.value = value
  else if (element.hidden) throw new Error(`${name} is not to be seen`)
  else element.listeners[what]({ preventDefault() {} })
  await settle()
}
const text = (id) => elements.get(id)?.textContent
console.log(JSON.stringify({
  said: text('said'), title: text('title'), who: text('who'), token: elements.get('token')?.value,
  focused: [...elements].find(([, one]) => one === focused)?.[0],
  visible: [...elements].filter(([, one]) => !one.hidden).map(([id]) => id),
  went, address, storage: Object.fromEntries(kept),
}))
