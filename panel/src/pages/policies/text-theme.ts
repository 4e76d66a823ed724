// The looks of the editor of the text. The colours are inherited from the page, in light and in dark.
import { EditorView } from '@codemirror/view'

export const THEME = EditorView.theme({
  '&': { color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'inherit', lineHeight: 'inherit' },
  '.cm-content, .cm-gutter': { minHeight: '8.5rem' },
  '.cm-content': { padding: '0.5rem 0', caretColor: 'var(--ink)' },
  '.cm-line': { padding: '0 0.75rem' },
  '.cm-line ::selection, .cm-line::selection': { backgroundColor: 'var(--selected)' },
  '.cm-gutters': {
    color: 'var(--faint)',
    backgroundColor: 'var(--sunken)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 0.5rem' },
  '.cm-lineNumbers .cm-wrong': {
    color: 'var(--danger-text)',
    backgroundColor: 'var(--danger-soft)',
    fontWeight: '600',
  },
  '.cm-specialChar': { color: 'var(--danger-text)' },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--danger-text)',
    textUnderlineOffset: '3px',
  },
  '.cm-tooltip': {
    color: 'var(--ink)',
    backgroundColor: 'var(--raised)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    boxShadow: 'var(--shadow)',
    fontFamily: 'var(--font-sans)',
    whiteSpace: 'normal',
  },
  '.cm-diagnostic': { padding: '0.5rem', borderLeft: 'none', color: 'var(--danger-text)' },
  '.cm-diagnosticAction': {
    padding: '0.125rem 0.5rem',
    color: 'var(--ink)',
    backgroundColor: 'var(--canvas)',
    border: '1px solid var(--outline)',
    borderRadius: '6px',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--font-mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '0.25rem 0.5rem' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    color: 'var(--ink)',
    backgroundColor: 'var(--selected)',
    outline: '2px solid var(--accent-text)',
    outlineOffset: '-2px',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
  '.cm-tooltip.cm-completionInfo': { padding: '0.25rem 0.5rem', color: 'var(--muted)' },
})
