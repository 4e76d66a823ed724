-- Which version of Muster applied each step. Conventions: ../README.md

-- An older version reads it to name the version that the database needs. Written after the steps.
CREATE TABLE step_versions (
    step BIGINT NOT NULL,
    muster TEXT NOT NULL, -- Such as 0.1.0.
    PRIMARY KEY (step)
);
