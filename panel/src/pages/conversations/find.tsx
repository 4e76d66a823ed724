// Searches the whole history of a conversation, newest hits first; each links to its message.
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useQuery } from 'urql'
import { wordsOf } from '../../api/errors'
import { graphql } from '../../api/graphql'
import { useOrg } from '../../app/organization'
import { useEscape } from '../../keys/use-actions'
import { IconButton } from '../../ui/button'
import { TextInput } from '../../ui/inputs'
import { Time } from '../../ui/time'
import { Snippet } from './snippet'

const Find = graphql(`
  query FindInConversation($orgId: Id!, $agentId: Id!, $conversationId: Id!, $q: String!) {
    searchMessages(orgId: $orgId, agentId: $agentId, conversationId: $conversationId, q: $q) {
      total
      data { id seq role kind createdAt snippet ranges }
    }
  }
`)

/** The maximum number of hits; a longer query narrows them. */
const MAX_HITS = 200

interface Props {
  conversation: { id: number; agentId: number }
  q: string
  at: number | undefined
  onQ: (q: string) => void
  onClose: () => void
}

export function FindBar({ conversation, q, at, onQ, onClose }: Props) {
  const org = useOrg()
  const [text, setText] = useState(q)
  const box = useRef<HTMLDivElement>(null)
  useEscape(onClose)
  useEffect(() => box.current?.querySelector('input')?.focus(), [])
  useEffect(() => {
    const timer = setTimeout(() => text !== q && onQ(text), 200)
    return () => clearTimeout(timer)
  }, [text, q, onQ])
  const [{ data, error, fetching }] = useQuery({
    query: Find,
    variables: { orgId: org.id, agentId: conversation.agentId, conversationId: conversation.id, q },
    pause: q.trim() === '',
  })
  const found = q.trim() === '' ? undefined : data?.searchMessages
  const hits = (found?.data ?? []).slice(-MAX_HITS).reverse()
  return (
    <search
      ref={box}
      aria-label="Find in this conversation"
      className="flex max-h-[45dvh] shrink-0 flex-col border-b border-line bg-canvas"
    >
      <div className="flex items-center gap-2 px-4 py-2 sm:px-6">
        <TextInput
          value={text}
          onValue={setText}
          aria-label="Words to find"
          placeholder="Words to find"
          type="search"
        />
        <span role="status" className="shrink-0 text-sm text-muted">
          {error
            ? wordsOf(error)
            : found
              ? `${found.total === 1000 ? '1,000 or more' : found.total} found`
              : fetching
                ? 'Looking…'
                : ''}
        </span>
        <IconButton icon={X} label="Close" keys="escape" onClick={onClose} />
      </div>
      {hits.length > 0 && (
        <ol className="min-h-0 overflow-y-auto border-t border-line">
          {hits.map((hit) => (
            <li key={hit.id}>
              <Link
                to="."
                search={(before: object) => ({ ...before, seq: hit.seq })}
                aria-current={hit.seq === at ? 'true' : undefined}
                className="flex gap-3 border-b border-line px-4 py-2 hover:bg-hover aria-[current]:bg-selected sm:px-6"
              >
                <span className="min-w-0 grow text-sm">
                  <Snippet hit={hit} />
                </span>
                <span className="shrink-0 text-xs text-muted">
                  <Time at={hit.createdAt} as="stamp" />
                </span>
              </Link>
            </li>
          ))}
        </ol>
      )}
    </search>
  )
}
