-- Pictures, and how many bytes each organization stores. Conventions: ../README.md

-- Pictures of agents, organizations and people.
CREATE TABLE avatars (
    version BIGINT NOT NULL, -- Random: anyone who knows a picture's URL may see it.
    organization_id BIGINT, -- Null: a person's picture.
    agent_id BIGINT, -- Null: the organization's own picture, or a person's.
    user_id BIGINT,
    mime_type TEXT NOT NULL,
    content BLOB NOT NULL,
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

-- How many bytes of attachments, messages as they came, pictures and skills an organization stores. Triggers maintain the sum, so that nothing that
-- adds or removes such a row, not even a cascade, can forget it. Two requests that add at once wait for each other here.
CREATE TABLE stored_bytes (
    organization_id BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    message_bytes BIGINT NOT NULL DEFAULT 0, -- What messages take, as it was summed last: each minute.
    PRIMARY KEY (organization_id),
    CONSTRAINT stored_bytes_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE TRIGGER attachments_stored AFTER INSERT ON attachments BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, new.size_bytes)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER attachments_removed AFTER DELETE ON attachments BEGIN
    UPDATE stored_bytes SET bytes = bytes - old.size_bytes WHERE organization_id = old.organization_id;
END;
CREATE TRIGGER message_sources_stored AFTER INSERT ON message_sources BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, new.size_bytes)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER message_sources_removed AFTER DELETE ON message_sources BEGIN
    UPDATE stored_bytes SET bytes = bytes - old.size_bytes WHERE organization_id = old.organization_id;
END;
CREATE TRIGGER avatars_stored AFTER INSERT ON avatars WHEN new.organization_id IS NOT NULL BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, length(new.content))
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER avatars_removed AFTER DELETE ON avatars WHEN old.organization_id IS NOT NULL BEGIN
    UPDATE stored_bytes SET bytes = bytes - length(old.content) WHERE organization_id = old.organization_id;
END;
CREATE TRIGGER skills_stored AFTER INSERT ON skills BEGIN
    INSERT INTO stored_bytes (organization_id, bytes)
    VALUES (new.organization_id, length(CAST(new.content AS BLOB)))
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER skills_rewritten AFTER UPDATE OF content ON skills BEGIN
    UPDATE stored_bytes SET bytes = bytes + length(CAST(new.content AS BLOB)) - length(CAST(old.content AS BLOB))
    WHERE organization_id = new.organization_id;
END;
CREATE TRIGGER skills_removed AFTER DELETE ON skills BEGIN
    UPDATE stored_bytes SET bytes = bytes - length(CAST(old.content AS BLOB))
    WHERE organization_id = old.organization_id;
END;
