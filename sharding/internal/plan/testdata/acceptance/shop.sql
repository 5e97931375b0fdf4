-- A shop: accounts, catalogue, carts, orders, stock and the pages of its staff.
--
-- Tables and statements are written after those of Spree (spree/spree), Saleor
-- (saleor/saleor), Medusa (medusajs/medusa) and Magento (magento/magento2),
-- simplified. In all four the items of a cart know only their cart, and shipments,
-- adjustments and state changes know only their order; line items and payments have
-- been given the user_id here that a team adds when it shards by user.
-- The form of this file is described in package corpus.

CREATE TABLE users (
  id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(190) NOT NULL UNIQUE, password_hash VARCHAR(100) NOT NULL,
  first_name VARCHAR(100), last_name VARCHAR(100), phone VARCHAR(30), locale VARCHAR(10),
  sign_in_count INT NOT NULL DEFAULT 0, current_sign_in_at DATETIME(3), created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3), deleted_at DATETIME(3)
);
-- sharded: users by id in group shop

CREATE TABLE addresses (
  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, firstname VARCHAR(100), lastname VARCHAR(100),
  address1 VARCHAR(200), city VARCHAR(100), zipcode VARCHAR(20), country_id BIGINT NOT NULL,
  is_default BOOLEAN NOT NULL DEFAULT 0, created_at DATETIME(3) NOT NULL, deleted_at DATETIME(3)
);
-- sharded: addresses by user_id in group shop, also id

CREATE TABLE carts (
  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT, token VARCHAR(40) NOT NULL, currency VARCHAR(3) NOT NULL,
  item_count INT NOT NULL DEFAULT 0, total DECIMAL(12,2) NOT NULL DEFAULT 0, created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL, completed_at DATETIME(3)
);
-- sharded: carts by user_id in group shop, also id

CREATE TABLE cart_items (
  id BIGINT NOT NULL PRIMARY KEY, cart_id BIGINT NOT NULL, variant_id BIGINT NOT NULL, quantity INT NOT NULL,
  unit_price DECIMAL(12,2) NOT NULL, created_at DATETIME(3) NOT NULL, UNIQUE (cart_id, variant_id)
);
-- sharded: cart_items by cart_id in group shop, also id

CREATE TABLE orders (
  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, number VARCHAR(32) NOT NULL UNIQUE, email VARCHAR(190),
  state VARCHAR(20) NOT NULL, payment_state VARCHAR(20), shipment_state VARCHAR(20), currency VARCHAR(3) NOT NULL,
  item_total DECIMAL(12,2) NOT NULL DEFAULT 0, total DECIMAL(12,2) NOT NULL DEFAULT 0, item_count INT NOT NULL DEFAULT 0,
  ship_address_id BIGINT, version INT NOT NULL DEFAULT 0, completed_at DATETIME(3), created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL, deleted_at DATETIME(3)
);
-- sharded: orders by user_id in group shop, also id

CREATE TABLE line_items (
  id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL, user_id BIGINT NOT NULL, variant_id BIGINT NOT NULL,
  product_name VARCHAR(200) NOT NULL, quantity INT NOT NULL, price DECIMAL(12,2) NOT NULL, created_at DATETIME(3) NOT NULL
);
-- sharded: line_items by user_id in group shop, also id, order_id; order_id refers to orders

CREATE TABLE payments (
  id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL, user_id BIGINT NOT NULL, amount DECIMAL(12,2) NOT NULL,
  state VARCHAR(20) NOT NULL, gateway_ref VARCHAR(100), created_at DATETIME(3) NOT NULL, updated_at DATETIME(3)
);
-- sharded: payments by user_id in group shop, also id, order_id; order_id refers to orders

CREATE TABLE shipments (
  id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL, number VARCHAR(32) NOT NULL, tracking VARCHAR(100),
  state VARCHAR(20) NOT NULL, shipping_method_id BIGINT NOT NULL, cost DECIMAL(12,2) NOT NULL, shipped_at DATETIME(3)
);
-- sharded: shipments by order_id in group shop, also id

CREATE TABLE adjustments (
  id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL, label VARCHAR(100) NOT NULL,
  amount DECIMAL(12,2) NOT NULL, eligible BOOLEAN NOT NULL DEFAULT 1
);
-- sharded: adjustments by order_id in group shop, also id

CREATE TABLE state_changes (
  id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL, actor_id BIGINT, previous_state VARCHAR(20),
  next_state VARCHAR(20) NOT NULL, created_at DATETIME(3) NOT NULL
);
-- sharded: state_changes by order_id in group shop, also id

CREATE TABLE wishlist_items (
  user_id BIGINT NOT NULL, variant_id BIGINT NOT NULL, created_at DATETIME(3) NOT NULL, PRIMARY KEY (user_id, variant_id)
);
-- sharded: wishlist_items by user_id in group shop

CREATE TABLE reviews (
  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, product_id BIGINT NOT NULL, rating INT NOT NULL,
  title VARCHAR(200), body TEXT, status VARCHAR(20) NOT NULL, helpful INT NOT NULL DEFAULT 0, created_at DATETIME(3) NOT NULL
);
-- sharded: reviews by user_id in group shop, also id

CREATE TABLE countries (id BIGINT NOT NULL PRIMARY KEY, iso VARCHAR(2) NOT NULL UNIQUE, name VARCHAR(100) NOT NULL);
-- broadcast: countries

CREATE TABLE categories (id BIGINT NOT NULL PRIMARY KEY, parent_id BIGINT, name VARCHAR(100) NOT NULL, position INT NOT NULL);
-- broadcast: categories

CREATE TABLE products (
  id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL, slug VARCHAR(200) NOT NULL UNIQUE, description TEXT,
  status VARCHAR(20) NOT NULL, available_on DATETIME(3), deleted_at DATETIME(3)
);
-- broadcast: products

CREATE TABLE product_categories (product_id BIGINT NOT NULL, category_id BIGINT NOT NULL, PRIMARY KEY (product_id, category_id));
-- broadcast: product_categories

CREATE TABLE variants (
  id BIGINT NOT NULL PRIMARY KEY, product_id BIGINT NOT NULL, sku VARCHAR(60) NOT NULL UNIQUE,
  price DECIMAL(12,2) NOT NULL, currency VARCHAR(3) NOT NULL, position INT NOT NULL DEFAULT 0
);
-- broadcast: variants

CREATE TABLE shipping_methods (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL, price DECIMAL(12,2) NOT NULL);
-- broadcast: shipping_methods

CREATE TABLE stock_items (
  id BIGINT NOT NULL PRIMARY KEY, variant_id BIGINT NOT NULL, warehouse_id BIGINT NOT NULL, quantity INT NOT NULL,
  reserved INT NOT NULL DEFAULT 0, updated_at DATETIME(3), UNIQUE (variant_id, warehouse_id)
);
-- home: stock_items

CREATE TABLE promotions (
  id BIGINT NOT NULL PRIMARY KEY, code VARCHAR(40) NOT NULL UNIQUE, usage_limit INT, usage_count INT NOT NULL DEFAULT 0,
  starts_at DATETIME(3), expires_at DATETIME(3)
);
-- home: promotions

CREATE TABLE admin_users (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(190) NOT NULL UNIQUE, role VARCHAR(20), last_login_at DATETIME(3));
-- home: admin_users

CREATE TABLE jobs (
  id BIGINT NOT NULL PRIMARY KEY, queue VARCHAR(40) NOT NULL, payload TEXT, run_at DATETIME(3) NOT NULL,
  attempts INT NOT NULL DEFAULT 0, locked_at DATETIME(3), locked_by VARCHAR(60)
);
-- home: jobs

CREATE TABLE settings (name VARCHAR(60) NOT NULL PRIMARY KEY, value TEXT);
-- home: settings

-- name: log in by e-mail
-- from: spree_auth_devise, find for database authentication
-- args: 'ann@example.com'
-- with: scatter
-- without: scatter
SELECT id, password_hash FROM users WHERE email = ? AND deleted_at IS NULL LIMIT 1;

-- name: load the signed-in user
-- from: any of them, current user of a request; GORM First
-- args: 5, 1
-- with: one
-- without: one
SELECT * FROM `users` WHERE `users`.`id` = ? AND `users`.`deleted_at` IS NULL ORDER BY `users`.`id` LIMIT ?;

-- name: count a sign-in
-- from: spree_auth_devise, trackable
-- args: '2024-05-01 10:00:00', 5
-- with: one
-- without: one
UPDATE users SET sign_in_count = sign_in_count + 1, current_sign_in_at = ? WHERE id = ?;

-- name: register a user
-- from: saleor, saleor/account/models.py; GORM Create
-- args: 5, 'ann@example.com', 'hash', 'Ann', 'Lee', 'en', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `users` (`id`,`email`,`password_hash`,`first_name`,`last_name`,`locale`,`created_at`) VALUES (?,?,?,?,?,?,?);

-- name: is an e-mail taken
-- from: spree, uniqueness validation of the user's e-mail; GORM Count
-- args: 'ann@example.com'
-- with: scatter
-- without: scatter
SELECT count(*) FROM `users` WHERE email = ? AND `users`.`deleted_at` IS NULL;

-- name: does an e-mail exist
-- from: hand-written Go, the same question as EXISTS
-- args: 'ann@example.com'
-- with: scatter
-- without: scatter
SELECT EXISTS (SELECT 1 FROM users WHERE email = ?);

-- name: change the name of a user
-- from: saleor, account update; GORM Updates of a struct
-- args: 'Ann', 'Lee-Smith', '2024-05-01 10:00:00', 5
-- with: one
-- without: one
UPDATE `users` SET `first_name`=?,`last_name`=?,`updated_at`=? WHERE `users`.`deleted_at` IS NULL AND `id` = ?;

-- name: change the e-mail of a user
-- from: saleor, confirm e-mail change; email is unique and does not lead to the shard
-- args: 'ann.lee@example.com', 5
-- with: scatter
-- without: scatter
UPDATE users SET email = ? WHERE id = ?;

-- name: soft delete a user
-- from: GORM Delete with DeletedAt
-- args: '2024-05-01 10:00:00', 5
-- with: one
-- without: one
UPDATE `users` SET `deleted_at`=? WHERE `users`.`id` = ? AND `users`.`deleted_at` IS NULL;

-- name: addresses of a user with their countries
-- from: spree, core/app/finders/spree/addresses/find.rb
-- args: 5
-- with: one
-- without: one
SELECT a.*, c.iso, c.name AS country FROM addresses a JOIN countries c ON c.id = a.country_id
WHERE a.user_id = ? AND a.deleted_at IS NULL ORDER BY a.is_default DESC, a.id;

-- name: the ship address of an order
-- from: spree, core/app/models/spree/order.rb, belongs_to ship_address
-- args: 4101
-- with: one
-- without: scatter
SELECT * FROM addresses WHERE addresses.id = ? LIMIT 1;

-- name: an address of its owner
-- from: saleor, address update checks the owner
-- args: 4101, 5
-- with: one
-- without: one
SELECT * FROM addresses WHERE id = ? AND user_id = ?;

-- name: add an address
-- from: spree, core/app/models/spree/address.rb; GORM Create
-- args: 4101, 5, 'Ann', 'Lee', '1 Main St', 'Springfield', '12345', 1, 1, '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `addresses` (`id`,`user_id`,`firstname`,`lastname`,`address1`,`city`,`zipcode`,`country_id`,`is_default`,`created_at`) VALUES (?,?,?,?,?,?,?,?,?,?);

-- name: unset other default addresses
-- from: medusa, customer module, one default address
-- args: 5, 4101
-- with: one
-- without: one
UPDATE addresses SET is_default = 0 WHERE user_id = ? AND id <> ?;

-- name: soft delete an address by its id alone
-- from: spree, address destroy
-- args: '2024-05-01 10:00:00', 4101
-- with: one
-- without: scatter
UPDATE addresses SET deleted_at = ? WHERE id = ?;

-- name: add to the wish list once, MySQL
-- from: magento, wishlist items; insertOnDuplicate
-- args: 5, 11, '2024-05-01 10:00:00'
-- dialect: mysql
-- with: one
-- without: one
INSERT INTO wishlist_items (user_id, variant_id, created_at) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE created_at = created_at;

-- name: add to the wish list once
-- from: spree, wished items
-- args: 5, 11, '2024-05-01 10:00:00'
-- dialect: sqlite
-- with: one
-- without: one
INSERT INTO wishlist_items (user_id, variant_id, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: the wish list with names of products
-- from: spree, wishlist page
-- args: 5
-- with: one
-- without: one
SELECT w.created_at, v.sku, v.price, p.name FROM wishlist_items w JOIN variants v ON v.id = w.variant_id
JOIN products p ON p.id = v.product_id WHERE w.user_id = ? ORDER BY w.created_at DESC;

-- name: remove from the wish list
-- from: spree, wished items
-- args: 5, 11
-- with: one
-- without: one
DELETE FROM wishlist_items WHERE user_id = ? AND variant_id = ?;

-- name: a product by its slug
-- from: spree, core/app/finders/spree/products/find.rb
-- args: 'red-shirt'
-- with: broadcast
-- without: broadcast
SELECT * FROM products WHERE slug = ? AND deleted_at IS NULL LIMIT 1;

-- name: products of a category, a page
-- from: spree, core/app/finders/spree/products/find.rb
-- args: 3, '2024-05-01 10:00:00', 24, 0
-- with: broadcast
-- without: broadcast
SELECT p.id, p.name, p.slug, MIN(v.price) AS price FROM products p
JOIN product_categories pc ON pc.product_id = p.id JOIN variants v ON v.product_id = p.id
WHERE pc.category_id = ? AND p.status = 'active' AND p.available_on <= ?
GROUP BY p.id, p.name, p.slug ORDER BY p.name LIMIT ? OFFSET ?;

-- name: search products by name
-- from: magento, quick search without a search engine
-- args: '%shirt%', '%shirt%'
-- with: broadcast
-- without: broadcast
SELECT id, name, slug FROM products WHERE (name LIKE ? OR description LIKE ?) AND deleted_at IS NULL ORDER BY name LIMIT 20;

-- name: variants of a cart by their ids
-- from: medusa, cart workflows, variants by ids; GORM Find
-- args: 11, 12, 13
-- with: broadcast
-- without: broadcast
SELECT * FROM `variants` WHERE `variants`.`id` IN (?,?,?);

-- name: the tree below a category
-- from: spree, taxons; saleor, categories
-- args: 3
-- with: broadcast
-- without: broadcast
WITH RECURSIVE tree (id, name) AS (
  SELECT id, name FROM categories WHERE id = ?
  UNION ALL SELECT c.id, c.name FROM categories c JOIN tree t ON c.parent_id = t.id
) SELECT id, name FROM tree;

-- name: change a price
-- from: spree, admin of variants
-- args: 19.9, 11
-- with: broadcast
-- without: broadcast
UPDATE variants SET price = ? WHERE id = ?;

-- name: add a product
-- from: saleor, product create; GORM Create
-- args: 31, 'Red shirt', 'red-shirt', 'A shirt', 'draft'
-- with: broadcast
-- without: broadcast
INSERT INTO `products` (`id`,`name`,`slug`,`description`,`status`) VALUES (?,?,?,?,?);

-- name: shipping methods by price
-- from: medusa, shipping options
-- with: broadcast
-- without: broadcast
SELECT id, name, price FROM shipping_methods ORDER BY price, id;

-- name: the open cart of a user
-- from: spree, core/app/finders/spree/orders/find_current.rb
-- args: 5, 'EUR'
-- with: one
-- without: one
SELECT * FROM carts WHERE user_id = ? AND currency = ? AND completed_at IS NULL ORDER BY created_at DESC LIMIT 1;

-- name: a cart by the token of its cookie
-- from: spree, core/app/finders/spree/orders/find_current.rb
-- args: 'kq83'
-- with: scatter
-- without: scatter
SELECT * FROM carts WHERE token = ? AND completed_at IS NULL LIMIT 1;

-- name: a cart by its id
-- from: medusa, packages/modules/cart/src/models/cart.ts, retrieve by id
-- args: 5125
-- with: one
-- without: scatter
SELECT * FROM carts WHERE id = ?;

-- name: open a cart
-- from: medusa, packages/modules/cart/src/models/cart.ts; GORM Create
-- args: 5125, 5, 'kq83', 'EUR', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `carts` (`id`,`user_id`,`token`,`currency`,`created_at`,`updated_at`) VALUES (?,?,?,?,?,?);

-- name: open a cart for a guest
-- from: spree, guest checkout, the user is NULL
-- args: 9001, NULL, 'zx11', 'EUR', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: refused
-- without: refused
-- because: user_id is the sharding key and NULL has no shard; give guests a user of their own
INSERT INTO carts (id, user_id, token, currency, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: give the guest's cart to the user who logs in
-- from: spree, core/app/models/spree/order.rb, associate_user!
-- args: 5, '2024-05-01 10:00:00', 'zx11'
-- with: refused
-- without: refused
-- because: the row would belong to another shard; read it, insert it for the user and delete the old one
UPDATE carts SET user_id = ?, updated_at = ? WHERE token = ?;

-- name: the lines of a cart with their products
-- from: medusa, packages/modules/cart/src/models/line-item.ts
-- args: 5125
-- with: one
-- without: one
SELECT ci.id, ci.quantity, ci.unit_price, v.sku, p.name FROM cart_items ci
JOIN variants v ON v.id = ci.variant_id JOIN products p ON p.id = v.product_id WHERE ci.cart_id = ? ORDER BY ci.id;

-- name: add to the cart or raise the quantity, MySQL
-- from: magento, app/code/Magento/Quote/etc/db_schema.xml, quote_item
-- args: 6149, 5125, 11, 1, 19.9, '2024-05-01 10:00:00'
-- dialect: mysql
-- with: one
-- without: scatter
INSERT INTO cart_items (id, cart_id, variant_id, quantity, unit_price, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity);

-- name: add to the cart or raise the quantity
-- from: saleor, checkout lines add
-- args: 6149, 5125, 11, 1, 19.9, '2024-05-01 10:00:00'
-- dialect: sqlite
-- with: one
-- without: one
INSERT INTO cart_items (id, cart_id, variant_id, quantity, unit_price, created_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (cart_id, variant_id) DO UPDATE SET quantity = quantity + excluded.quantity;

-- name: change the quantity of a variant in the cart
-- from: saleor, checkout lines update
-- args: 2, 5125, 11
-- with: one
-- without: one
UPDATE cart_items SET quantity = ? WHERE cart_id = ? AND variant_id = ?;

-- name: change the quantity of a line by its id alone
-- from: medusa, update line item
-- args: 2, 6149
-- with: one
-- without: scatter
UPDATE cart_items SET quantity = ? WHERE id = ?;

-- name: remove a line of the cart
-- from: medusa, delete line item
-- args: 6149, 5125
-- with: one
-- without: one
DELETE FROM cart_items WHERE id = ? AND cart_id = ?;

-- name: the sum of a cart
-- from: magento, quote totals
-- args: 5125
-- with: one
-- without: one
SELECT COALESCE(SUM(quantity * unit_price), 0) AS total, COUNT(*) AS items FROM cart_items WHERE cart_id = ?;

-- name: write the sum into the cart
-- from: magento, quote totals collected in one statement
-- args: '2024-05-01 10:00:00', 5125, 5
-- with: one
-- without: refused
-- because: items are sharded by cart_id, their cart by user_id; compute the sum first and set it in a second statement
UPDATE carts SET total = (SELECT COALESCE(SUM(ci.quantity * ci.unit_price), 0) FROM cart_items ci WHERE ci.cart_id = carts.id), updated_at = ?
WHERE id = ? AND user_id = ?;

-- name: keep the cart as a wish list
-- from: magento, move quote items to the wish list
-- args: 5, '2024-05-01 10:00:00', 5125
-- with: one
-- without: refused
-- because: rows are read by cart_id in one shard and written by user_id in another; read them first, then insert them
INSERT INTO wishlist_items (user_id, variant_id, created_at) SELECT ?, ci.variant_id, ? FROM cart_items ci WHERE ci.cart_id = ?;

-- name: abandoned carts to remind of
-- from: magento, app/code/Magento/Reports, abandoned carts
-- args: '2024-04-30 10:00:00'
-- with: scatter
-- without: scatter
SELECT id, user_id, total FROM carts WHERE completed_at IS NULL AND item_count > 0 AND updated_at < ? ORDER BY updated_at LIMIT 100;

-- name: delete old carts
-- from: saleor, delete expired checkouts
-- args: '2024-02-01 00:00:00'
-- with: refused
-- without: refused
-- because: a write without the key goes to every shard; delete by user_id, or allow it for this statement with sharding.AllShards
DELETE FROM carts WHERE completed_at IS NULL AND updated_at < ?;

-- name: empty the cart after checkout
-- from: magento, quote after order
-- args: 5125
-- with: one
-- without: one
DELETE FROM cart_items WHERE cart_id = ?;

-- name: place an order
-- from: spree, core/app/models/spree/order.rb; GORM Create
-- args: 1029, 5, 'R100200300', 'ann@example.com', 'complete', 'balance_due', 'EUR', 39.8, 44.7, 2, 4101, '2024-05-01 10:00:00', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `orders` (`id`,`user_id`,`number`,`email`,`state`,`payment_state`,`currency`,`item_total`,`total`,`item_count`,`ship_address_id`,`completed_at`,`created_at`,`updated_at`) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?);

-- name: insert the lines of an order
-- from: saleor, saleor/order/models.py, bulk_create of lines; GORM CreateInBatches
-- args: 2053, 1029, 5, 11, 'Red shirt', 1, 19.9, '2024-05-01 10:00:00', 3077, 1029, 5, 12, 'Blue shirt', 1, 19.9, '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `line_items` (`id`,`order_id`,`user_id`,`variant_id`,`product_name`,`quantity`,`price`,`created_at`) VALUES (?,?,?,?,?,?,?,?),(?,?,?,?,?,?,?,?);

-- name: insert a payment
-- from: spree, core/app/models/spree/payment.rb
-- args: 7173, 1029, 5, 44.7, 'checkout', 'pi_77', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO payments (id, order_id, user_id, amount, state, gateway_ref, created_at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: insert a shipment
-- from: spree, core/app/models/spree/shipment.rb
-- args: 8197, 1029, 'H1', 'pending', 1, 4.9
-- with: one
-- without: one
INSERT INTO shipments (id, order_id, number, state, shipping_method_id, cost) VALUES (?, ?, ?, ?, ?, ?);

-- name: insert taxes and discounts
-- from: spree, core/app/models/spree/adjustment.rb
-- args: 9221, 1029, 'Tax', 7.1, 10245, 1029, 'Coupon', -2
-- with: one
-- without: one
INSERT INTO adjustments (id, order_id, label, amount) VALUES (?, ?, ?, ?), (?, ?, ?, ?);

-- name: log a change of state
-- from: spree, core/app/models/spree/order.rb, state_changes
-- args: 11269, 1029, 5, 'cart', 'complete', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO state_changes (id, order_id, actor_id, previous_state, next_state, created_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: lock the stock of a basket
-- from: saleor, saleor/warehouse/management.py, select_for_update
-- args: 11, 12
-- dialect: mysql
-- with: home
-- without: home
SELECT id, variant_id, quantity, reserved FROM stock_items WHERE variant_id IN (?, ?) ORDER BY id FOR UPDATE;

-- name: reserve stock
-- from: spree, core/app/models/spree/stock_item.rb
-- args: 1, '2024-05-01 10:00:00', 11, 1, 1
-- with: home
-- without: home
UPDATE stock_items SET reserved = reserved + ?, updated_at = ? WHERE variant_id = ? AND warehouse_id = ? AND quantity - reserved >= ?;

-- name: find a coupon
-- from: spree, promotion handler coupon
-- args: 'SPRING', '2024-05-01 10:00:00', '2024-05-01 10:00:00'
-- with: home
-- without: home
SELECT * FROM promotions WHERE code = ? AND (starts_at IS NULL OR starts_at <= ?) AND (expires_at IS NULL OR expires_at > ?) LIMIT 1;

-- name: use a coupon
-- from: saleor, voucher usage
-- args: 1
-- with: home
-- without: home
UPDATE promotions SET usage_count = usage_count + 1 WHERE id = ? AND (usage_limit IS NULL OR usage_count < usage_limit);

-- name: move an order to its next state
-- from: spree, core/app/models/spree/order.rb, state machine; GORM Updates of a loaded struct, with the key that gormplugin adds
-- args: 'canceled', '2024-05-01 10:00:00', 1029, 5
-- with: one
-- without: one
UPDATE `orders` SET `state`=?,`updated_at`=? WHERE `orders`.`deleted_at` IS NULL AND `id` = ? AND `user_id` = ?;

-- name: lock an order by its id
-- from: saleor, order_qs_select_for_update
-- args: 1029
-- dialect: mysql
-- with: one
-- without: scatter
SELECT * FROM orders WHERE id = ? FOR UPDATE;

-- name: change an order if nobody else has
-- from: hand-written Go, a version column
-- args: 'complete', '2024-05-01 10:00:00', 1029, 3
-- with: one
-- without: scatter
UPDATE orders SET state = ?, version = version + 1, updated_at = ? WHERE id = ? AND version = ?;

-- name: recompute the totals of an order
-- from: spree, core/app/models/spree/order.rb, update_totals
-- args: '2024-05-01 10:00:00', 1029, 5
-- with: one
-- without: one
UPDATE orders SET item_total = (SELECT COALESCE(SUM(price * quantity), 0) FROM line_items WHERE line_items.order_id = orders.id), updated_at = ?
WHERE id = ? AND user_id = ?;

-- name: a payment by the gateway's reference
-- from: saleor, webhooks of payment gateways
-- args: 'pi_77'
-- with: scatter
-- without: scatter
SELECT id, user_id, order_id, state FROM payments WHERE gateway_ref = ? LIMIT 1;

-- name: capture a payment
-- from: spree, core/app/models/spree/payment.rb; GORM Updates of a loaded struct
-- args: 'completed', '2024-05-01 10:00:00', 7173, 5
-- with: one
-- without: one
UPDATE `payments` SET `state`=?,`updated_at`=? WHERE `id` = ? AND `user_id` = ?;

-- name: orders of a user, a page
-- from: spree, core/app/finders/spree/orders/find_complete.rb; GORM Find
-- args: 5, 'cart', 20, 40
-- with: one
-- without: one
SELECT * FROM `orders` WHERE user_id = ? AND state <> ? AND `orders`.`deleted_at` IS NULL ORDER BY created_at DESC LIMIT ? OFFSET ?;

-- name: count the orders of a user
-- from: the same page; GORM Count
-- args: 5, 'cart'
-- with: one
-- without: one
SELECT count(*) FROM `orders` WHERE user_id = ? AND state <> ? AND `orders`.`deleted_at` IS NULL;

-- name: an order by its number
-- from: spree, core/app/models/spree/order.rb, by_number
-- args: 'R100200300'
-- with: scatter
-- without: scatter
SELECT * FROM orders WHERE number = ? LIMIT 1;

-- name: an order by its id
-- from: medusa, retrieve order; GORM First
-- args: 1029, 1
-- with: one
-- without: scatter
SELECT * FROM `orders` WHERE `orders`.`id` = ? AND `orders`.`deleted_at` IS NULL ORDER BY `orders`.`id` LIMIT ?;

-- name: an order with its lines, by id
-- from: magento, order view of the staff
-- args: 1029
-- with: one
-- without: scatter
SELECT o.number, o.state, o.total, li.product_name, li.quantity, li.price FROM orders o JOIN line_items li ON li.order_id = o.id WHERE o.id = ? ORDER BY li.id;

-- name: the last order with its lines
-- from: spree, account page
-- args: 5, 5
-- with: one
-- without: one
SELECT o.number, o.completed_at, li.product_name, li.quantity FROM orders o JOIN line_items li ON li.order_id = o.id
WHERE o.user_id = ? AND li.user_id = ? ORDER BY o.completed_at DESC, li.id LIMIT 50;

-- name: orders with their lines of one user
-- from: hand-written Go, sqlx Select of an order history
-- args: 5, '2024-01-01 00:00:00'
-- with: one
-- without: one
SELECT o.id, o.number, li.product_name, li.quantity FROM orders o LEFT JOIN line_items li ON li.order_id = o.id
WHERE o.user_id = ? AND o.created_at >= ? ORDER BY o.id DESC, li.id;

-- name: preload the lines of some orders
-- from: GORM Preload("LineItems")
-- args: 1029, 12293
-- with: one
-- without: scatter
SELECT * FROM `line_items` WHERE `line_items`.`order_id` IN (?,?);

-- name: the payments of an order
-- from: spree, core/app/models/spree/order.rb, has_many payments
-- args: 1029
-- with: one
-- without: scatter
SELECT * FROM payments WHERE order_id = ? ORDER BY created_at;

-- name: the shipments of an order with the method's name
-- from: spree, core/app/models/spree/shipment.rb
-- args: 1029
-- with: one
-- without: one
SELECT s.number, s.state, s.tracking, m.name FROM shipments s JOIN shipping_methods m ON m.id = s.shipping_method_id WHERE s.order_id = ?;

-- name: adjustments of an order by label
-- from: spree, core/app/models/spree/order.rb, price_adjustment_totals
-- args: 1029
-- with: one
-- without: one
SELECT label, SUM(amount) AS amount FROM adjustments WHERE order_id = ? AND eligible = 1 GROUP BY label HAVING SUM(amount) <> 0 ORDER BY label;

-- name: drop the taxes of an order
-- from: spree, core/app/models/spree/order.rb, create_tax_charge!
-- args: 1029
-- with: one
-- without: one
DELETE FROM adjustments WHERE order_id = ? AND label = 'Tax';

-- name: has the user bought this product
-- from: spree_reviews, verified buyer
-- args: 5, 31
-- with: one
-- without: one
SELECT 1 FROM orders o JOIN line_items li ON li.order_id = o.id JOIN variants v ON v.id = li.variant_id
WHERE o.user_id = ? AND o.completed_at IS NOT NULL AND v.product_id = ? LIMIT 1;

-- name: what a user buys most
-- from: medusa, buy again
-- args: 5
-- with: one
-- without: one
SELECT variant_id, SUM(quantity) AS bought FROM line_items WHERE user_id = ? GROUP BY variant_id ORDER BY bought DESC, variant_id LIMIT 10;

-- name: the worth of a customer
-- from: spree, user methods, lifetime value
-- args: 5
-- with: one
-- without: one
SELECT COUNT(*) AS orders, COALESCE(SUM(total), 0) AS spent, MAX(completed_at) AS last_order FROM orders WHERE user_id = ? AND completed_at IS NOT NULL;

-- name: the activity of a customer
-- from: magento, customer view of the staff
-- args: 5, 5
-- with: one
-- without: one
SELECT 'order' AS kind, id, created_at FROM orders WHERE user_id = ? UNION ALL
SELECT 'review', id, created_at FROM reviews WHERE user_id = ? ORDER BY created_at DESC LIMIT 20;

-- name: number the orders of a customer
-- from: hand-written Go, "your third order"
-- args: 5
-- with: one
-- without: one
SELECT id, total, ROW_NUMBER() OVER (ORDER BY created_at) AS nth FROM orders WHERE user_id = ? AND completed_at IS NOT NULL;

-- name: reviews of a product, newest first
-- from: spree_reviews, product page
-- args: 31, 10, 0
-- with: scatter
-- without: scatter
SELECT id, user_id, rating, title, body, created_at FROM reviews WHERE product_id = ? AND status = 'approved' ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?;

-- name: the rating of a product
-- from: magento, review summary
-- args: 31
-- with: scatter
-- without: scatter
SELECT COUNT(*) AS reviews, AVG(rating) AS rating FROM reviews WHERE product_id = ? AND status = 'approved';

-- name: write a review
-- from: spree_reviews; GORM Create
-- args: 13317, 5, 31, 5, 'Good', 'Fits', 'pending', '2024-05-01 10:00:00'
-- with: one
-- without: one
INSERT INTO `reviews` (`id`,`user_id`,`product_id`,`rating`,`title`,`body`,`status`,`created_at`) VALUES (?,?,?,?,?,?,?,?);

-- name: approve a review
-- from: spree_reviews, admin
-- args: 13317
-- with: one
-- without: scatter
UPDATE reviews SET status = 'approved' WHERE id = ?;

-- name: find a review helpful
-- from: magento, review votes
-- args: 13317
-- with: one
-- without: scatter
UPDATE reviews SET helpful = helpful + 1 WHERE id = ?;

-- name: orders for the staff, a page
-- from: spree, admin orders index
-- args: '2024-04-01 00:00:00', '2024-05-01 00:00:00', 25, 50
-- with: scatter
-- without: scatter
SELECT id, number, email, state, payment_state, total, completed_at FROM orders
WHERE completed_at >= ? AND completed_at < ? ORDER BY completed_at DESC, id DESC LIMIT ? OFFSET ?;

-- name: count the orders of that page
-- from: spree, admin orders index; GORM Count
-- args: '2024-04-01 00:00:00', '2024-05-01 00:00:00'
-- with: scatter
-- without: scatter
SELECT count(*) FROM `orders` WHERE completed_at >= ? AND completed_at < ? AND `orders`.`deleted_at` IS NULL;

-- name: search customers
-- from: magento, customer grid
-- args: 'ann%', 'ann%', 'ann%'
-- with: scatter
-- without: scatter
SELECT id, email, first_name, last_name FROM users WHERE (email LIKE ? OR first_name LIKE ? OR last_name LIKE ?) AND deleted_at IS NULL
ORDER BY last_name, first_name, id LIMIT 25;

-- name: orders by state
-- from: spree, dashboard
-- with: scatter
-- without: scatter
SELECT state, COUNT(*) AS orders FROM orders GROUP BY state ORDER BY state;

-- name: sales by day
-- from: spree, sales total report
-- args: '2024-04-01 00:00:00', '2024-05-01 00:00:00'
-- with: scatter
-- without: scatter
SELECT DATE(completed_at) AS day, COUNT(*) AS orders, SUM(total) AS revenue FROM orders
WHERE completed_at >= ? AND completed_at < ? GROUP BY DATE(completed_at) ORDER BY DATE(completed_at);

-- name: average order by month
-- from: magento, app/code/Magento/Reports/Model/ResourceModel/Order/Collection.php
-- args: '2024-01-01 00:00:00'
-- dialect: mysql
-- with: scatter
-- without: scatter
SELECT DATE_FORMAT(created_at, '%Y-%m') AS month, COUNT(*) AS orders, AVG(total) AS average FROM orders
WHERE created_at >= ? AND state = 'complete' GROUP BY DATE_FORMAT(created_at, '%Y-%m') ORDER BY month;

-- name: best sellers
-- from: magento, bestsellers report
-- args: '2024-04-01 00:00:00', 100
-- with: scatter
-- without: scatter
SELECT p.id, p.name, SUM(li.quantity) AS sold, SUM(li.quantity * li.price) AS revenue FROM line_items li
JOIN variants v ON v.id = li.variant_id JOIN products p ON p.id = v.product_id WHERE li.created_at >= ?
GROUP BY p.id, p.name HAVING SUM(li.quantity) >= ? ORDER BY sold DESC, p.id LIMIT 20;

-- name: best customers
-- from: magento, app/code/Magento/Reports, customers by orders total
-- args: '2024-01-01 00:00:00'
-- with: scatter
-- without: scatter
SELECT u.id, u.email, COUNT(*) AS orders, SUM(o.total) AS spent FROM users u JOIN orders o ON o.user_id = u.id
WHERE o.completed_at >= ? GROUP BY u.id, u.email ORDER BY spent DESC, u.id LIMIT 50;

-- name: users who never ordered
-- from: magento, newsletter segments
-- args: '2024-04-01 00:00:00', 500
-- with: scatter
-- without: scatter
SELECT u.id, u.email FROM users u WHERE u.created_at < ? AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id) ORDER BY u.id LIMIT ?;

-- name: how many bought in a month
-- from: medusa, analytics
-- args: '2024-04-01 00:00:00', '2024-04-30 23:59:59'
-- with: scatter
-- without: scatter
SELECT COUNT(DISTINCT user_id) FROM orders WHERE completed_at BETWEEN ? AND ?;

-- name: currencies in use
-- from: spree, stores and their currencies
-- with: scatter
-- without: scatter
SELECT DISTINCT currency FROM orders ORDER BY currency;

-- name: orders to cancel for want of payment
-- from: saleor, expire orders task
-- args: '2024-04-30 10:00:00', 200
-- with: scatter
-- without: scatter
SELECT id, user_id, number FROM orders WHERE payment_state = 'balance_due' AND created_at < ? ORDER BY created_at, id LIMIT ?;

-- name: export orders in steps of a thousand
-- from: any of them, an export to the warehouse
-- args: 1029, 1000
-- with: scatter
-- without: scatter
SELECT * FROM orders WHERE id > ? ORDER BY id LIMIT ?;

-- name: revenue with a running total
-- from: hand-written Go, a chart of the staff
-- args: '2024-04-01 00:00:00'
-- with: scatter
-- without: scatter
WITH days AS (SELECT DATE(completed_at) AS day, SUM(total) AS revenue FROM orders WHERE completed_at >= ? GROUP BY DATE(completed_at))
SELECT day, revenue, SUM(revenue) OVER (ORDER BY day) AS running FROM days ORDER BY day;

-- name: mark a shipment as shipped
-- from: spree, core/app/models/spree/shipment.rb, ship
-- args: 'shipped', 'DHL1', '2024-05-02 10:00:00', 8197
-- with: one
-- without: scatter
UPDATE shipments SET state = ?, tracking = ?, shipped_at = ? WHERE id = ?;

-- name: cancel the shipments of an order
-- from: spree, core/app/models/spree/order.rb, after_cancel
-- args: 1029
-- with: one
-- without: one
UPDATE shipments SET state = 'canceled' WHERE order_id = ? AND state <> 'shipped';

-- name: low stock
-- from: magento, low stock report
-- args: 5
-- with: home
-- without: home
SELECT v.sku, p.name, s.quantity - s.reserved AS free FROM stock_items s JOIN variants v ON v.id = s.variant_id
JOIN products p ON p.id = v.product_id WHERE s.quantity - s.reserved < ? ORDER BY free, v.sku;

-- name: take the next job
-- from: saleor's and spree's background workers
-- args: 'mail', '2024-05-01 10:00:00'
-- dialect: mysql
-- with: home
-- without: home
SELECT id, payload, attempts FROM jobs WHERE queue = ? AND run_at <= ? AND locked_at IS NULL ORDER BY run_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: put a job into the queue
-- from: saleor's and spree's background workers
-- args: 77, 'mail', '{}', '2024-05-01 10:00:00'
-- with: home
-- without: home
INSERT INTO jobs (id, queue, payload, run_at) VALUES (?, ?, ?, ?);

-- name: a member of the staff logs in
-- from: spree, admin users
-- args: 'staff@example.com'
-- with: home
-- without: home
SELECT * FROM admin_users WHERE email = ?;

-- name: save a setting
-- from: magento, core_config_data
-- args: 'tax', 'on'
-- with: home
-- without: home
REPLACE INTO settings (name, value) VALUES (?, ?);
