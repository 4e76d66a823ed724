-- Keys and tokens that are replaced while both the old and the new one are good. Conventions: ../README.md

-- A key is next (activated_at is null), active, or retired. Of a retired one the private half is gone: its column
-- holds no bytes.
ALTER TABLE signing_keys ADD COLUMN activate_at BIGINT; -- When the next key becomes the active one.
ALTER TABLE signing_keys ADD COLUMN verify_until BIGINT; -- Until when a retired key still verifies.
CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (algorithm) WHERE activated_at IS NOT NULL AND retired_at IS NULL;
CREATE UNIQUE INDEX signing_keys_one_next ON signing_keys (algorithm) WHERE activated_at IS NULL AND retired_at IS NULL;

-- The secret that a token had before it was rotated, which works until the overlap ends.
ALTER TABLE service_tokens ADD COLUMN rotated_at BIGINT;
ALTER TABLE service_tokens ADD COLUMN previous_token_hash BLOB;
ALTER TABLE service_tokens ADD COLUMN previous_hint TEXT;
ALTER TABLE service_tokens ADD COLUMN previous_expires_at BIGINT;
ALTER TABLE service_tokens ADD COLUMN previous_last_used_at BIGINT;
CREATE UNIQUE INDEX service_tokens_previous_hash ON service_tokens (previous_token_hash) WHERE previous_token_hash IS NOT NULL;
