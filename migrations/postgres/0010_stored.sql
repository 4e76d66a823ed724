-- Pictures, and how many bytes each organization stores. Conventions: ../README.md

-- Pictures of agents, organizations and people.
CREATE TABLE avatars (
    version BIGINT NOT NULL, -- Random: anyone who knows a picture's URL may see it.
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

-- How many bytes of attachments, messages as they came, pictures and skills an organization stores. Triggers maintain the sum, so that nothing that
-- adds or removes such a row, not even a cascade, can forget it. Two requests that add at once wait for each other here.
CREATE TABLE stored_bytes (
    organization_id BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    message_bytes BIGINT NOT NULL DEFAULT 0, -- What messages take, as it was summed last: each minute.
    PRIMARY KEY (organization_id),
    CONSTRAINT stored_bytes_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

CREATE FUNCTION add_stored_bytes(org BIGINT, added BIGINT) RETURNS void LANGUAGE sql AS $$
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (org, added)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = stored_bytes.bytes + excluded.bytes;
$$;

-- For attachments, and messages as they came.
CREATE FUNCTION count_size() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_stored_bytes(NEW.organization_id, NEW.size_bytes);
    ELSE
        PERFORM add_stored_bytes(OLD.organization_id, -OLD.size_bytes);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER attachments_stored AFTER INSERT OR DELETE ON attachments FOR EACH ROW EXECUTE FUNCTION count_size();
CREATE TRIGGER message_sources_stored AFTER INSERT OR DELETE ON message_sources FOR EACH ROW EXECUTE FUNCTION count_size();

-- For pictures and skills. People's pictures belong to no organization.
CREATE FUNCTION count_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' AND NEW.organization_id IS NOT NULL THEN
        PERFORM add_stored_bytes(NEW.organization_id, octet_length(NEW.content));
    END IF;
    IF TG_OP <> 'INSERT' AND OLD.organization_id IS NOT NULL THEN
        PERFORM add_stored_bytes(OLD.organization_id, -octet_length(OLD.content));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER avatars_stored AFTER INSERT OR DELETE ON avatars FOR EACH ROW EXECUTE FUNCTION count_content();
CREATE TRIGGER skills_stored AFTER INSERT OR DELETE OR UPDATE OF content ON skills
    FOR EACH ROW EXECUTE FUNCTION count_content();
