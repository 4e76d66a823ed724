// Builds the panel into dist/. The same source gives the same bytes, and file names carry no hash: the service
// puts the hash into the address when it embeds the files, so `dist` can be compared and merged.
import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'
import { notices } from './scripts/notices.ts'
import { reference } from './scripts/reference.ts'

// The service that `npm run dev` talks to. MUSTER_DEV_TOKEN is a credential for development alone: the proxy adds
// it, no file of the build ever contains it.
const service = process.env.MUSTER_DEV_SERVICE ?? 'http://127.0.0.1:8080'
const token = process.env.MUSTER_DEV_TOKEN
const proxied = {
  target: service,
  ws: true,
  headers: {
    origin: service,
    ...(token ? { authorization: `Bearer ${token}` } : {}),
  },
}

/** A chunk's name without hash: a page's from its place (`agents-page`), anything else from its own name. */
function chunkName(chunk: { name: string; facadeModuleId: string | null }): string {
  const page = /\/src\/(?:pages\/(.+)|[a-z]+\/([^/]+))\.tsx?$/.exec(chunk.facadeModuleId ?? '')
  const name = page ? (page[1] ?? page[2] ?? chunk.name) : chunk.name
  return `assets/${name.replaceAll('/', '-')}.js`
}

/** No page has styles of its own and nothing is preloaded: a lazy chunk is imported, without Vite's helper around it. */
const plainImports: Plugin = {
  name: 'plain-imports',
  enforce: 'pre',
  apply: 'build',
  load: (id) =>
    id === '\0vite/preload-helper.js' ? 'export const __vitePreload = (load) => load()' : undefined,
}

/** Icons are numbers: the keys of their parts, their sizes and former names are left out (src/ui/icon.ts). */
const bareIcons: Plugin = {
  name: 'bare-icons',
  apply: 'build',
  transform: {
    filter: { id: /lucide-react\/dist\/esm\/icons\// },
    handler: (code) =>
      code.replaceAll(
        /,?\s*key: "\w+"|name: "[\w-]+",|size: 24,|aliases: \[[^\]]*\],?|^__iconData\.node;/gm,
        '',
      ),
  },
}

const module = (pattern: string) => new RegExp(`/node_modules/(?:${pattern})/(?!.*/useBlocker\\.)`)

/** Chunks with fixed names: what the first load needs, and what comes later in one piece. */
const groups = [
  {
    name: 'overlays',
    test: /\/node_modules\/(?:@base-ui|@floating-ui|tabbable|reselect|use-sync-external-store)\/|\/src\/ui\/overlays\//,
    priority: 1,
  },
  {
    name: 'markdown',
    test: module(
      'mdast[^/]*|micromark[^/]*|unist[^/]*|decode-named[^/]*|character-entities[^/]*|escape-string-regexp|markdown-table|ccount|longest-streak|zwitch|devlop',
    ),
    priority: 1,
  },
  // Icons of several pages, so that no page loads another's parts for one of them.
  { name: 'icons', test: /\/lucide-react\/dist\/esm\/icons\//, minShareCount: 4, priority: 1 },
  // What was typed: asking before it is left. Forms and sections do.
  {
    name: 'leave',
    test: /\/react-router\/.*\/useBlocker\.|\/src\/ui\/leave\./,
    priority: 1,
  },
  // Sections, facts, dialogs and downloads: the overview has none.
  { name: 'sheet', test: /\/src\/ui\/(panel|dialog|download)\./, priority: 1 },
  // Labelled fields, and what is refused of them: signing in needs them, the overview does not.
  {
    name: 'fields',
    test: /\/src\/(ui\/(field|field-error|form|inputs|notice|number|picker|search-input)|api\/form-errors|app\/(address-secret|first-start))\./,
    priority: 1,
  },
  { name: 'bounds', test: /\/src\/api\/bounds\./, priority: 1 },
  // What state a record is in, with its icons and words, and how risky an approval is: the overview's lines need it.
  {
    name: 'status',
    test: /\/src\/(ui\/(status|badge|visible|visible-text|time|time-format|now)|app\/(agent-state|conversation-title|cut-words|author|approvals\/level|spending\/money))\./,
    priority: 1,
  },
  // Commands and secrets to copy.
  { name: 'code', test: /\/src\/ui\/(code|copy)\./, priority: 1 },
  // What agents write: a conversation and the first steps show it.
  { name: 'written', test: /\/src\/ui\/(markdown|parsable)\./, priority: 1 },
  { name: 'choices', test: /\/src\/ui\/choices\./, priority: 1 },
  // Forms, and what is shown of secrets: the first pages do without.
  {
    name: 'forms',
    test: /\/src\/(ui\/(secret-field|shown-once|confirm|form-dialog|tabs)\.|api\/use-form-act)/,
    priority: 1,
  },
  // What is saved by sections: the pages of approvals and conversations do without.
  { name: 'sections', test: /\/src\/ui\/(section-form|use-section)\./ },
  // Money: budgets, what is spent of them, allowing more.
  { name: 'spending', test: /\/src\/(app\/spending\/|ui\/meter)/, priority: 1 },
  // Filters above lists.
  { name: 'filters', test: /\/src\/app\/(filters|saved-views|saved-views-list)\./, priority: 1 },
  // Deciding, and reading out what comes, on the pages of approvals and of a conversation.
  {
    name: 'deciding',
    test: /\/src\/(app\/(approvals\/(?!fix-dialog|level\.)|thread\/)|ui\/(hold-button|announce))/,
    priority: 1,
  },
  // Lists of records, and what they are given to.
  {
    name: 'records',
    test: /\/src\/(app\/(assigned-agents|archive-button|may-edit|find-members|agent-choices|server-joined|join-line|program|mcp-states|erasures)|ui\/(pager|lines-input|picture|actions\.))/,
    priority: 1,
  },
  // Names of models to choose from: agents and model credentials.
  { name: 'models', test: /\/src\/(app\/models|ui\/suggested-input)\./, priority: 1 },
  // All that every page uses, also those before the sign-in: React, the router, the client.
  {
    name: 'shared',
    test: new RegExp(
      `${module('react|react-dom|scheduler|@tanstack/(?!react-virtual|virtual)[^/]+|urql|@urql/core|@0no-co/[^/]+|wonka|gql.tada').source}|/src/(keys/(registry|match|use-actions)|api/(errors|client|requests|session|connection|chunk|current-client|lazy-socket|graphql|use-act)|app/(lazy-page|root|search|person|drafts|page-failed|title|last-organization|not-found)|ui/(icon|button|problem|empty|overlays|theme|skeleton|toast-store|kbd|cx|doc-link)|permissions/why-store)\\.`,
    ),
    priority: 4,
  },
  // The frame behind the sign-in with the cache of records, and what most pages in it use. What is only needed now and then stays out: it is imported when it opens.
  {
    name: 'shell',
    test: /\/@urql\/exchange-graphcache\/|\/src\/(api|app|keys|permissions|ui)\/(?!overlays\/|card\.|spending\/|meter|approvals\/|thread\/|hold-button|announce|use-inert-background|bytes|agent-state|filters|assigned-agents|archive-button|may-edit|find-members|agent-choices|models|suggested-input|server-joined|join-line|mcp-states|erase-contact|erasures|use-feed|peek|code\.|link-text|copy\.|pager|panel\.|dialog|download|notice|badge|now\.|first-start|search-input|lines-input|picture|plot-frame|actions\.|palette|request-|key-sheet|why-dialog|sign-in-again|toasts|tip\.|resource-page|stop-dialog|stop-banner|markdown|parsable|list[.-]|table\.|json-tree|socket\.|section-form|leave|use-section|secret-field|shown-once|confirm|form-dialog|choices|tabs|picker|field\.|field-error|form\.|place-refused|inputs\.|number\.|stable-order|use-stable-order|fade|status\.|visible|time|connection-banner|conversation-title|cut-words|author\.|mail\.|address-secret|organization-problem|saved-views|preferences-change|program|bounds|form-errors|use-form-act)/,
    priority: 2,
  },
]

export default defineConfig({
  // The service puts a hash into the addresses of the page, not into those in the style sheet.
  experimental: {
    renderBuiltUrl: (_, { hostType }) => (hostType === 'css' ? { relative: true } : undefined),
  },
  plugins: [react(), tailwindcss(), plainImports, bareIcons, reference(), notices()],
  resolve: {
    alias: [
      { find: '~', replacement: fileURLToPath(new URL('./src', import.meta.url)) },
      // The package's own frame of an icon takes more room than all icons of a page.
      {
        find: /^\.\.\/createLucideIcon\.mjs$/,
        replacement: fileURLToPath(new URL('./src/ui/icon.ts', import.meta.url)),
      },
      // What React has had itself since version 18.
      { find: /^use-sync-external-store\/shim(?:\/index\.js)?$/, replacement: 'react' },
    ],
  },
  server: {
    port: 5173,
    strictPort: false,
    host: '127.0.0.1',
    proxy: { '/graphql': proxied, '/v1': proxied, '/avatars': proxied, '/export': proxied, '/auth': proxied },
  },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    // Lazy chunks are imported by addresses relative to their importer, so they work below any /assets/<hash>/.
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      output: {
        entryFileNames: 'assets/panel.js',
        chunkFileNames: chunkName,
        assetFileNames: 'assets/[name][extname]',
        codeSplitting: { groups },
      },
    },
  },
})
