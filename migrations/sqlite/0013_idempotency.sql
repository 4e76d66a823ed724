-- Idempotency keys: what was asked under a key, and what was answered. Conventions: ../README.md

-- A claim, made before the work; marked in the transaction of the change; completed by the answer.
CREATE TABLE idempotency_keys (
    organization_id BIGINT NOT NULL, -- 0: a GraphQL request, which may be about several.
    caller TEXT NOT NULL, -- `user:7` or `token:9`.
    idempotency_key TEXT NOT NULL,
    holder TEXT NOT NULL, -- The request that may write here: random.
    request_hash BLOB NOT NULL,
    changed BOOLEAN NOT NULL DEFAULT FALSE CHECK (changed IN (0, 1)),
    status BIGINT, -- Null until it is answered.
    answer_sealed BLOB, -- Sealed, because an answer may show a token.
    claimed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, caller, idempotency_key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
