-- name: CreateOrder :exec
INSERT INTO orders (id, user_id, note, amount, paid_at, created_at)
VALUES (?, ?, ?, ?, ?, ?);

-- name: Order :one
SELECT * FROM orders WHERE id = ?;

-- name: OrdersOfUser :many
SELECT * FROM orders WHERE user_id = ? ORDER BY id;

-- name: OrdersOfUsers :many
SELECT * FROM orders WHERE user_id IN (sqlc.slice('users')) ORDER BY id;

-- name: LatestOrders :many
SELECT * FROM orders ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?;

-- name: OrdersSince :many
SELECT * FROM orders WHERE created_at >= ? ORDER BY id;

-- name: UnpaidOrders :many
SELECT * FROM orders WHERE paid_at IS NULL AND note IS NULL ORDER BY id;

-- name: CountOrders :one
SELECT COUNT(*) FROM orders WHERE amount >= ?;

-- name: PayOrder :execrows
UPDATE orders SET paid_at = ?, note = ? WHERE user_id = ? AND id = ?;

-- name: PayOrderByID :execrows
UPDATE orders SET paid_at = ?, note = ? WHERE id = ?;

-- name: DeleteOrder :execrows
DELETE FROM orders WHERE user_id = ? AND id = ?;

-- name: CreateItem :exec
INSERT INTO items (id, order_id, sku) VALUES (?, ?, ?);

-- name: SKUsOfUser :many
SELECT items.sku FROM orders JOIN items ON items.order_id = orders.id
WHERE orders.user_id = ? ORDER BY items.sku;
