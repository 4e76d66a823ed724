-- Signing keys, and the idempotency keys of requests. Conventions: ../README.md

-- Keys that sign access tokens. A key is next (activated_at is null), active, or retired. The private half of a retired one
-- is destroyed: its column is empty.
CREATE TABLE signing_keys (
    kid TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    public_key TEXT NOT NULL,
    private_key_sealed BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    activate_at BIGINT, -- When the next key becomes the active one.
    activated_at BIGINT,
    retired_at BIGINT,
    verify_until BIGINT, -- When a retired key stops verifying.
    PRIMARY KEY (kid)
);
CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (algorithm) WHERE activated_at IS NOT NULL AND retired_at IS NULL;
CREATE UNIQUE INDEX signing_keys_one_next ON signing_keys (algorithm) WHERE activated_at IS NULL AND retired_at IS NULL;

-- Idempotency keys: the request made with a key, and its response. A row is claimed before the work, marked in the
-- transaction of the change, and completed with the response.
CREATE TABLE idempotency_keys (
    organization_id BIGINT NOT NULL, -- 0: a GraphQL request, which may involve several.
    caller TEXT NOT NULL, -- `user:7` or `token:9`.
    idempotency_key TEXT NOT NULL,
    holder TEXT NOT NULL, -- The request that holds the row: random.
    request_hash BYTEA NOT NULL,
    changed BOOLEAN NOT NULL DEFAULT FALSE,
    status BIGINT, -- Null until there is a response.
    answer_sealed BYTEA, -- Sealed, because not everyone may read it.
    answer_bytes BIGINT, -- Its size, so that a caller's responses can be added up.
    records TEXT, -- The records that the request has created, such as `MESSAGE:7 TURN:9`.
    claimed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, caller, idempotency_key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
CREATE INDEX idempotency_keys_answers ON idempotency_keys (caller, answer_bytes) WHERE answer_bytes IS NOT NULL;
