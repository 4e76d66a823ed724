// The browser tab's title: the number of pending decisions, the page and the organization.
let page = ''
let organization = ''
let waiting = 0

export function setTitle(next: string): void {
  page = next
  write()
}

export function setTitleFrame(next: { organization?: string; waiting?: number }): void {
  organization = next.organization ?? organization
  waiting = next.waiting ?? waiting
  write()
}

function write(): void {
  const parts = [page, organization, 'Muster'].filter(Boolean)
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${parts.join(' · ')}`
}
