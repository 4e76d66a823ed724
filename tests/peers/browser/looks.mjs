// What a person would see to be wrong with a page, measured: too wide, cut off, on top of each other.

/** Sentences about what is wrong; none if all is well. */
export const flaws = (page) => page.evaluate(look)

/** Where the contents of a page's title, tabs, filters and table begin, as far as it has them. */
export const leftEdges = (page) =>
  page.evaluate(() => {
    const edges = {}
    const begins = (name, selector) => {
      const element = document.querySelector(selector)
      if (!element) return
      const padding = Number.parseFloat(getComputedStyle(element).paddingLeft)
      edges[name] = Math.round(element.getBoundingClientRect().left + element.clientLeft + padding)
    }
    begins('title', 'main h1')
    begins('tabs', 'main nav[data-scroll-restoration-id]:not(aside nav) > a')
    begins('head', 'main [role="columnheader"]')
    begins('row', 'main [role="grid"] [role="gridcell"]')
    const filter = document.querySelector('main input[type="search"]:first-child')
    if (filter && filter.parentElement.localName !== 'search') edges.filter = Math.round(filter.getBoundingClientRect().left)
    return edges
  })

/* Runs in the page. */
function look() {
  const found = new Set()
  const say = (element, what) => found.add(`${nameOf(element)} ${what}`)
  const nameOf = (element) =>
    `<${element.localName}> “${(element.getAttribute('aria-label') ?? element.innerText ?? '').trim().slice(0, 40)}”`
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  const styleOf = (element) => getComputedStyle(element)
  const above = function* (element) {
    for (let up = element.parentElement; up; up = up.parentElement) yield up
  }
  // Only for screen readers: one pixel.
  const isForEars = (element) => [element, ...above(element)].some((each) => each.clientWidth <= 1 && each.clientHeight <= 1 && styleOf(each).overflow === 'hidden')
  const scrolls = (element, axis) => /auto|scroll/.test(styleOf(element)[`overflow${axis}`])

  /* What is left of a box inside of everything that hides what sticks out of it: a text with dots is longer than it looks. */
  const clipped = (element, { left, right, top, bottom }) => {
    for (const up of [element, ...above(element)]) {
      if (styleOf(up).overflowX === 'visible') continue
      const frame = up.getBoundingClientRect()
      ;[left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)]
      ;[top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)]
    }
    return { left, right, top, bottom, width: right - left, height: bottom - top }
  }

  if (document.documentElement.scrollWidth > innerWidth) {
    // What is placed by itself escapes what hides the text around it.
    const end = (each) => (styleOf(each).position === 'absolute' ? each.getBoundingClientRect() : clipped(each, each.getBoundingClientRect())).right
    const last = [...document.querySelectorAll('body *')].findLast((each) => end(each) > innerWidth + 1)
    found.add(`the page is ${document.documentElement.scrollWidth} pixels wide, for ${last ? nameOf(last) : 'no element'}`)
  }
  for (const element of document.querySelectorAll('main, dialog, [role="dialog"]')) {
    if (element.scrollWidth > element.clientWidth + 1 && !scrolls(element, 'X')) say(element, `is ${element.scrollWidth - element.clientWidth} pixels too wide`)
  }

  // Text that is cut off without dots, or sticks out of the window.
  const texts = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement
    if (!node.textContent.trim() || !element || /^(SCRIPT|STYLE|NOSCRIPT|OPTION|TEXTAREA)$/.test(element.tagName)) continue
    if (!isShown(element) || isForEars(element)) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const box = range.getBoundingClientRect()
    if (box.width < 1) continue
    texts.push({ element, box: clipped(element, box), lines: [...range.getClientRects()].map((line) => clipped(element, line)) })
    let left = Number.NEGATIVE_INFINITY
    let dotted = false
    for (const up of [element, ...above(element)]) {
      const style = styleOf(up)
      dotted ||= style.textOverflow === 'ellipsis' || style.webkitLineClamp !== 'none'
      if (scrolls(up, 'X') || style.position === 'fixed') break
      const frame = up.getBoundingClientRect()
      if (/hidden|clip/.test(style.overflowX) && !dotted && box.right > frame.right + 1.5) say(element, `is cut off by ${Math.round(box.right - frame.right)} pixels`)
      if (/hidden|clip/.test(style.overflowY) && !dotted && !scrolls(up, 'Y') && frame.height > 4 && box.top < frame.bottom && box.bottom > frame.bottom + 3) say(element, `is cut off below by ${Math.round(box.bottom - frame.bottom)} pixels`)
      left = Math.max(left, frame.left)
    }
    const free = [element, ...above(element)].some((up) => scrolls(up, 'X') && up.scrollWidth > up.clientWidth)
    if (!dotted && !free && box.bottom > 0 && (box.right > innerWidth + 1.5 || box.left < -1.5)) say(element, 'sticks out of the window')
  }

  // What can be pressed and is covered by something else.
  const inView = (element, x, y) =>
    x > 0 && y > 0 && x < innerWidth && y < innerHeight &&
    [...above(element)].every((up) => {
      if (!scrolls(up, 'X') && !scrolls(up, 'Y') && !/hidden|clip/.test(styleOf(up).overflowX)) return true
      const frame = up.getBoundingClientRect()
      return x > frame.left && x < frame.right && y > frame.top && y < frame.bottom
    })
  for (const element of document.querySelectorAll('a[href], button, input, select, textarea, summary')) {
    if (element.closest('[inert], [aria-hidden="true"], [data-base-ui-inert]') || !isShown(element) || isForEars(element)) continue
    const box = element.getBoundingClientRect()
    const [x, y] = [box.left + Math.min(box.width / 2, 200), box.top + box.height / 2]
    if (box.width < 2 || !inView(element, x, y)) continue
    const hit = document.elementFromPoint(x, y)
    const isLabel = hit && [...(element.labels ?? [])].some((label) => label.contains(hit))
    if (hit && hit !== element && !element.contains(hit) && !hit.contains(element) && !isLabel) say(element, `is covered by ${nameOf(hit)}`)
  }

  // Texts that stand on each other.
  const own = texts.filter(({ element, box }) => {
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2]
    return inView(element, x, y) && element.contains(document.elementFromPoint(x, y))
  })
  const overlap = (one, other) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 4 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 5
  own.forEach(({ element, lines }, index) => {
    for (const other of own.slice(index + 1)) {
      if (element.contains(other.element) || other.element.contains(element)) continue
      // Line by line: a text that wraps leaves room in its box for what stands before it.
      if (lines.some((one) => other.lines.some((two) => overlap(one, two)))) say(element, `stands on ${nameOf(other.element)}`)
    }
  })
  return [...found]
}
