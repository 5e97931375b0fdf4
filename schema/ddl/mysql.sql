-- The tables of shardid on MySQL 5.7 and newer and MariaDB 10.6 and newer.
-- Running this file again changes nothing.

-- Ranges of ids, one row per tag: the table of Leaf's segment mode, which can
-- share it. max_id is the first id not yet handed out; a range takes step ids.
-- A process that takes ranges needs no more than
--   GRANT SELECT, UPDATE (max_id) ON leaf_alloc TO …
-- and seeding a tag needs SELECT, INSERT, UPDATE (max_id). The collation keeps counters
-- of keys apart that differ in case or accents.
CREATE TABLE IF NOT EXISTS `leaf_alloc` (
  `biz_tag`     varchar(128) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  `max_id`      bigint       NOT NULL DEFAULT 1,
  `step`        int          NOT NULL,
  `description` varchar(256)          DEFAULT NULL,
  `update_time` timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (`biz_tag`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Worker ids, one row per start of a process: the table of UidGenerator. The
-- number that ID counts up is the worker id.
-- A process that takes a worker id needs no more than
--   GRANT INSERT, SELECT (ID) ON WORKER_NODE TO …
-- and a guarded one SELECT, INSERT, UPDATE on worker_namespace, too.
CREATE TABLE IF NOT EXISTS `WORKER_NODE` (
  `ID`          bigint      NOT NULL AUTO_INCREMENT,
  `HOST_NAME`   varchar(64) NOT NULL,
  `PORT`        varchar(64) NOT NULL,
  `TYPE`        int         NOT NULL,
  `LAUNCH_DATE` date        NOT NULL,
  `MODIFIED`    timestamp   NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `CREATED`     timestamp   NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (`ID`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- Leased worker ids, one row per worker id of a namespace: until which tick its
-- owner may make ids with it. Owner is a random word of one lease, holder says
-- who that is; generation counts how often the worker id was taken, 0 means
-- never. Do not delete rows: deleted ones are missed, because worker_namespace
-- has their number, and their worker ids are given again only after a term.
-- A process that leases a worker id needs no more than
--   GRANT SELECT, INSERT, UPDATE ON worker_lease TO …
CREATE TABLE IF NOT EXISTS `worker_lease` (
  `namespace`  varchar(64)  NOT NULL,
  `worker_id`  bigint       NOT NULL,
  `owner`      varchar(64)           DEFAULT NULL,
  `holder`     varchar(128) NOT NULL,
  `era`        bigint       NOT NULL,
  `generation` bigint       NOT NULL,
  `ceiling`    bigint       NOT NULL,
  PRIMARY KEY (`namespace`, `worker_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The layout of each namespace's ids (keygen.Layout's Fingerprint), which all of its
-- processes have, and how the ticks of its leases are counted. The unit is negative
-- where a layout is noted, so that versions that noted none refuse the namespace; a
-- minus before the layout says that it is being changed, and safe_from_us when the
-- leases of the newest one began. The row '' is about all leases:
-- the identity of the server when it was last looked at, the longest term, and
-- the time (microseconds since 1970) before which leases may lie that a
-- fail-over lost; era above is this time when the worker id was taken. Without
-- the row leases count as lost, and the next ones begin two terms later.
-- The row 'leaf_alloc' notes the server on which guarded tags are reserved, the row
-- 'WORKER_NODE' the one on which guarded worker ids are inserted.
-- A process that leases a worker id needs no more than
--   GRANT SELECT, INSERT, UPDATE ON worker_namespace TO …
CREATE TABLE IF NOT EXISTS `worker_namespace` (
  `namespace`    varchar(64)  NOT NULL,
  `epoch_us`     bigint       NOT NULL,
  `unit_ns`      bigint       NOT NULL,
  `identity`     varchar(128) NOT NULL,
  `longest_us`   bigint       NOT NULL,
  `safe_from_us` bigint       NOT NULL,
  `layout`       varchar(255) NOT NULL DEFAULT '',
  PRIMARY KEY (`namespace`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A table of a version before gains the column layout. MySQL cannot add it on
-- condition, and so it is told to do nothing where it is there.
SET @add_layout = IF(EXISTS (SELECT 1 FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'worker_namespace' AND COLUMN_NAME = 'layout'),
  'DO 0', 'ALTER TABLE worker_namespace ADD COLUMN layout VARCHAR(255) NOT NULL DEFAULT ''''');
PREPARE add_layout FROM @add_layout;
EXECUTE add_layout;
DEALLOCATE PREPARE add_layout;

-- Where nothing was leased yet, nothing was lost.
INSERT IGNORE INTO `worker_namespace` (`namespace`, `epoch_us`, `unit_ns`, `identity`, `longest_us`, `safe_from_us`)
  SELECT '', 0, 0, CONCAT_WS(':', @@server_id, @@port, @@hostname), 0, 0 FROM DUAL
  WHERE NOT EXISTS (SELECT 1 FROM `worker_namespace`) AND NOT EXISTS (SELECT 1 FROM `worker_lease`);
