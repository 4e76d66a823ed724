// What the panel's source says that there is: its addresses, its tabs, and every file that opens something over the page.
import { readFileSync, readdirSync } from 'node:fs'

const SOURCE = new URL('../../../panel/src/', import.meta.url)
const read = (path) => readFileSync(new URL(path, SOURCE), 'utf8')
const files = readdirSync(SOURCE, { recursive: true })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.tsx') && !path.startsWith('ui/'))

/** Every path of the router, such as `/o/$org/agents/$id`. */
export function routes() {
  const found = read('router.tsx').matchAll(/getParentRoute: \(\) => (\w+),\s+path: '([^']+)'/g)
  const all = [...found].map(([, parent, path]) => (parent === 'org' ? `/o/$org${path}` : path))
  return all.filter((path) => path !== '/o/$org')
}

/** The ids of the tabs of each file that has some; the first one is shown without being asked for. */
export function tabs() {
  return files
    .map((path) => [path, read(path)])
    .filter(([, text]) => /<Tabs\b/.test(text))
    .map(([path, text]) => {
      const ids = [...text.matchAll(/\bid: '([\w-]+)',\s+label:/g)].map(([, id]) => id)
      return { path, ids: ids.length > 0 ? ids : [...text.matchAll(/\btab\('(\w+)'/g)].map(([, id]) => id) }
    })
}

/** Every file that opens a dialog, a menu, a picker or a peek, as `app/palette.tsx`. */
export function openers() {
  return files.filter((path) => /<(Dialog|FormDialog|ConfirmDialog|ShownOnce|Menu|Popover|Picker|Peek)\b/.test(read(path)))
}
