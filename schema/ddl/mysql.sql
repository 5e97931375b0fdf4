-- The tables of shardid on MySQL 5.7 and newer and MariaDB 10.6 and newer.
-- Running this file again changes nothing.

-- Ranges of ids, one row per tag: the table of Leaf's segment mode, which can
-- share it. max_id is the first id not yet handed out; a range takes step ids.
-- A process that takes ranges needs no more than
--   GRANT SELECT, UPDATE (max_id) ON leaf_alloc TO …
-- and seeding a tag needs SELECT, INSERT, UPDATE (max_id).
CREATE TABLE IF NOT EXISTS `leaf_alloc` (
  `biz_tag`     varchar(128) NOT NULL DEFAULT '',
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
