// Theme and density: applied in this browser at once and stored in the account's preferences. public/assets/theme.js
// reads the same keys before the first paint, so that a dark panel never flashes white.

export type Theme = 'system' | 'light' | 'dark'
export type Density = 'comfortable' | 'compact'

const dark = matchMedia('(prefers-color-scheme: dark)')

/** A setting of this browser. */
export function kept(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

export function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    // Storage is blocked: the choice lasts as long as the page.
  }
}

export function themeNow(): Theme {
  const theme = kept('muster.theme')
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function setTheme(theme: Theme): void {
  keep('muster.theme', theme)
  paint()
}

export function densityNow(): Density {
  return document.documentElement.dataset.density === 'compact' ? 'compact' : 'comfortable'
}

export function setDensity(density: Density): void {
  keep('muster.density', density)
  document.documentElement.dataset.density = density
}

function paint(): void {
  const theme = themeNow()
  document.documentElement.dataset.theme =
    theme === 'dark' || (theme === 'system' && dark.matches) ? 'dark' : 'light'
}

/** Follows the system theme while that is the setting. */
export function followSystem(): void {
  dark.addEventListener('change', paint)
}
