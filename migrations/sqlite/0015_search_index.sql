-- The search index in one piece: a search looks into each piece for each of its words, and every message begins a new one.
-- Half a second for a million messages. From here on the round `search.merge` keeps the pieces few. Conventions and why:
-- ../README.md, ../../docs/decisions/0015-search-from-the-end.md
INSERT INTO messages_fts (messages_fts) VALUES ('optimize');
