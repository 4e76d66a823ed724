// Writes the notices of everything that is bundled into assets/third-party.txt, as their licences ask. Fails on a package
// without a licence text, or with a licence that nobody has looked at.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Plugin } from 'vite'
import { RENDERER } from './reference.ts'

const KNOWN = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'])
/** What the Apache licence asks for, and the licences of what a package has bundled itself. */
const MORE = /^(NOTICE|swagger-ui-bundle\.js\.LICENSE\.txt)$/
const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/

export function notices(): Plugin {
  return {
    name: 'notices',
    apply: 'build',
    generateBundle(_, bundle) {
      const folders = new Set<string>()
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue
        for (const id of Object.keys(chunk.modules)) {
          const folder = PACKAGE.exec(id.split('?')[0] ?? '')?.[0]
          if (folder) folders.add(folder)
        }
      }
      // Its output is in the style sheet.
      folders.add(join(process.cwd(), 'node_modules/tailwindcss'))
      // It is copied.
      folders.add(RENDERER)
      const written = [...[...folders].map(notice), FONT].sort((a, b) => (a.name < b.name ? -1 : 1))
      const text = written.map(({ name, text }) => `${name}\n\n${text}\n`).join(`\n${'-'.repeat(80)}\n\n`)
      this.emitFile({ type: 'asset', fileName: 'assets/third-party.txt', source: `${HEAD}\n\n${text}` })
    },
  }
}

const FONT = { name: 'Inter 4.1 (OFL-1.1)', text: readFileSync('src/font/OFL.txt', 'utf8').trim() }
const HEAD = 'The panel contains these packages, under these licences.'

function notice(folder: string): { name: string; text: string } {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (!KNOWN.has(license))
    throw new Error(`${name} has the licence ${license}: look at it, then add it to KNOWN`)
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.(md|txt))?$/i.test(each))
  const text = file ? readFileSync(join(folder, file), 'utf8') : inherited(folder)
  if (!text) throw new Error(`${name} comes without its licence's text`)
  const more = readdirSync(folder).filter((each) => MORE.test(each))
  const texts = [text, ...more.map((each) => readFileSync(join(folder, each), 'utf8'))]
  const whole = texts.map((each) => each.replaceAll('\r\n', '\n').trim()).join('\n\n')
  return { name: `${name} ${version} (${license})`, text: whole }
}

/** Packages of one project sometimes carry the text in one of them. */
function inherited(folder: string): string | null {
  const kin = join(dirname(folder), 'LICENSE')
  return existsSync(kin) ? readFileSync(kin, 'utf8') : null
}
