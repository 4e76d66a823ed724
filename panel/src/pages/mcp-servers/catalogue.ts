// Known MCP servers, with their public documentation: suggestions for the form that creates one.
import entries from './catalogue.json'
import type { Transport } from './transport'

export interface Known {
  name: string
  title: string
  description: string
  transport: Transport
  url?: string
  command?: string
  args?: string[]
  /** The credential that it needs, as a sentence. */
  credential: string | null
  documentation: string
}

export const CATALOGUE = entries as Known[]
