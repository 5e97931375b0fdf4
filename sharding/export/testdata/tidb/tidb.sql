CREATE TABLE `orders` (
  `id` bigint(20) NOT NULL,
  `user_id` bigint(20) NOT NULL,
  `note` varchar(99) DEFAULT 'PRIMARY KEY (`id`)' COMMENT 'AUTO_INCREMENT, once',
  PRIMARY KEY (`id`) NONCLUSTERED,
  KEY `u` (`user_id`)
) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin SHARD_ROW_ID_BITS=4 PRE_SPLIT_REGIONS=4;
