-- Stop the writers and the vttablets first. The databases stay, because Vitess may have created tables there.
DROP TABLE IF EXISTS `shop_c0_end`.`regions`;
RENAME TABLE
  `shop_80_c0`.`items` TO `shop_west`.`items_01`,
  `shop_80_c0`.`orders` TO `shop_west`.`orders_01`,
  `shop_c0_end`.`items` TO `shop_west`.`items_03`,
  `shop_c0_end`.`orders` TO `shop_west`.`orders_03`,
  `shop_80_c0`.`regions` TO `shop_west`.`regions`;
