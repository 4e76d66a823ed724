-- What people may demand: erasure, after a grace period. Conventions: ../README.md

-- Scheduled erasures: of the organization, of a member, or of a contact. The row goes with the last step.
CREATE TABLE erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id BIGINT NOT NULL,
    subject TEXT NOT NULL CHECK (subject IN ('ORGANIZATION', 'MEMBER', 'CONTACT')),
    user_id BIGINT, -- The member, who may have left.
    contact_id BIGINT,
    state TEXT NOT NULL CHECK (state IN ('SCHEDULED', 'ENDING', 'DELETING')),
    state_at BIGINT NOT NULL, -- Since when.
    requested_by BIGINT, -- Null: the operator.
    requested_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL, -- Until then it can be cancelled.
    UNIQUE (organization_id, id),
    CHECK ((subject = 'MEMBER') = (user_id IS NOT NULL) AND (subject = 'CONTACT') = (contact_id IS NOT NULL)),
    CONSTRAINT erasures_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT erasures_user_fk FOREIGN KEY (user_id) REFERENCES users (id),
    CONSTRAINT erasures_contact_fk FOREIGN KEY (organization_id, contact_id) REFERENCES contacts (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT erasures_requested_by_fk FOREIGN KEY (requested_by) REFERENCES users (id)
);
CREATE UNIQUE INDEX erasures_organization ON erasures (organization_id) WHERE subject = 'ORGANIZATION';
CREATE UNIQUE INDEX erasures_user ON erasures (organization_id, user_id) WHERE subject = 'MEMBER';
CREATE UNIQUE INDEX erasures_contact ON erasures (organization_id, contact_id) WHERE subject = 'CONTACT';
CREATE INDEX erasures_due ON erasures (due_at);
