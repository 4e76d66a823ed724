;(() => {
  let theme = 'system'
  let density = 'comfortable'
  try {
    theme = localStorage.getItem('muster.theme') ?? theme
    density = localStorage.getItem('muster.density') ?? density
  } catch {
    // Storage is off: the system's theme will do.
  }
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
  document.documentElement.dataset.density = density
})()
