-- How many bytes a kept answer takes, so that those of one caller can be added up.

ALTER TABLE idempotency_keys ADD COLUMN answer_bytes BIGINT;
CREATE INDEX idempotency_keys_answers ON idempotency_keys (caller, answer_bytes) WHERE answer_bytes IS NOT NULL;
