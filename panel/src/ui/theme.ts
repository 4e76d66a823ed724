// Theme and density: in the browser at once, in the person's preferences for the next browser. The first paint is
// public/assets/theme.js, which reads the same keys.

export type Theme = 'system' | 'light' | 'dark'
export type Density = 'comfortable' | 'compact'

const dark = matchMedia('(prefers-color-scheme: dark)')

function kept(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch {
    // Storage is off: it holds for this page.
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

/** Follows the system while it is asked to. */
export function followSystem(): void {
  dark.addEventListener('change', paint)
}
