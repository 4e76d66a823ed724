// Where the schema is: what tsconfig.json says, so that it stands in one place.
import { readFileSync } from 'node:fs'

export function sdl() {
  const config = JSON.parse(readFileSync(new URL('../tsconfig.json', import.meta.url), 'utf8'))
  return config.compilerOptions.plugins.find(({ name }) => name === 'gql.tada/ts-plugin').schema
}
