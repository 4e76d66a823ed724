// Converts parsed Markdown to React elements. Raw HTML becomes text, images become their description and address (never
// fetched), links accept only http, https and mailto and show their host if the text hides it.
import type { Nodes, RootContent } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { gfm } from 'micromark-extension-gfm'
import { createElement, Fragment, memo, type ReactNode, useMemo } from 'react'
import { linkOf } from './link-text'
import { Visible } from './visible'

/** Deeper nesting becomes text, to protect the browser's stack. */
const DEEPEST = 40

export default memo(function MarkdownTree({ text }: { text: string }) {
  const tree = useMemo(
    () => fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }),
    [text],
  )
  return <div className="prose-agent">{children(tree, 0)}</div>
})

function children(node: { children: RootContent[] }, depth: number): ReactNode[] {
  return node.children.map((child, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: nodes have no identity but their position
    <Fragment key={index}>{depth > DEEPEST ? plain(child) : element(child, depth + 1)}</Fragment>
  ))
}

function element(node: Nodes, depth: number): ReactNode {
  const inside = () => ('children' in node ? children(node as { children: RootContent[] }, depth) : null)
  switch (node.type) {
    case 'text':
      return <Visible text={node.value} />
    case 'html':
      return <Visible text={node.value} />
    case 'paragraph':
      return <p>{inside()}</p>
    case 'heading':
      // The page owns h1 and h2; agents' headings start below them.
      return createElement(`h${Math.min(6, node.depth + 2)}`, { className: 'font-semibold' }, inside())
    case 'emphasis':
      return <em>{inside()}</em>
    case 'strong':
      return <strong>{inside()}</strong>
    case 'delete':
      return <del>{inside()}</del>
    case 'inlineCode':
      return (
        <code>
          <Visible text={node.value} />
        </code>
      )
    case 'code':
      return (
        <pre tabIndex={0}>
          <code>
            <Visible text={node.value} />
          </code>
        </pre>
      )
    case 'blockquote':
      return <blockquote>{inside()}</blockquote>
    case 'list':
      return node.ordered ? <ol start={node.start ?? 1}>{inside()}</ol> : <ul>{inside()}</ul>
    case 'listItem':
      return (
        <li>
          {typeof node.checked === 'boolean' && (node.checked ? '☑ ' : '☐ ')}
          {inside()}
        </li>
      )
    case 'break':
      return <br />
    case 'thematicBreak':
      return <hr />
    case 'link':
      return <Anchor url={node.url} text={textOf(node)} inside={inside()} />
    case 'image':
      return (
        <span className="text-muted">{`[Image: ${node.alt || 'without description'}, ${node.url}]`}</span>
      )
    case 'table':
      return (
        <table>
          <tbody>{inside()}</tbody>
        </table>
      )
    case 'tableRow':
      return <tr>{inside()}</tr>
    case 'tableCell':
      return <td>{inside()}</td>
    default:
      return 'children' in node ? inside() : plain(node)
  }
}

function Anchor({ url, text, inside }: { url: string; text: string; inside: ReactNode }) {
  const link = linkOf(url, text)
  if (!link) return <span>{inside}</span>
  return (
    <>
      <a href={link.href} target="_blank" rel="noopener noreferrer nofollow" data-tip={link.href}>
        {inside}
      </a>
      {link.host && <span className="text-xs text-muted"> ({link.host})</span>}
    </>
  )
}

/** A node's plain text. */
function textOf(node: Nodes): string {
  if ('value' in node) return node.value
  return 'children' in node ? node.children.map(textOf).join('') : ''
}

function plain(node: Nodes): ReactNode {
  return <Visible text={textOf(node)} />
}
