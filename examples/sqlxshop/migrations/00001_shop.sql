-- +goose Up
CREATE TABLE users (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL, email VARCHAR(200) NOT NULL);
CREATE UNIQUE INDEX users_email ON users (email);
CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL);
CREATE INDEX orders_user ON orders (user_id);
CREATE TABLE items (
  id BIGINT NOT NULL PRIMARY KEY,
  order_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  quantity BIGINT NOT NULL
);
CREATE INDEX items_order ON items (order_id);
CREATE TABLE products (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL);

-- +goose Down
DROP TABLE products;
DROP TABLE items;
DROP TABLE orders;
DROP TABLE users;
