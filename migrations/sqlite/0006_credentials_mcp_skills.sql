-- Credentials, MCP servers and skills, and the agents that may use them. Conventions: ../README.md

-- Named sets of secrets.
CREATE TABLE credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('api-key', 'bearer-token', 'basic-auth', 'oauth2', 'ssh-key', 'certificate', 'connection-string', 'custom')),
    destinations TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(destinations)),
    agent_may_read_at BIGINT, -- When a person said that agents may read it. Null: they may not.
    agent_may_read_by BIGINT,
    agent_may_read_by_name TEXT,
    last_used_at BIGINT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT credentials_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credentials_agent_may_read_by_fk FOREIGN KEY (agent_may_read_by) REFERENCES users (id),
    CONSTRAINT credentials_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX credentials_name ON credentials (organization_id, name) WHERE archived_at IS NULL;

-- The secrets of a credential.
CREATE TABLE credential_fields (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    label TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('text', 'secret', 'multiline', 'url', 'number', 'boolean', 'json')),
    position BIGINT NOT NULL DEFAULT 0,
    value_sealed BLOB,
    UNIQUE (organization_id, id),
    CONSTRAINT credential_fields_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credential_fields_credential_fk FOREIGN KEY (organization_id, credential_id) REFERENCES credentials (organization_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX credential_fields_label ON credential_fields (organization_id, credential_id, label);

-- Which agents may use a credential.
CREATE TABLE credential_agents (
    organization_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    assigned_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, credential_id, agent_id),
    CONSTRAINT credential_agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credential_agents_credential_fk FOREIGN KEY (organization_id, credential_id) REFERENCES credentials (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT credential_agents_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX credential_agents_agent ON credential_agents (organization_id, agent_id);

-- Which members may use a credential.
CREATE TABLE credential_members (
    organization_id BIGINT NOT NULL,
    credential_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, credential_id, user_id),
    CONSTRAINT credential_members_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT credential_members_credential_fk FOREIGN KEY (organization_id, credential_id) REFERENCES credentials (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT credential_members_user_fk FOREIGN KEY (organization_id, user_id) REFERENCES members (organization_id, user_id) ON DELETE CASCADE
);
CREATE INDEX credential_members_user ON credential_members (organization_id, user_id);

-- MCP servers that agents may call.
CREATE TABLE mcp_servers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    transport TEXT NOT NULL CHECK (transport IN ('STDIO', 'HTTP', 'SSE')),
    command TEXT,
    args TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(args)),
    url TEXT,
    auth TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(auth)), -- The names of the secrets it needs.
    workspace TEXT NOT NULL DEFAULT 'NONE' CHECK (workspace IN ('NONE', 'READ')),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT mcp_servers_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT mcp_servers_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX mcp_servers_name ON mcp_servers (organization_id, name) WHERE archived_at IS NULL;

-- Which agents may call an MCP server.
CREATE TABLE mcp_server_agents (
    organization_id BIGINT NOT NULL,
    mcp_server_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    assigned_at BIGINT NOT NULL,
    -- The last report of the agent's host, and its launch.
    state TEXT CHECK (state IN ('IDLE', 'STARTING', 'RUNNING', 'FAILED')),
    launch_generation BIGINT,
    reported_at BIGINT,
    error TEXT,
    stderr TEXT,
    tools TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tools)),
    -- The last test of the connection, and its result.
    test_asked_at BIGINT,
    tested_at BIGINT,
    test_error TEXT,
    protocol TEXT,
    program TEXT,
    PRIMARY KEY (organization_id, mcp_server_id, agent_id),
    CONSTRAINT mcp_server_agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT mcp_server_agents_mcp_server_fk FOREIGN KEY (organization_id, mcp_server_id) REFERENCES mcp_servers (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT mcp_server_agents_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX mcp_server_agents_agent ON mcp_server_agents (organization_id, agent_id);

-- The known tools of an MCP server.
CREATE TABLE mcp_server_tools (
    organization_id BIGINT NOT NULL,
    mcp_server_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    -- The accepted definition. Null with a digest: it is too long to be kept. Null without one: none was accepted yet.
    definition TEXT CHECK (definition IS NULL OR json_valid(definition)),
    digest TEXT,
    -- A later definition that has not been accepted.
    new_definition TEXT CHECK (new_definition IS NULL OR json_valid(new_definition)),
    new_digest TEXT,
    enabled BOOLEAN NOT NULL DEFAULT TRUE CHECK (enabled IN (0, 1)),
    risk BIGINT CHECK (risk BETWEEN 0 AND 100),
    known_since BIGINT NOT NULL,
    PRIMARY KEY (organization_id, mcp_server_id, name),
    CONSTRAINT mcp_server_tools_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT mcp_server_tools_mcp_server_fk FOREIGN KEY (organization_id, mcp_server_id) REFERENCES mcp_servers (organization_id, id) ON DELETE CASCADE
);

-- Written instructions, provided as files in an agent's volume.
CREATE TABLE skills (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    name_folded TEXT NOT NULL,
    description TEXT,
    content TEXT NOT NULL DEFAULT '',
    content_hash TEXT NOT NULL, -- SHA-256 of content, in hexadecimal.
    version BIGINT NOT NULL DEFAULT 0, -- The newest of skill_versions.
    model TEXT,
    effort TEXT CHECK (effort IN ('LOW', 'MEDIUM', 'HIGH', 'MAX')),
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT skills_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT skills_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX skills_name ON skills (organization_id, name) WHERE archived_at IS NULL;

-- Which agents have a skill.
CREATE TABLE skill_agents (
    organization_id BIGINT NOT NULL,
    skill_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    assigned_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, skill_id, agent_id),
    CONSTRAINT skill_agents_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT skill_agents_skill_fk FOREIGN KEY (organization_id, skill_id) REFERENCES skills (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT skill_agents_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX skill_agents_agent ON skill_agents (organization_id, agent_id);

-- Versions of skills. Rows are never changed.
CREATE TABLE skill_versions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    skill_id BIGINT NOT NULL,
    number BIGINT NOT NULL, -- 1, 2, 3, ...
    content TEXT NOT NULL, -- Canonical JSON, byte by byte: keys in order, no spaces.
    content_hash TEXT NOT NULL, -- SHA-256 of content, in hexadecimal.
    bytes BIGINT NOT NULL, -- The length of content.
    changes TEXT NOT NULL CHECK (json_valid(changes)), -- Against the one before: field -> [before, after].
    reverts_to BIGINT, -- The earlier number whose content this is again.
    author_kind TEXT NOT NULL CHECK (author_kind IN ('USER', 'SERVICE_TOKEN', 'SYSTEM', 'ANONYMOUS')),
    author_id BIGINT,
    author_name TEXT NOT NULL,
    operation TEXT, -- The root field of the schema.
    reason TEXT,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT skill_versions_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT skill_versions_skill_fk FOREIGN KEY (organization_id, skill_id) REFERENCES skills (organization_id, id)
);
CREATE UNIQUE INDEX skill_versions_number ON skill_versions (organization_id, skill_id, number);
