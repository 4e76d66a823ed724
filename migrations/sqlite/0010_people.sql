-- People: mail on its way, addresses that a link confirms, second factors, accounts elsewhere, sign-ins that failed.

-- Mail that has still to leave, written with the change that causes it. It holds no link and no token: a link is made
-- when the mail is sent. A row goes when the mail has gone, or has come too late.
CREATE TABLE mail_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('CONFIRM_EMAIL', 'RESET_PASSWORD', 'INVITATION', 'NOTICE')),
    recipient TEXT NOT NULL,
    subject_id BIGINT, -- The row of email_tokens or invitations that the link is for.
    parts TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(parts)), -- What the text names; never a secret.
    attempts BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    available_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX mail_outbox_due ON mail_outbox (available_at);

-- The address that the link was sent to: using the link proves it. Where it is not the person's own, it becomes so.
ALTER TABLE email_tokens ADD COLUMN email TEXT;

-- Steps of a sign-in that is not complete: a second factor is awaited, or a code waits to be exchanged.
CREATE TABLE sign_in_challenges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('SECOND_FACTOR', 'CODE')),
    token_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT sign_in_challenges_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX sign_in_challenges_token ON sign_in_challenges (token_hash);
CREATE INDEX sign_in_challenges_user ON sign_in_challenges (user_id);
CREATE INDEX sign_in_challenges_expiry ON sign_in_challenges (expires_at);

-- Codes that stand in for a lost second factor, each once.
CREATE TABLE recovery_codes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    code_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT recovery_codes_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX recovery_codes_code ON recovery_codes (user_id, code_hash);

-- Accounts elsewhere by which a person signs in.
CREATE TABLE user_identities (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    provider TEXT NOT NULL, -- The provider's name in the configuration.
    subject TEXT NOT NULL, -- Who it is there.
    email TEXT NOT NULL, -- The address there when it was last used.
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    CONSTRAINT user_identities_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX user_identities_subject ON user_identities (provider, subject);
CREATE INDEX user_identities_user ON user_identities (user_id);

-- Attempts that count against an account or an address. The key is a digest: what was typed may be anybody's.
CREATE TABLE sign_in_throttle (
    key_hash BLOB NOT NULL,
    failures BIGINT NOT NULL,
    blocked_until BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (key_hash)
);
CREATE INDEX sign_in_throttle_age ON sign_in_throttle (updated_at);

-- When the mail with the invitation last left.
ALTER TABLE invitations ADD COLUMN sent_at BIGINT;

-- Members without a second factor are kept out.
ALTER TABLE organizations ADD COLUMN require_second_factor BOOLEAN NOT NULL DEFAULT FALSE CHECK (require_second_factor IN (0, 1));
