-- The records that a request with an idempotency key has created, such as `MESSAGE:7 TURN:9`. Who lost the response finds
-- them by it.
ALTER TABLE idempotency_keys ADD COLUMN records TEXT;
