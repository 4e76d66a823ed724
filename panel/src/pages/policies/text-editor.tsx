// The text of the rules in CodeMirror, in a shadow root: only there are its styles adopted sheets, which the page's
// policy permits.
import { autocompletion, type CompletionSource } from '@codemirror/autocomplete'
import { history, historyField, historyKeymap, standardKeymap } from '@codemirror/commands'
import { diagnosticCount, nextDiagnostic, previousDiagnostic, setDiagnostics } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from '@codemirror/view'
import { useLayoutEffect, useRef } from 'react'
import { flushSync } from 'react-dom'
import { useOrg } from '../../app/organization'
import { cx } from '../../ui/cx'
import { choicesAt } from './completions'
import { changeOf, type Editing } from './editing'
import type { Permissions } from './queries'
import { announcesLines, correctsLine, diagnosticsOf, MARKS, marksOf, setMarks } from './text-marks'
import { THEME } from './text-theme'
import type { Proposed } from './use-proposal'

interface Props {
  permissions: Permissions
  text: string
  /** Null: it can't be changed. */
  onText: ((text: string) => void) | null
  /** The service's answer about the text; null while it is pending: marks of the last one stay. */
  proposed: Proposed | null
  /** The version on which the draft is based. Each has a history of its own: give it as the key as well. */
  version: string
  editing: Editing
}

export function TextEditor(props: Props) {
  const { onText, proposed, version, editing } = props
  // As the browser does with a field's line ends.
  const text = props.text.replaceAll(/\r\n?/g, '\n')
  const { id: org } = useOrg()
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView>(null)
  const latest = useRef({ ...props, text, org })
  latest.current = { ...props, text, org }
  const canEdit = onText !== null

  useLayoutEffect(() => {
    if (!host.current) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const config = {
      doc: latest.current.text,
      extensions: [
        ...EXTENSIONS,
        EditorState.readOnly.of(!canEdit),
        autocompletion({
          override: [choices(() => latest.current)],
          icons: false,
          // The list is never late: a key right after it opens is meant for it.
          interactionDelay: 0,
        }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          const typed = state.doc.toString()
          // At once: an older text, rendered late, would undo what was typed since.
          if (docChanged && typed !== latest.current.text) flushSync(() => latest.current.onText?.(typed))
        }),
      ],
    }
    const kept = editing.kept?.version === version && editing.kept.state
    const state = kept ? EditorState.fromJSON(kept, config, HISTORY) : EditorState.create(config)
    const view = new EditorView({ root, parent: root, state })
    editor.current = view
    editing.select = (line) => select(view, line)
    if (editing.wanted) select(view, editing.wanted)
    editing.wanted = undefined
    return () => {
      editing.kept = { version, state: view.state.toJSON(HISTORY) }
      editing.select = undefined
      view.destroy()
    }
  }, [canEdit, editing, version])

  useLayoutEffect(() => {
    const view = editor.current
    const before = view?.state.doc.toString()
    if (before !== undefined && before !== text) view?.dispatch({ changes: changeOf(before, text) })
  }, [text])

  useLayoutEffect(() => {
    const view = editor.current
    if (!view || !proposed) return
    const { doc } = view.state
    view.dispatch(
      setDiagnostics(view.state, diagnosticsOf(proposed, doc, latest.current.permissions, canEdit)),
      {
        effects: setMarks.of(marksOf(proposed, doc)),
      },
    )
  }, [proposed, canEdit])

  return (
    <div
      ref={host}
      className={cx(
        'overflow-hidden rounded-control border border-outline font-mono text-sm focus-within:outline-2 focus-within:outline-accent-text',
        canEdit ? 'bg-canvas' : 'bg-sunken',
      )}
    />
  )
}

const HISTORY = { history: historyField }

const EXTENSIONS = [
  lineNumbers(),
  MARKS,
  highlightSpecialChars(),
  history(),
  // Tab leaves the editor, and so does Esc.
  keymap.of([
    { key: 'F8', run: nextDiagnostic, shift: previousDiagnostic },
    { key: 'Mod-.', run: correctsLine },
    ...historyKeymap,
    ...standardKeymap,
  ]),
  announcesLines,
  EditorView.contentAttributes.of(({ state }) => ({
    'aria-label': 'Text of the rules',
    'aria-invalid': String(diagnosticCount(state) > 0),
  })),
  THEME,
]

function choices(given: () => { org: number; permissions: Permissions }): CompletionSource {
  return ({ state, pos }) => {
    const { org, permissions } = given()
    const line = state.doc.lineAt(pos)
    const found = choicesAt(line.text.slice(0, pos - line.from), org, permissions)
    const rest = /^[\w.]*/.exec(line.text.slice(pos - line.from))?.[0] ?? ''
    return found && { from: pos - found.written.length, to: pos + rest.length, options: found.choices }
  }
}

function select(view: EditorView, line: number): void {
  const { from, to } = view.state.doc.line(Math.min(line, view.state.doc.lines))
  view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true })
  view.focus()
}
