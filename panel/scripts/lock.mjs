// Writes package-lock.json without registry hosts, from an empty folder, and complete: a registry's mirror may lack the
// optional packages of other systems, without whose names `npm ci` refuses.
//
//   node panel/scripts/lock.mjs [folder]   the panel's, or that of a folder such as tests/peers, with the packages in it
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const [, , named] = process.argv
const root = named ? resolve(named) : fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'muster-lock-'))
try {
  for (const file of ['', ...readdirSync(root)].map((name) => join(name, 'package.json')))
    if (existsSync(join(root, file))) cpSync(join(root, file), join(folder, file))
  const flags = [
    '--package-lock-only',
    '--omit-lockfile-registry-resolved',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
  ]
  execFileSync('npm', ['install', ...flags], { cwd: folder, stdio: 'inherit' })
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
  for (const { optionalDependencies = {}, dev } of Object.values(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const kept = { version, ...systemOf(name), ...(dev ? { dev } : {}), optional: true }
      lock.packages[`node_modules/${name}`] ??= kept
    }
  }
  for (const entry of Object.values(lock.packages)) {
    if (!entry.link) delete entry.resolved
    for (const unread of ['engines', 'funding', 'license']) delete entry[unread]
  }
  const { '': own, ...rest } = lock.packages
  lock.packages = {
    '': own,
    ...Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))),
  }
  writeFileSync(join(root, 'package-lock.json'), `${JSON.stringify(lock, null, 2)}\n`)
} finally {
  rmSync(folder, { recursive: true })
}

/** `@biomejs/cli-linux-x64-musl` → its system. */
function systemOf(name) {
  const [, os, cpu, libc] =
    /(android|darwin|freebsd|linux|win32|openharmony)-(arm64|arm|x64|ia32|s390x|ppc64)?-?(musl|gnu)?/.exec(
      name,
    ) ?? []
  return {
    ...(cpu ? { cpu: [cpu] } : {}),
    ...(os ? { os: [os] } : { os: ['none'] }),
    ...(libc ? { libc: [libc === 'gnu' ? 'glibc' : libc] } : {}),
  }
}
