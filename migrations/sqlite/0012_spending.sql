-- What agents are contained with: model credentials, the network, money. Conventions: ../README.md

-- The organization's model credentials. An agent inherits the default one of its provider.
CREATE TABLE model_credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    provider TEXT NOT NULL, -- In lower case.
    base_url TEXT, -- Null: the provider's own.
    type TEXT NOT NULL DEFAULT 'API_KEY' CHECK (type IN ('OAUTH', 'API_KEY')),
    secret_sealed BLOB, -- Null once it is archived.
    is_default BOOLEAN NOT NULL DEFAULT FALSE CHECK (is_default IN (0, 1)),
    limited_until BIGINT, -- The provider refuses calls until then. Null: it doesn't.
    limit_detail TEXT,
    probing_at BIGINT, -- When a turn was sent alone to see whether calls pass again.
    auth_failed_at BIGINT,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    UNIQUE (organization_id, id),
    CONSTRAINT model_credentials_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT model_credentials_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX model_credentials_name ON model_credentials (organization_id, name) WHERE archived_at IS NULL;
CREATE UNIQUE INDEX model_credentials_default ON model_credentials (organization_id, provider) WHERE is_default AND archived_at IS NULL;
CREATE INDEX model_credentials_limited ON model_credentials (limited_until) WHERE limited_until IS NOT NULL;
CREATE INDEX approvals_model_credential ON approvals (organization_id, model_credential_id) WHERE model_credential_id IS NOT NULL;

-- Hosts that the organization's agents may reach.
CREATE TABLE allowed_hosts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    host TEXT NOT NULL, -- A name in lower case, or `*.` and a name of at least two labels.
    port BIGINT NOT NULL CHECK (port BETWEEN 1 AND 65535),
    created_by BIGINT,
    created_by_name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT allowed_hosts_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT allowed_hosts_created_by_fk FOREIGN KEY (created_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX allowed_hosts_host ON allowed_hosts (organization_id, host, port);

-- Where agents were not let through. The newest of each agent are kept.
CREATE TABLE refused_destinations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    host TEXT NOT NULL,
    port BIGINT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    UNIQUE (organization_id, id),
    CONSTRAINT refused_destinations_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT refused_destinations_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);
CREATE UNIQUE INDEX refused_destinations_host ON refused_destinations (organization_id, agent_id, host, port);

-- The organization's spending in a month of its time zone. All money is in millionths of its currency.
CREATE TABLE organization_months (
    organization_id BIGINT NOT NULL,
    from_at BIGINT NOT NULL, -- When the month begins.
    until_at BIGINT NOT NULL, -- When the next one begins.
    cost_micro BIGINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    leased_micro BIGINT NOT NULL DEFAULT 0, -- What open leases may still spend.
    allowed_micro BIGINT NOT NULL DEFAULT 0, -- What people have allowed on top of the budget.
    PRIMARY KEY (organization_id, from_at),
    CONSTRAINT organization_months_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

-- The same of an agent.
CREATE TABLE agent_months (
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    from_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    cost_micro BIGINT NOT NULL DEFAULT 0,
    tokens BIGINT NOT NULL DEFAULT 0,
    leased_micro BIGINT NOT NULL DEFAULT 0,
    allowed_micro BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, agent_id, from_at),
    CONSTRAINT agent_months_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_months_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

-- Tokens that people have allowed an agent on top of those of an hour.
CREATE TABLE token_allowances (
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    PRIMARY KEY (organization_id, agent_id),
    CONSTRAINT token_allowances_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT token_allowances_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);

-- What an agent's host may spend by itself. Deleted a while after they were closed.
CREATE TABLE leases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    question BIGINT NOT NULL, -- What identifies the host's question. Asked again, it gets the same lease.
    month_at BIGINT NOT NULL, -- The month from whose budgets it is: when it begins.
    cost_micro BIGINT, -- Null: unlimited.
    tokens BIGINT, -- Null: unlimited.
    used_micro BIGINT NOT NULL DEFAULT 0,
    used_tokens BIGINT NOT NULL DEFAULT 0,
    until_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    closed_at BIGINT, -- It was returned, or is over: what was left has gone back.
    UNIQUE (organization_id, id),
    CONSTRAINT leases_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT leases_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);
CREATE INDEX leases_open ON leases (organization_id, agent_id) WHERE closed_at IS NULL;
CREATE INDEX leases_due ON leases (until_at) WHERE closed_at IS NULL;
CREATE INDEX leases_closed ON leases (closed_at) WHERE closed_at IS NOT NULL;

-- Calls of models. Kept for a while; model_days has their sums.
CREATE TABLE model_calls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    turn_id BIGINT,
    model_credential_id BIGINT, -- Null: the agent's own, or none.
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    status BIGINT, -- The HTTP status. Null: the model could not be reached, or the agent hung up.
    started_at BIGINT NOT NULL,
    millis BIGINT NOT NULL,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    cost_micro BIGINT, -- Null: the model has no price, or the usage is unknown.
    UNIQUE (organization_id, id),
    CONSTRAINT model_calls_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT model_calls_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT model_calls_turn_fk FOREIGN KEY (organization_id, turn_id) REFERENCES turns (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT model_calls_model_credential_fk FOREIGN KEY (organization_id, model_credential_id) REFERENCES model_credentials (organization_id, id)
);
CREATE INDEX model_calls_agent ON model_calls (organization_id, agent_id, started_at);
CREATE INDEX model_calls_turn ON model_calls (organization_id, turn_id);
CREATE INDEX model_calls_started ON model_calls (started_at);

-- What calls of a model have cost in a day of the organization's time zone.
CREATE TABLE model_days (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    day TEXT NOT NULL, -- 2026-06-01
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL DEFAULT 0,
    unpriced_calls BIGINT NOT NULL DEFAULT 0, -- Calls whose cost is unknown.
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cache_read_tokens BIGINT NOT NULL DEFAULT 0,
    cache_write_tokens BIGINT NOT NULL DEFAULT 0,
    cost_micro BIGINT NOT NULL DEFAULT 0,
    UNIQUE (organization_id, id),
    CONSTRAINT model_days_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT model_days_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id)
);
CREATE UNIQUE INDEX model_days_day ON model_days (organization_id, agent_id, day, provider, model);
CREATE INDEX model_days_newest ON model_days (organization_id, day DESC, id);

-- Agents that may not call their model at the moment. Their turns wait.
CREATE TABLE agent_limits (
    organization_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('MONEY', 'TOKENS', 'USAGE')),
    reason TEXT NOT NULL,
    until_at BIGINT, -- When to look again. Null: once someone has allowed more.
    model_credential_id BIGINT, -- The organization's model credential that is limited.
    probing_at BIGINT, -- When one of its turns was sent alone to see whether calls pass again.
    since BIGINT NOT NULL,
    PRIMARY KEY (organization_id, agent_id),
    CONSTRAINT agent_limits_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT agent_limits_agent_fk FOREIGN KEY (organization_id, agent_id) REFERENCES agents (organization_id, id),
    CONSTRAINT agent_limits_model_credential_fk FOREIGN KEY (organization_id, model_credential_id) REFERENCES model_credentials (organization_id, id)
);
CREATE INDEX agent_limits_due ON agent_limits (until_at) WHERE until_at IS NOT NULL;
CREATE INDEX agent_limits_model_credential ON agent_limits (organization_id, model_credential_id);
