// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// outgrown are the tables before the migration.
const outgrown = `
CREATE TABLE users (id NUMBERED, name VARCHAR(200) NOT NULL, email VARCHAR(200) NOT NULL UNIQUE);
CREATE TABLE orders (id NUMBERED, user_id BIGINT NOT NULL);
CREATE INDEX orders_user ON orders (user_id);
CREATE TABLE items (
  id NUMBERED,
  user_id BIGINT NOT NULL,
  order_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  quantity BIGINT NOT NULL,
  FOREIGN KEY (order_id) REFERENCES orders (id)
);
CREATE INDEX items_user ON items (user_id, order_id)`

// numbered is the definition of a key that the database numbers.
var numbered = map[string]string{
	"mysql":  "BIGINT NOT NULL PRIMARY KEY AUTO_INCREMENT",
	"sqlite": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
}

// products get a copy in each database, so that any shard can join them.
const products = `
CREATE TABLE IF NOT EXISTS products (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL);
REPLACE INTO products (id, name) VALUES (1, 'apples'), (2, 'pears'), (3, 'plums')`

const perStatement = 500

// makeTables creates the tables of the shop, and inserts users and orders with one item each.
func (s *shop) makeTables(ctx context.Context, orders int) error {
	if err := execute(ctx, s.legacy, strings.ReplaceAll(outgrown, "NUMBERED", numbered[s.Driver])); err != nil {
		return fmt.Errorf("the example makes its tables in an empty database: %w", err)
	}
	for _, db := range []*sql.DB{s.legacy, s.shards["east"], s.shards["west"]} {
		if err := execute(ctx, db, products); err != nil {
			return err
		}
	}
	for _, t := range []struct {
		into string
		rows int
		row  func(n int) string
	}{
		{"users (name, email)", users, func(n int) string { return fmt.Sprintf("('Customer %d', 'c%d@example.org')", n, n) }},
		{"orders (user_id)", orders, func(n int) string { return fmt.Sprintf("(%d)", 1+n%users) }},
		{"items (user_id, order_id, product_id, quantity)", orders, func(n int) string { return fmt.Sprintf("(%d, %d, %d, 1)", 1+n%users, n+1, 1+n%3) }},
	} {
		for from := 0; from < t.rows; from += perStatement {
			var values []string
			for n := from; n < min(t.rows, from+perStatement); n++ {
				values = append(values, t.row(n))
			}
			if err := execute(ctx, s.legacy, "INSERT INTO "+t.into+" VALUES "+strings.Join(values, ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// execute runs statements that are separated by semicolons.
func execute(ctx context.Context, db *sql.DB, script string) error {
	for statement := range strings.SplitSeq(script, ";") {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
