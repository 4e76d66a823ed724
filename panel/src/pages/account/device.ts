// A device's everyday name, derived from its user agent. Only helps recognition; nothing depends on it.

export interface Device {
  kind: 'phone' | 'computer' | 'program'
  name: string
}

// Order matters: Edge and Opera also claim to be Chrome, and Chrome claims to be Safari.
const BROWSERS: [RegExp, string][] = [
  [/Edg(?:e|A|iOS)?\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/Chrome\/|CriOS\//, 'Chrome'],
  [/Version\/.*Safari\//, 'Safari'],
]
const SYSTEMS: [RegExp, string][] = [
  [/iPhone/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/CrOS/, 'ChromeOS'],
  [/Linux/, 'Linux'],
]

export function deviceOf(userAgent: string | null, session: 'BROWSER' | 'TOKENS'): Device {
  const agent = userAgent ?? ''
  const browser = BROWSERS.find(([pattern]) => pattern.test(agent))?.[1]
  const system = SYSTEMS.find(([pattern]) => pattern.test(agent))?.[1]
  if (!browser || session === 'TOKENS') {
    return { kind: 'program', name: agent.split(/[\s(]/)[0] || 'A program that did not say its name' }
  }
  const kind = /iPhone|iPad|Android/.test(agent) ? 'phone' : 'computer'
  return { kind, name: system ? `${browser} on ${system}` : browser }
}
