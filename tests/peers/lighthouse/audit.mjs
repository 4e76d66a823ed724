// Lighthouse's accessibility and best practices of a page, in a browser that is already running and signed in.
import lighthouse from 'lighthouse'

/**
 * @param {string} address The page.
 * @param {number} port Where the browser's debugger listens.
 * @returns the scores of 100 by category, what costs points, and the whole report as HTML.
 */
export async function audit(address, port) {
  const { lhr, report } = await lighthouse(address, {
    port,
    output: 'html',
    logLevel: 'error',
    onlyCategories: ['accessibility', 'best-practices'],
    // The session is a cookie.
    disableStorageReset: true,
    formFactor: 'desktop',
    screenEmulation: { mobile: false, width: 1280, height: 800, deviceScaleFactor: 1, disabled: false },
    throttlingMethod: 'provided',
  })
  const categories = Object.values(lhr.categories)
  const lost = categories.flatMap(({ auditRefs }) =>
    auditRefs
      .filter(({ id, weight }) => weight > 0 && (lhr.audits[id].score ?? 1) < 1)
      .map(({ id }) => `${id}: ${lhr.audits[id].title} ${JSON.stringify(lhr.audits[id].details?.items ?? [])}`),
  )
  return {
    // Where it ended up: a page that sends to the sign-in is another page.
    address: lhr.finalDisplayedUrl,
    problem: lhr.runtimeError?.message ?? null,
    scores: Object.fromEntries(categories.map(({ id, score }) => [id, Math.round((score ?? 0) * 100)])),
    lost,
    report,
  }
}
