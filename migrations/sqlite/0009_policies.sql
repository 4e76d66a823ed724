-- The texts that policy files have had, and what they decided. Conventions: ../README.md

-- Every text that a policy file has had. An organization's newest row is the truth about its own file.
CREATE TABLE policy_versions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT, -- Null: the operator's file, for every organization.
    file TEXT NOT NULL, -- Relative to the policy folder: policy.csv, orgs/7.csv.
    text TEXT, -- Null: there was no such file.
    version TEXT NOT NULL, -- Identifies the text: what an edit is made against.
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'OPERATOR', 'FILE')),
    author_id BIGINT,
    author_name TEXT,
    reason TEXT,
    reverts_to BIGINT, -- The earlier version whose text this is again.
    at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT policy_versions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX policy_versions_file ON policy_versions (organization_id, file, id);

-- How often which operation was allowed or refused, one row a day. Written in batches beside the requests.
CREATE TABLE decisions (
    organization_id BIGINT NOT NULL,
    day BIGINT NOT NULL, -- Days since 1970.
    subject TEXT NOT NULL, -- A role, or service_token.
    token_id BIGINT NOT NULL DEFAULT 0, -- Which service token; 0: a person.
    operation TEXT NOT NULL, -- The root field of the schema.
    permission TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('ALLOWED', 'REFUSED', 'NOT_ISSUED')), -- NOT_ISSUED: the token's own list lacks it.
    count BIGINT NOT NULL,
    PRIMARY KEY (organization_id, day, subject, token_id, operation, outcome),
    CONSTRAINT decisions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);
CREATE INDEX decisions_day ON decisions (day);
