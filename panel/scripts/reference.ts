// Puts the renderer of the API's reference (/docs/api) into the build, as its package has it: no chunk of the panel
// contains or loads it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'

/** The renderer's package. */
export const RENDERER = join(process.cwd(), 'node_modules/swagger-ui-dist')

const FILES = { 'swagger-ui-bundle.js': 'reference.js', 'swagger-ui.css': 'reference.css' }

/** The name of a map at the end of a file. Maps are not served. */
const MAP = /\n?(\/\/|\/\*)# sourceMappingURL=[^\n]*\s*$/

export function reference(): Plugin {
  return {
    name: 'reference',
    apply: 'build',
    generateBundle() {
      for (const [from, to] of Object.entries(FILES)) {
        const source = readFileSync(join(RENDERER, from), 'utf8').replace(MAP, '\n')
        this.emitFile({ type: 'asset', fileName: `assets/${to}`, source })
      }
    },
  }
}
