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
    UNION ALL SELECT organization_id, length(content) FROM avatars WHERE organization_id IS NOT NULL
    UNION ALL SELECT organization_id, length(CAST(content AS BLOB)) FROM skills
) AS kept GROUP BY organization_id;

CREATE TRIGGER attachments_stored AFTER INSERT ON attachments BEGIN
    INSERT INTO stored_bytes (organization_id, bytes) VALUES (new.organization_id, new.size_bytes)
    ON CONFLICT (organization_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER attachments_removed AFTER DELETE ON attachments BEGIN
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
