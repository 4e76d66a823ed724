-- Pictures of agents, organizations and people. Conventions: ../README.md

CREATE TABLE avatars (
    version BIGINT NOT NULL, -- Random: whoever knows a picture's address may see it.
    organization_id BIGINT, -- Null: a person's picture.
    agent_id BIGINT, -- Null: the organization's own picture, or a person's.
    user_id BIGINT,
    mime_type TEXT NOT NULL,
    content BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (version),
    CHECK ((organization_id IS NULL) <> (user_id IS NULL)),
    CHECK (agent_id IS NULL OR organization_id IS NOT NULL),
    CONSTRAINT avatars_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT avatars_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT avatars_user_fk FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE INDEX avatars_owner ON avatars (organization_id, agent_id);
CREATE INDEX avatars_user ON avatars (user_id);
