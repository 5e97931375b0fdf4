CREATE TABLE `Employee` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(60) NOT NULL,
  `boss_id` int,
  PRIMARY KEY (`id`),
  CONSTRAINT `fk_employee_boss` FOREIGN KEY (`boss_id`) REFERENCES `Employee` (`id`) ON DELETE SET NULL ON UPDATE NO ACTION
) ENGINE=InnoDB;
CREATE TABLE `customer` (
  `id` tinyint unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(60) NOT NULL,
  `adviser_id` int,
  `born` datetime,
  PRIMARY KEY (`id`),
  CONSTRAINT `fk_customer_adviser` FOREIGN KEY (`adviser_id`) REFERENCES `Employee` (`id`) ON DELETE NO ACTION ON UPDATE NO ACTION
) ENGINE=InnoDB;
CREATE TABLE `order` (
  `id` bigint NOT NULL AUTO_INCREMENT,
  `customer_id` tinyint unsigned NOT NULL,
  `total` decimal(10,2) NOT NULL,
  `placed_at` datetime(6) NOT NULL,
  PRIMARY KEY (`id`),
  CONSTRAINT `fk_order_customer` FOREIGN KEY (`customer_id`) REFERENCES `customer` (`id`) ON DELETE CASCADE ON UPDATE NO ACTION
) ENGINE=InnoDB;
CREATE TABLE `product` (
  `id` bigint unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(60) NOT NULL UNIQUE,
  `price` decimal(10,2) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB;
CREATE TABLE `order_item` (
  `order_id` bigint NOT NULL,
  `product_id` bigint unsigned NOT NULL,
  `quantity` int NOT NULL DEFAULT 1,
  PRIMARY KEY (`order_id`, `product_id`),
  CONSTRAINT `fk_item_product` FOREIGN KEY (`product_id`) REFERENCES `product` (`id`) ON DELETE NO ACTION ON UPDATE NO ACTION,
  CONSTRAINT `fk_item_order` FOREIGN KEY (`order_id`) REFERENCES `order` (`id`) ON DELETE CASCADE ON UPDATE NO ACTION
) ENGINE=InnoDB;
CREATE TABLE `order_item_note` (
  `id` bigint NOT NULL,
  `order_id` bigint NOT NULL,
  `product_id` bigint unsigned NOT NULL,
  `note` text,
  PRIMARY KEY (`id`),
  CONSTRAINT `fk_note_item` FOREIGN KEY (`order_id`, `product_id`) REFERENCES `order_item` (`order_id`, `product_id`) ON DELETE CASCADE ON UPDATE NO ACTION
) ENGINE=InnoDB;
CREATE VIEW `expensive` AS SELECT * FROM `product` WHERE `price` > 100;

INSERT INTO `Employee` (`name`, `boss_id`) VALUES ('Ada', NULL), ('Ben', 1), ('Cid', 1);
INSERT INTO `customer` (`id`, `name`, `adviser_id`, `born`) VALUES (200, 'Dee', 2, '1980-02-29 00:00:00'), (201, 'Eve', 3, NULL), (210, 'Fay', NULL, NULL);
DELETE FROM `customer` WHERE `name` = 'Fay';
INSERT INTO `order` (`id`, `customer_id`, `total`, `placed_at`) VALUES (7, 200, 19.95, '2024-01-02 03:04:05'), (8, 201, 0.05, '2024-01-02 03:04:06');
INSERT INTO `product` (`name`, `price`) VALUES ('lamp', 19.95), ('nut', 0.05);
INSERT INTO `order_item` (`order_id`, `product_id`) VALUES (7, 1), (8, 2);
