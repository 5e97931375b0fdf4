-- +goose Up
CREATE TABLE jobs (
  id BIGINT NOT NULL PRIMARY KEY,
  user_id BIGINT NOT NULL,
  kind VARCHAR(20) NOT NULL,
  free_at BIGINT NOT NULL
);
CREATE INDEX jobs_free ON jobs (free_at);

-- +goose Down
DROP TABLE jobs;
