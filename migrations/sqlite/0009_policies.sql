-- Organizations' own rules, counts of policy decisions, and the serving replicas. Conventions: ../README.md

-- Every text that an organization's own rules have had in the database. The newest row decides if the policy folder has no
-- file for the organization.
CREATE TABLE policy_versions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    text TEXT, -- Null: no rules of its own.
    version TEXT NOT NULL, -- Identifies the text that an edit is based on.
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'OPERATOR')),
    author_id BIGINT,
    author_name TEXT,
    reason TEXT NOT NULL,
    reverts_to BIGINT, -- The earlier version whose text this is again.
    at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT policy_versions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

-- How often each operation was allowed or refused, one row per day. Written in batches in the background.
CREATE TABLE decisions (
    organization_id BIGINT NOT NULL,
    day BIGINT NOT NULL, -- Days since 1970.
    subject TEXT NOT NULL, -- A role, or service_token.
    token_id BIGINT NOT NULL DEFAULT 0, -- The service token; 0: a person.
    operation TEXT NOT NULL, -- The root field of the schema.
    permission TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('ALLOWED', 'REFUSED', 'NOT_ISSUED')), -- NOT_ISSUED: the token was not issued with it.
    count BIGINT NOT NULL,
    PRIMARY KEY (organization_id, day, subject, token_id, operation, outcome),
    CONSTRAINT decisions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX decisions_day ON decisions (day);

-- The serving replicas. The row of a dead one is removed after a while.
CREATE TABLE replicas (
    id TEXT NOT NULL, -- Random, chosen at start.
    address TEXT NOT NULL, -- The machine, and the address it listens on.
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    policy_folder TEXT NOT NULL, -- Identifies the content of its policy folder.
    PRIMARY KEY (id)
);
