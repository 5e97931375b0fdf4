-- The tables of shardid on SQLite 3.37 and newer.
-- Running this file again changes nothing.

-- Ranges of ids, one row per tag. max_id is the first id not yet handed out; a
-- range takes step ids. Whoever changes a row sets update_time.
CREATE TABLE IF NOT EXISTS "leaf_alloc" (
  "biz_tag"     VARCHAR(128) NOT NULL DEFAULT '' PRIMARY KEY,
  "max_id"      BIGINT       NOT NULL DEFAULT 1,
  "step"        INT          NOT NULL,
  "description" VARCHAR(256)          DEFAULT NULL,
  "update_time" TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Worker ids, one row per start of a process. The number that ID counts up is
-- the worker id; AUTOINCREMENT never gives a number twice.
CREATE TABLE IF NOT EXISTS "WORKER_NODE" (
  "ID"          INTEGER     NOT NULL PRIMARY KEY AUTOINCREMENT,
  "HOST_NAME"   VARCHAR(64) NOT NULL,
  "PORT"        VARCHAR(64) NOT NULL,
  "TYPE"        INT         NOT NULL,
  "LAUNCH_DATE" DATE        NOT NULL,
  "MODIFIED"    TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP,
  "CREATED"     TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP
);
