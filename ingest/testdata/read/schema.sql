-- Boats that members may book.
CREATE TABLE IF NOT EXISTS boats (
  id TEXT PRIMARY KEY, -- painted on the bow
  length NUMERIC
);

CREATE OR REPLACE VIEW free AS
SELECT * FROM boats;
