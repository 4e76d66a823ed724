// Lines of the text that are wrong or unused: marked, announced, and corrected.
import { type Diagnostic, forEachDiagnostic } from '@codemirror/lint'
import { EditorState, RangeSet, StateEffect, StateField, type Text } from '@codemirror/state'
import { type Command, EditorView, GutterMarker, lineNumberMarkers } from '@codemirror/view'
import { changeOf } from './editing'
import { fixOf } from './fixes'
import { isOwnFile } from './lines'
import { problemWords } from './problem-words'
import type { Permissions } from './queries'
import type { Proposed } from './use-proposal'

class WrongLine extends GutterMarker {
  override elementClass = 'cm-wrong'
}

class UnusedLine extends GutterMarker {
  constructor(readonly line: number) {
    super()
  }

  override eq(other: UnusedLine) {
    return other.line === this.line
  }

  override toDOM() {
    const mark = document.createElement('span')
    mark.title = 'Decided no recent call'
    mark.textContent = `○ ${this.line}`
    return mark
  }
}

export const setMarks = StateEffect.define<RangeSet<GutterMarker>>()

/** The marks at the numbers of lines. */
export const MARKS = StateField.define<RangeSet<GutterMarker>>({
  create: () => RangeSet.empty,
  update: (marks, { changes, effects }) =>
    effects.find((effect) => effect.is(setMarks))?.value ?? marks.map(changes),
  provide: (field) => lineNumberMarkers.from(field),
})

export function marksOf({ proposal, replay }: Proposed, doc: Text): RangeSet<GutterMarker> {
  const wrong = ownProblems(proposal.problems, doc).map(({ line }) =>
    new WrongLine().range(doc.line(line).from),
  )
  const unused = (replay?.unusedLines ?? [])
    .filter(({ line }) => line <= doc.lines)
    .map(({ line }) => new UnusedLine(line).range(doc.line(line).from))
  return RangeSet.of<GutterMarker>([...wrong, ...unused], true)
}

export function diagnosticsOf(
  { proposal }: Proposed,
  doc: Text,
  permissions: Permissions,
  canEdit: boolean,
): Diagnostic[] {
  return ownProblems(proposal.problems, doc).map((problem) => {
    const { from, to } = doc.line(problem.line)
    const fix = canEdit ? fixOf(problem, doc.toString()) : null
    const apply = (view: EditorView, at: number) => {
      // The line may have moved since.
      const before = view.state.doc.toString()
      const fixed = fixOf({ ...problem, line: view.state.doc.lineAt(at).number }, before)
      if (fixed) view.dispatch({ changes: changeOf(before, fixed.text), userEvent: 'input.fix' })
    }
    return {
      from,
      to,
      severity: 'error',
      message: problemWords(problem, permissions).reason,
      actions: fix ? [{ name: fix.label, apply }] : [],
    }
  })
}

type Problem = Proposed['proposal']['problems'][number]

const ownProblems = (problems: readonly Problem[], doc: Text) =>
  problems.filter(
    (problem): problem is Problem & { line: number } =>
      problem.line !== null && problem.line <= doc.lines && isOwnFile(problem.file),
  )

/** The problems of the line at a position, where they are now. */
function problemsAt(state: EditorState, at: number) {
  const { from, to } = state.doc.lineAt(at)
  const found: { problem: Diagnostic; from: number; to: number }[] = []
  forEachDiagnostic(state, (problem, start, end) => {
    if (start >= from && start <= to) found.push({ problem, from: start, to: end })
  })
  return found
}

/** Reads out the number of the line to which the cursor moves, and its problems. */
export const announcesLines = EditorState.transactionExtender.of(({ startState, selection, docChanged }) => {
  if (!selection || docChanged) return null
  const line = startState.doc.lineAt(selection.main.head)
  if (line.number === startState.doc.lineAt(startState.selection.main.head).number) return null
  const reasons = problemsAt(startState, line.from).map(({ problem }) => `: ${problem.message}`)
  return { effects: EditorView.announce.of(`Line ${line.number}${reasons.join('')}`) }
})

/** Corrects the first problem of the line with the cursor that has a correction. */
export const correctsLine: Command = (view) => {
  const found = problemsAt(view.state, view.state.selection.main.head).find(
    ({ problem }) => problem.actions?.[0],
  )
  found?.problem.actions?.[0]?.apply(view, found.from, found.to)
  return found !== undefined
}
