-- Keep the writers stopped from here until they use Vitess' address.
CREATE DATABASE IF NOT EXISTS `shop_start_40`;
CREATE DATABASE IF NOT EXISTS `shop_40_80`;
CREATE TABLE `shop_40_80`.`regions` LIKE `shop_east`.`regions`;
INSERT INTO `shop_40_80`.`regions` SELECT * FROM `shop_east`.`regions`;
RENAME TABLE
  `shop_east`.`items_00` TO `shop_start_40`.`items`,
  `shop_east`.`orders_00` TO `shop_start_40`.`orders`,
  `shop_east`.`items_02` TO `shop_40_80`.`items`,
  `shop_east`.`orders_02` TO `shop_40_80`.`orders`,
  `shop_east`.`regions` TO `shop_start_40`.`regions`;
