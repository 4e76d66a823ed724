-- What bounds what a tenant keeps: limits of the plans, and the bytes in use. Conventions: ../README.md

-- A server that was deleted stays, since rows of deleted agents and approvals refer to it, and nobody sees it.
ALTER TABLE servers ADD COLUMN archived_at BIGINT;

-- The service writes them at start from its configuration.
ALTER TABLE plans ADD COLUMN max_stored_mib BIGINT NOT NULL DEFAULT 500;
ALTER TABLE plans ADD COLUMN max_members BIGINT NOT NULL DEFAULT 25;
ALTER TABLE plans ADD COLUMN max_open_invitations BIGINT NOT NULL DEFAULT 50;
ALTER TABLE plans ADD COLUMN max_service_tokens BIGINT NOT NULL DEFAULT 25;
ALTER TABLE plans ADD COLUMN max_images BIGINT NOT NULL DEFAULT 50;
ALTER TABLE plans ADD COLUMN max_credentials BIGINT NOT NULL DEFAULT 100;
ALTER TABLE plans ADD COLUMN max_mcp_servers BIGINT NOT NULL DEFAULT 100;
ALTER TABLE plans ADD COLUMN max_skills BIGINT NOT NULL DEFAULT 100;

-- How many bytes of attachments, pictures and skills an organization keeps. Triggers keep the sum, so that nothing which
-- adds or removes such a row, a cascade included, can forget it. Its row is also what two who add at once wait for.
CREATE TABLE stored_bytes (
    organization_id BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (organization_id),
    CONSTRAINT stored_bytes_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id)
);

INSERT INTO stored_bytes (organization_id, bytes)
SELECT organization_id, SUM(bytes) FROM (
    SELECT organization_id, size_bytes AS bytes FROM attachments
    UNION ALL SELECT organization_id, octet_length(content) FROM avatars WHERE organization_id IS NOT NULL
    UNION ALL SELECT organization_id, octet_length(content) FROM skills
) AS kept GROUP BY organization_id;

CREATE FUNCTION add_stored_bytes(org BIGINT, added BIGINT) RETURNS void LANGUAGE sql AS $$
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (org, added)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = stored_bytes.bytes + excluded.bytes;
$$;

CREATE FUNCTION count_attachment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_stored_bytes(NEW.organization_id, NEW.size_bytes);
    ELSE
        PERFORM add_stored_bytes(OLD.organization_id, -OLD.size_bytes);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER attachments_stored AFTER INSERT OR DELETE ON attachments FOR EACH ROW EXECUTE FUNCTION count_attachment();

-- A picture or a skill; people's pictures belong to no organization.
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
