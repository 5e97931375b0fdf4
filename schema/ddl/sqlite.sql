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

-- Leased worker ids, one row per worker id of a namespace: until which tick its
-- owner may make ids with it. Owner is a random word of one lease, holder says
-- who that is; generation counts how often the worker id was taken, 0 means
-- never. Do not delete rows: deleted ones are missed, because worker_namespace
-- has their number, and their worker ids are given again only after a term.
CREATE TABLE IF NOT EXISTS "worker_lease" (
  "namespace"  VARCHAR(64)  NOT NULL,
  "worker_id"  BIGINT       NOT NULL,
  "owner"      VARCHAR(64)           DEFAULT NULL,
  "holder"     VARCHAR(128) NOT NULL,
  "era"        BIGINT       NOT NULL,
  "generation" BIGINT       NOT NULL,
  "ceiling"    BIGINT       NOT NULL,
  PRIMARY KEY ("namespace", "worker_id")
);

-- The layout of each namespace's ids (keygen.Layout's Fingerprint), which all of its
-- processes have, and how the ticks of its leases are counted. The unit is negative
-- where a layout is noted, so that versions that noted none refuse the namespace; a
-- minus before the layout says that it is being changed, and safe_from_us when the
-- leases of the newest one began. The row '' is about all leases:
-- the longest term, and the time (microseconds since 1970) before which leases
-- may lie that were lost; era above is this time when the worker id was taken.
-- Without the row leases count as lost, and the next ones begin two terms later.
-- The row 'leaf_alloc' notes where guarded tags are reserved.
CREATE TABLE IF NOT EXISTS "worker_namespace" (
  "namespace"    VARCHAR(64)  NOT NULL PRIMARY KEY,
  "epoch_us"     BIGINT       NOT NULL,
  "unit_ns"      BIGINT       NOT NULL,
  "identity"     VARCHAR(128) NOT NULL,
  "longest_us"   BIGINT       NOT NULL,
  "safe_from_us" BIGINT       NOT NULL,
  "layout"       VARCHAR(255) NOT NULL DEFAULT ''
);

-- A table of a version before lacks the column layout. SQLite cannot add it on
-- condition; where it is missing, schema.Apply adds it, or this once:
--   ALTER TABLE worker_namespace ADD COLUMN layout VARCHAR(255) NOT NULL DEFAULT ''


-- Where nothing was leased yet, nothing was lost.
INSERT OR IGNORE INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us")
  SELECT '', 0, 0, 'sqlite', 0, 0
  WHERE NOT EXISTS (SELECT 1 FROM "worker_namespace") AND NOT EXISTS (SELECT 1 FROM "worker_lease");
