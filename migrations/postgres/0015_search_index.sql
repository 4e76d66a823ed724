-- The search index by places: a search looks among the newest messages first, however long the conversation is.
-- Conventions and why: ../README.md, ../../docs/decisions/0015-search-from-the-end.md

-- What a message is found by: its tokens, and where in its conversation it is: `#<conversation>/<65,536 messages>` and
-- `#<conversation>//<2,048 messages>`. The index computes them, so that messages have them that were written before this
-- step, or by a version that does not know of it.
CREATE OR REPLACE FUNCTION search_terms(tokens TSVECTOR, conversation BIGINT, seq BIGINT) RETURNS TSVECTOR
LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS $$
    SELECT tokens || array_to_tsvector(ARRAY[
        '#' || conversation::text || '/' || (seq >> 16)::text,
        '#' || conversation::text || '//' || (seq >> 11)::text])
$$;

-- Some 15 s for a million messages, in which none can be added. On a large database make the function and the index
-- beforehand, with CREATE INDEX CONCURRENTLY: the step then finds them.
CREATE INDEX IF NOT EXISTS message_search_terms ON message_search
    USING gin (search_terms(tokens, conversation_id, seq)) WITH (fastupdate = off);

-- A version that knows only `tokens` searches by message_search_seq until it is gone: slower, but the same.
DROP INDEX message_search_tokens;
