CREATE TABLE [Employee] (
  [id] INTEGER PRIMARY KEY AUTOINCREMENT,
  [name] VARCHAR(60) NOT NULL,
  [boss_id] INTEGER REFERENCES [Employee] ON DELETE SET NULL
);
CREATE TABLE customer (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- not reused
  name VARCHAR(60) NOT NULL,
  adviser_id INTEGER,
  born DATETIME,
  CONSTRAINT fk_customer_adviser FOREIGN KEY (adviser_id) REFERENCES "Employee" (id) ON DELETE NO ACTION ON UPDATE NO ACTION
);
CREATE TABLE "order" (
  "id" INTEGER PRIMARY KEY, /* no AUTOINCREMENT */
  "customer_id" INTEGER NOT NULL REFERENCES customer (id) ON DELETE CASCADE ON UPDATE RESTRICT,
  "total" DECIMAL(10,2) NOT NULL,
  "placed_at" DATETIME NOT NULL
);
CREATE TABLE product (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name VARCHAR(60) NOT NULL UNIQUE,
  price DECIMAL(10,2) NOT NULL
);
CREATE TABLE order_item (
  order_id INTEGER NOT NULL,
  product_id INTEGER NOT NULL,
  quantity INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (order_id, product_id),
  FOREIGN KEY (product_id) REFERENCES product (id) ON DELETE NO ACTION ON UPDATE NO ACTION,
  FOREIGN KEY (order_id) REFERENCES "order" (id) ON DELETE CASCADE ON UPDATE NO ACTION
);
CREATE TABLE order_item_note (
  id BIGINT PRIMARY KEY,
  order_id INTEGER NOT NULL,
  product_id INTEGER NOT NULL,
  note TEXT,
  FOREIGN KEY (order_id, product_id) REFERENCES order_item (order_id, product_id) ON DELETE CASCADE ON UPDATE NO ACTION
);
CREATE VIEW expensive AS SELECT * FROM product WHERE price > 100;

INSERT INTO Employee (name, boss_id) VALUES ('Ada', NULL), ('Ben', 1), ('Cid', 1);
INSERT INTO customer (name, adviser_id, born) VALUES ('Dee', 2, '1980-02-29 00:00:00'), ('Eve', 3, NULL), ('Fay', NULL, NULL);
DELETE FROM customer WHERE name = 'Fay';
INSERT INTO "order" (id, customer_id, total, placed_at) VALUES (7, 1, 19.95, '2024-01-02 03:04:05'), (8, 2, 0.05, '2024-01-02 03:04:06');
INSERT INTO product (name, price) VALUES ('lamp', 19.95), ('nut', 0.05);
INSERT INTO order_item (order_id, product_id) VALUES (7, 1), (8, 2);
