-- Stop the writers and the vttablets first. The databases stay, because Vitess may have created tables there.
DROP TABLE IF EXISTS `shop_40_80`.`regions`;
RENAME TABLE
  `shop_start_40`.`items` TO `shop_east`.`items_00`,
  `shop_start_40`.`orders` TO `shop_east`.`orders_00`,
  `shop_40_80`.`items` TO `shop_east`.`items_02`,
  `shop_40_80`.`orders` TO `shop_east`.`orders_02`,
  `shop_start_40`.`regions` TO `shop_east`.`regions`;
