-- Keep the writers stopped from here until they use Vitess' address.
CREATE DATABASE IF NOT EXISTS `shop_80_c0`;
CREATE DATABASE IF NOT EXISTS `shop_c0_end`;
CREATE TABLE `shop_c0_end`.`regions` LIKE `shop_west`.`regions`;
INSERT INTO `shop_c0_end`.`regions` SELECT * FROM `shop_west`.`regions`;
RENAME TABLE
  `shop_west`.`items_01` TO `shop_80_c0`.`items`,
  `shop_west`.`orders_01` TO `shop_80_c0`.`orders`,
  `shop_west`.`items_03` TO `shop_c0_end`.`items`,
  `shop_west`.`orders_03` TO `shop_c0_end`.`orders`,
  `shop_west`.`regions` TO `shop_80_c0`.`regions`;
