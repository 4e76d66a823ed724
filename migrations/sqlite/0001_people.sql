-- Plans, organizations, users, members, sign-ins and tokens. Conventions: ../README.md

-- The limits of each plan. The service writes these rows at start from its configuration. They are stored so that an
-- organization's record is always one SELECT with a join.
CREATE TABLE plans (
    plan TEXT NOT NULL CHECK (plan IN ('FREE', 'STARTER', 'PRO', 'BUSINESS', 'ENTERPRISE')),
    max_agents BIGINT NOT NULL,
    max_servers BIGINT NOT NULL,
    channels_per_agent BIGINT NOT NULL,
    min_cron_interval_minutes BIGINT NOT NULL,
    min_mail_poll_minutes BIGINT NOT NULL,
    doctor_runs_per_month BIGINT NOT NULL,
    cron_llm_runs_per_month BIGINT NOT NULL,
    file_versions BIGINT NOT NULL,
    max_stored_mib BIGINT NOT NULL DEFAULT 500,
    max_members BIGINT NOT NULL DEFAULT 25,
    max_open_invitations BIGINT NOT NULL DEFAULT 50,
    max_service_tokens BIGINT NOT NULL DEFAULT 25,
    max_images BIGINT NOT NULL DEFAULT 50,
    max_credentials BIGINT NOT NULL DEFAULT 100,
    max_mcp_servers BIGINT NOT NULL DEFAULT 100,
    max_skills BIGINT NOT NULL DEFAULT 100,
    PRIMARY KEY (plan)
);

INSERT INTO plans (plan, max_agents, max_servers, channels_per_agent, min_cron_interval_minutes, min_mail_poll_minutes,
    doctor_runs_per_month, cron_llm_runs_per_month, file_versions) VALUES
    ('FREE', 3, 1, 2, 60, 15, 5, 100, 5),
    ('STARTER', 10, 3, 5, 15, 5, 20, 1000, 10),
    ('PRO', 50, 10, 10, 5, 2, 100, 10000, 30),
    ('BUSINESS', 250, 50, 25, 1, 1, 500, 100000, 100),
    ('ENTERPRISE', 10000, 1000, 100, 1, 1, 10000, 1000000, 1000);

-- People who can sign in. A person can belong to several organizations.
CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    email TEXT NOT NULL, -- As entered.
    email_folded TEXT NOT NULL, -- In lower case. Unique.
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    password_hash TEXT, -- Argon2id in PHC form; null until a password is set.
    email_confirmed_at BIGINT,
    avatar_version BIGINT,
    disabled_at BIGINT,
    totp_secret_sealed BLOB, -- The second factor.
    totp_confirmed_at BIGINT, -- Null: not active yet.
    totp_last_step BIGINT, -- The last accepted time step, so that a code works only once.
    preferences TEXT CHECK (preferences IS NULL OR json_valid(preferences)), -- What the person has set for the panel: an object.
    time_zone TEXT, -- Of the preferences, if it names one.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email_folded);

-- The tenants. Every other tenant table leads with organization_id.
CREATE TABLE organizations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    plan TEXT NOT NULL DEFAULT 'FREE' CHECK (plan IN ('FREE', 'STARTER', 'PRO', 'BUSINESS', 'ENTERPRISE')),
    avatar_version BIGINT, -- Set while there is an avatar; part of its URL.
    provider_oauth_client_id TEXT,
    provider_oauth_secret_sealed BLOB,
    voice_key_sealed BLOB,
    transcription_key_sealed BLOB,
    timezone TEXT NOT NULL DEFAULT 'UTC',
    default_image_id BIGINT, -- The image of agents created without one.
    trial_ends_at BIGINT,
    grace_until BIGINT,
    grace_from_plan TEXT CHECK (grace_from_plan IN ('FREE', 'STARTER', 'PRO', 'BUSINESS', 'ENTERPRISE')),
    support_access_until BIGINT,
    support_access_granted_at BIGINT,
    support_access_granted_by BIGINT,
    customer_type TEXT NOT NULL DEFAULT 'BUSINESS' CHECK (customer_type IN ('BUSINESS', 'INDIVIDUAL')),
    tax_name TEXT,
    tax_id TEXT,
    tax_country TEXT,
    tax_address TEXT,
    tax_postal_code TEXT,
    tax_city TEXT,
    vat_validated BOOLEAN NOT NULL DEFAULT FALSE CHECK (vat_validated IN (0, 1)),
    vat_validated_at BIGINT,
    backup_retention BIGINT,
    backup_cron TEXT,
    cost_guard_tokens_per_hour BIGINT,
    cost_guard_action TEXT NOT NULL DEFAULT 'NOTIFY' CHECK (cost_guard_action IN ('NOTIFY', 'PAUSE', 'STOP')),
    currency TEXT NOT NULL DEFAULT 'USD', -- Of all its money: three capital letters.
    monthly_budget_micro BIGINT, -- Null: none.
    budget_action TEXT NOT NULL DEFAULT 'PAUSE' CHECK (budget_action IN ('NOTIFY', 'PAUSE', 'STOP')),
    trace_content BOOLEAN NOT NULL DEFAULT FALSE CHECK (trace_content IN (0, 1)), -- Whether traces contain prompts and answers.
    session_reset_tokens BIGINT,
    transcript_retention_days BIGINT,
    contracted_agents BIGINT, -- Overrides the plan's max_agents.
    max_channels_per_agent BIGINT, -- Overrides the plan's channels_per_agent.
    doctor_runs_per_month BIGINT, -- Overrides the plan's.
    cron_llm_runs_per_month BIGINT, -- Overrides the plan's.
    file_versions BIGINT, -- Overrides the plan's.
    max_servers_override BIGINT, -- Overrides the plan's max_servers.
    min_cron_interval_minutes_override BIGINT, -- Overrides the plan's min_cron_interval_minutes.
    min_mail_poll_minutes_override BIGINT, -- Overrides the plan's min_mail_poll_minutes.
    version_retention TEXT NOT NULL DEFAULT 'SPREAD' CHECK (version_retention IN ('SPREAD', 'LATEST', 'ALL')),
    server_alert_ram_pct BIGINT,
    server_alert_cpu_pct BIGINT,
    server_alert_load_factor REAL,
    require_second_factor BOOLEAN NOT NULL DEFAULT FALSE CHECK (require_second_factor IN (0, 1)), -- Members without one are refused.
    mail_request_text BOOLEAN NOT NULL DEFAULT FALSE CHECK (mail_request_text IN (0, 1)), -- Whether mail about approvals contains what is asked.
    chat_risk_limit BIGINT NOT NULL DEFAULT 70 CHECK (chat_risk_limit BETWEEN 0 AND 101), -- Only actions of less risk may be decided in chats.
    stopped_at BIGINT, -- Since then nothing new starts, until someone lets go.
    stopped_by BIGINT, -- The member who stopped it; null: a service token or the operator.
    stopped_by_name TEXT,
    stop_reason TEXT,
    letting_go_at BIGINT, -- After a stop, while queued turns are sent a few at a time: when the last ones were.
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT organizations_plan_fk FOREIGN KEY (plan) REFERENCES plans (plan),
    CONSTRAINT organizations_stopped_by_fk FOREIGN KEY (stopped_by) REFERENCES users (id),
    CONSTRAINT organizations_support_access_granted_by_fk FOREIGN KEY (support_access_granted_by) REFERENCES users (id),
    CONSTRAINT organizations_default_image_fk FOREIGN KEY (id, default_image_id) REFERENCES images (organization_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX organizations_letting_go ON organizations (letting_go_at) WHERE letting_go_at IS NOT NULL;

-- Members of organizations, with their roles.
CREATE TABLE members (
    organization_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('OWNER', 'ADMIN', 'OPERATOR', 'VIEWER')),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, user_id),
    CONSTRAINT members_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT members_user_fk FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX members_user ON members (user_id);

-- Sessions. A refresh token works once. Its successor is the next generation of the same family. Reusing an old one revokes
-- the family, because two parties hold it.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    family TEXT NOT NULL, -- The sign-in that started this session.
    generation BIGINT NOT NULL DEFAULT 0,
    kind TEXT NOT NULL CHECK (kind IN ('BROWSER', 'TOKENS')),
    token_hash BLOB NOT NULL, -- Of the cookie, or of the refresh token.
    user_agent TEXT,
    ip TEXT,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    CONSTRAINT sessions_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX sessions_token ON sessions (token_hash);
CREATE INDEX sessions_user ON sessions (user_id, created_at);
CREATE INDEX sessions_family ON sessions (family);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Credentials for integrations. Only hashes are stored. After a rotation the previous secret works until the overlap ends.
CREATE TABLE service_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    hint TEXT NOT NULL, -- The last four characters.
    permissions TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(permissions)),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT,
    rotated_at BIGINT,
    previous_token_hash BLOB,
    previous_hint TEXT,
    previous_expires_at BIGINT,
    previous_last_used_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT service_tokens_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT service_tokens_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX service_tokens_hash ON service_tokens (token_hash);
CREATE UNIQUE INDEX service_tokens_previous_hash ON service_tokens (previous_token_hash) WHERE previous_token_hash IS NOT NULL;

-- Invitations to an organization. An address has at most one open invitation.
CREATE TABLE invitations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    email TEXT NOT NULL,
    email_folded TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('OWNER', 'ADMIN', 'OPERATOR', 'VIEWER')),
    token_hash BLOB NOT NULL,
    invited_by BIGINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    accepted_at BIGINT,
    accepted_by BIGINT,
    revoked_at BIGINT,
    sent_at BIGINT, -- When the mail with the link was last sent.
    UNIQUE (organization_id, id),
    CONSTRAINT invitations_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT invitations_invited_by_fk FOREIGN KEY (invited_by) REFERENCES users (id),
    CONSTRAINT invitations_accepted_by_fk FOREIGN KEY (accepted_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX invitations_token ON invitations (token_hash);
CREATE UNIQUE INDEX invitations_open ON invitations (organization_id, email_folded) WHERE accepted_at IS NULL AND revoked_at IS NULL;

-- Links sent by mail: for confirming an address or setting a new password.
CREATE TABLE email_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('CONFIRM', 'RESET')),
    -- Where the link was sent. Using the link confirms that address, and makes it the account's.
    email TEXT,
    token_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT email_tokens_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX email_tokens_hash ON email_tokens (token_hash);
CREATE INDEX email_tokens_user ON email_tokens (user_id, kind);

-- Incomplete sign-ins, waiting for a second factor or for the exchange of a code.
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

-- Codes that replace a lost second factor. Each works once.
CREATE TABLE recovery_codes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    code_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT recovery_codes_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX recovery_codes_code ON recovery_codes (user_id, code_hash);

-- Linked accounts of other providers, for signing in.
CREATE TABLE user_identities (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    provider TEXT NOT NULL, -- The provider's name in the configuration.
    subject TEXT NOT NULL, -- The account's id there.
    email TEXT NOT NULL, -- Its address when it was last used.
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    CONSTRAINT user_identities_user_fk FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX user_identities_subject ON user_identities (provider, subject);
CREATE INDEX user_identities_user ON user_identities (user_id);

-- Failed attempts, by account and by address. The key is a digest, because the input can be anything.
CREATE TABLE sign_in_throttle (
    key_hash BLOB NOT NULL,
    failures BIGINT NOT NULL,
    blocked_until BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (key_hash)
);
CREATE INDEX sign_in_throttle_age ON sign_in_throttle (updated_at);

-- The code with which the first person comes in, as a digest. At most one row, and none once there is a user.
CREATE TABLE first_start (
    id BIGINT NOT NULL CHECK (id = 1),
    code_hash BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id)
);
