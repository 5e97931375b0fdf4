SELECT 'orders' AS what, COUNT(*) AS n FROM orders UNION ALL SELECT 'items', COUNT(*) FROM items
SELECT SUM(DISTINCT total) FROM orders
SELECT GREATEST(MAX(total), 10) FROM orders
SELECT COUNT(*) AS orders, COUNT(DISTINCT user_id) AS buyers, SUM(total) AS revenue, SUM(total) / COUNT(DISTINCT user_id) AS per_buyer FROM orders WHERE status = 'paid'
SELECT user_id, COUNT(*) AS n, SUM(total) AS spent FROM orders WHERE status <> 'void' GROUP BY user_id ORDER BY spent DESC, user_id LIMIT 10
SELECT user_id, MIN(created_at) AS first, MAX(created_at) AS last FROM orders GROUP BY user_id HAVING COUNT(*) >= 2 ORDER BY last DESC, user_id
SELECT status, MIN(total), MAX(total), AVG(total), COUNT(coupon) FROM orders GROUP BY status ORDER BY COUNT(*) DESC, MIN(id)
SELECT COUNT(*) FROM orders WHERE total > (SELECT AVG(total) FROM orders)
SELECT COUNT(*) FROM (SELECT DISTINCT user_id FROM orders WHERE status = 'paid') AS t
SELECT n, COUNT(*) AS users FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS t GROUP BY n ORDER BY n
SELECT o.user_id, SUM(i.qty) AS q FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id WHERE o.total > 10 GROUP BY o.user_id ORDER BY q DESC, o.user_id LIMIT 3
SELECT i.sku, COUNT(DISTINCT o.user_id) AS buyers FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY i.sku ORDER BY buyers DESC, MIN(i.id)
SELECT CASE WHEN total >= 50 THEN 1 ELSE 0 END AS big, COUNT(*), SUM(total) FROM orders GROUP BY CASE WHEN total >= 50 THEN 1 ELSE 0 END ORDER BY big
SELECT id, total, created_at FROM orders WHERE status = 'open' AND created_at < '2024-01-05' ORDER BY created_at, id LIMIT 20 OFFSET 5
SELECT DISTINCT status, coupon IS NULL AS without FROM orders WHERE id > 3
SELECT MAX(total) AS m FROM orders WHERE status = 'none'
SELECT COALESCE(MAX(total), 0) AS m, COALESCE(MIN(created_at), '2000-01-01') AS d FROM orders WHERE status = 'none'
SELECT coupon, COALESCE(SUM(total), 0) AS s FROM orders GROUP BY coupon HAVING COALESCE(SUM(total), 0) > 100 ORDER BY s DESC
SELECT 'today' AS label, COUNT(*) AS n, SUM(total) AS s FROM orders WHERE created_at >= '2024-01-06' UNION ALL SELECT 'yesterday', COUNT(*), SUM(total) FROM orders WHERE created_at >= '2024-01-05' AND created_at < '2024-01-06'
SELECT (SELECT COUNT(*) FROM orders WHERE status = 'paid') AS paid, (SELECT COUNT(*) FROM orders WHERE status = 'open') AS open
SELECT COUNT(*) FROM orders o JOIN items i ON i.user_id = o.user_id WHERE i.sku IN ('a', 'b') AND o.coupon IS NOT NULL
SELECT a.user_id, a.n FROM (SELECT user_id, COUNT(*) AS n FROM items GROUP BY user_id) a WHERE a.n > 2 ORDER BY a.n DESC, a.user_id
SELECT o.id FROM orders o WHERE o.user_id IN (SELECT user_id FROM items WHERE qty > 3) ORDER BY o.id DESC LIMIT 4
SELECT SUM(CASE WHEN status = 'paid' THEN total ELSE 0 END) AS paid, SUM(CASE WHEN status = 'open' THEN total ELSE 0 END) AS open FROM orders
SELECT ROUND(100.0 * SUM(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) / COUNT(*), 2) AS rate FROM orders
SELECT user_id, id, total, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY total DESC, id) AS place FROM orders ORDER BY user_id, place
SELECT user_id, total - LAG(total) OVER (PARTITION BY user_id ORDER BY id) AS delta FROM orders ORDER BY id LIMIT 10
SELECT COUNT(*) FROM orders WHERE created_at >= '2024-01-02' AND created_at < '2024-01-04' AND NOT EXISTS (SELECT 1 FROM items WHERE items.user_id = orders.user_id AND items.order_id = orders.id)
SELECT status, COUNT(*) AS n FROM orders WHERE user_id = 7 GROUP BY status ORDER BY n DESC, status LIMIT 1
SELECT AVG(n) AS mean, MAX(n) AS most FROM (SELECT user_id, COUNT(*) AS n FROM orders WHERE status = 'paid' GROUP BY user_id) AS t
SELECT EXISTS (SELECT 1 FROM orders WHERE total > 1000)
SELECT MIN(total) AS least, MAX(total) AS most, MAX(total) - MIN(total) AS spread, SUM(total) AS s FROM orders WHERE coupon = 'c1'
SELECT * FROM orders ORDER BY total DESC, id LIMIT 3
SELECT id FROM orders WHERE coupon IN (SELECT coupon FROM orders WHERE user_id = 7) ORDER BY id LIMIT 5
SELECT COUNT(DISTINCT coupon), COUNT(DISTINCT status), COUNT(*) FROM orders WHERE total BETWEEN 10 AND 60
WITH recent AS (SELECT * FROM orders WHERE created_at > '2024-01-03') SELECT status, COUNT(*) FROM recent GROUP BY status ORDER BY COUNT(*), MIN(id)
SELECT o.id, o.total, i.sku FROM orders o INNER JOIN items i ON o.id = i.order_id AND o.user_id = i.user_id WHERE i.qty >= 2 ORDER BY o.total DESC, o.id LIMIT 5
SELECT status, COUNT(*) AS n, ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (), 2) AS percent FROM orders GROUP BY status ORDER BY percent DESC, MIN(id)
SELECT user_id, SUM(total) AS t, ROW_NUMBER() OVER (ORDER BY SUM(total) DESC) AS place FROM orders GROUP BY user_id ORDER BY place LIMIT 5 OFFSET 1
SELECT user_id, COUNT(*) AS n, DENSE_RANK() OVER (ORDER BY COUNT(*) DESC) AS place, RANK() OVER (ORDER BY COUNT(*)) AS other FROM orders GROUP BY user_id ORDER BY place, user_id
SELECT coupon, status, SUM(total) AS t, SUM(SUM(total)) OVER (PARTITION BY coupon) AS of_coupon, RANK() OVER (PARTITION BY coupon ORDER BY SUM(total) DESC) AS place FROM orders GROUP BY coupon, status ORDER BY of_coupon DESC, place
SELECT DATE(created_at) AS d, SUM(total) AS t, SUM(SUM(total)) OVER (ORDER BY DATE(created_at)) AS running FROM orders GROUP BY DATE(created_at) ORDER BY d
SELECT status, COUNT(*) OVER () AS kinds, COUNT(COUNT(coupon)) OVER (ORDER BY COUNT(*)) AS c FROM orders GROUP BY status HAVING COUNT(*) > 3 ORDER BY COUNT(*), MIN(id)
SELECT status, SUM(COUNT(*)) OVER (ORDER BY COUNT(*) DESC) AS running, COUNT(DISTINCT coupon) AS c FROM orders GROUP BY status ORDER BY running, MIN(id)
SELECT user_id, SUM(total) * COUNT(*) OVER () > SUM(SUM(total)) OVER () AS above FROM orders GROUP BY user_id ORDER BY user_id
SELECT id, total, COUNT(*) OVER () AS full_count FROM orders WHERE status <> 'void' ORDER BY created_at DESC, id LIMIT 3 OFFSET 2
SELECT *, COUNT(*) OVER () AS n FROM orders ORDER BY id DESC LIMIT 2
SELECT COUNT(coupon) OVER () AS with_coupon, o.id, o.total FROM orders o WHERE o.total > 10 ORDER BY with_coupon, o.id LIMIT 5
SELECT o.id, i.sku, COUNT(*) OVER () AS n FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id WHERE o.status = 'paid' ORDER BY o.id, i.id LIMIT 4
SELECT id, COUNT(*) OVER () AS n FROM orders WHERE status = 'none' ORDER BY id LIMIT 4
SELECT COUNT(*) FROM (SELECT status FROM orders GROUP BY status) AS t
SELECT COUNT(*) AS n FROM (SELECT DISTINCT coupon, status FROM orders WHERE total > 10) AS t
WITH t AS (SELECT coupon, SUM(total) AS s FROM orders GROUP BY coupon HAVING SUM(total) > 50) SELECT COUNT(*) FROM t
SELECT COUNT(*) FROM (SELECT id FROM orders WHERE status = 'paid' LIMIT 5) AS t
SELECT COUNT(*) FROM (SELECT status FROM orders UNION SELECT sku FROM items) AS t
SELECT COUNT(*) FROM (SELECT status FROM orders WHERE id < 0 GROUP BY status) AS t
SELECT o.*, COUNT(i.id) AS n, SUM(i.qty) AS q FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY o.id ORDER BY COUNT(i.id) DESC, o.id LIMIT 5
SELECT o.id, o.total, o.status, MAX(i.qty) AS most FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id WHERE o.status <> 'void' GROUP BY o.id HAVING COUNT(*) > 1 ORDER BY o.created_at DESC, o.id
SELECT COUNT(*) FROM (SELECT o.id FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY o.id HAVING SUM(i.qty) > 3) AS t
SELECT id, total, RANK() OVER (PARTITION BY id ORDER BY total) AS r FROM orders ORDER BY id LIMIT 3
SELECT status FROM orders GROUP BY status HAVING SUM((SELECT COUNT(*) FROM items WHERE items.user_id = orders.user_id)) > 3 ORDER BY MAX((SELECT COUNT(*) FROM items WHERE items.user_id = orders.user_id)), MIN(id)
SELECT COUNT(DISTINCT (SELECT COUNT(*) FROM items WHERE items.user_id = orders.user_id)) FROM orders
SELECT SUM((SELECT COUNT(*) FROM items WHERE items.user_id = orders.user_id)) / 7 FROM orders
SELECT COALESCE(SUM(total), 7) / 3, COALESCE(MAX(user_id), 2.5) / 2 FROM orders WHERE status = 'none'
SELECT COUNT(DISTINCT coupon), COALESCE(SUM(total), 7) / 3 FROM orders WHERE status = 'none'
SELECT COALESCE(MAX(user_id), 0.5) / 3, COALESCE(MAX(user_id), SUM(total)) / 7, NULLIF(MAX(user_id), 0.5) / 3, 3 / COALESCE(SUM(total), 0.123456) FROM orders
SELECT coupon, COALESCE(SUM(CASE WHEN status = 'open' THEN total END), 7) / 3 AS x FROM orders WHERE id < 9 GROUP BY coupon ORDER BY x, MIN(id)
SELECT status, COUNT(*) / SUM(COUNT(*)) OVER () AS share, COUNT(*) * 100 / SUM(COUNT(*)) OVER (ORDER BY MIN(id)) AS other FROM orders GROUP BY status ORDER BY MIN(id)
SELECT user_id, SUM(MAX(user_id)) OVER (ORDER BY user_id) / 7 AS x, SUM(SUM(id)) OVER (ORDER BY user_id) / 7 AS y FROM orders GROUP BY user_id ORDER BY user_id
SELECT SUM(n) / 7, COUNT(*) / SUM(n) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS t
SELECT SUM(n) / 7 FROM (SELECT user_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY id) AS n FROM orders) AS t
SELECT total, COUNT(*) AS n FROM orders GROUP BY total ORDER BY RANK() OVER (ORDER BY total) DESC LIMIT 3
SELECT 'all' AS label, COUNT(DISTINCT coupon) AS n, 5, ROUND(COUNT(*) * 1.0, 2) FROM orders WHERE status = 'none'
SELECT id, total, RANK() OVER (ORDER BY total DESC) AS place FROM orders ORDER BY place, id LIMIT 10
SELECT id, ROW_NUMBER() OVER (ORDER BY created_at, id) AS n FROM orders ORDER BY created_at, id LIMIT 5 OFFSET 7
SELECT *, DENSE_RANK() OVER (ORDER BY user_id) AS d FROM orders WHERE total > 10 ORDER BY user_id, id
SELECT o.id, i.sku, i.qty, RANK() OVER (ORDER BY i.qty DESC) AS r, DENSE_RANK() OVER (ORDER BY i.qty DESC) AS d, COUNT(*) OVER () AS n FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id ORDER BY i.qty DESC, i.id LIMIT 20
SELECT id, status, RANK() OVER (ORDER BY status) AS r FROM orders ORDER BY r, id LIMIT 4 OFFSET 20
SELECT id, coupon, DENSE_RANK() OVER (ORDER BY coupon) AS r FROM orders ORDER BY 3, 1
SELECT id, total AS t, RANK() OVER (ORDER BY total) AS r FROM orders ORDER BY t, id LIMIT 3
SELECT ROW_NUMBER() OVER (ORDER BY id DESC) AS n, id FROM orders WHERE user_id IN (1, 2, 3) ORDER BY n
SELECT i.id, COUNT(*) AS n FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY i.id ORDER BY n DESC, i.id LIMIT 3
SELECT COUNT(*) FROM (SELECT i.id FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY i.id) AS t
SELECT a.id, a.status, COUNT(b.id) AS earlier FROM orders a LEFT JOIN orders b ON b.user_id = a.user_id AND b.id < a.id GROUP BY a.id ORDER BY earlier DESC, a.id LIMIT 5
SELECT user_id, n, COUNT(*) OVER () AS users FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS t ORDER BY n DESC, user_id LIMIT 3
SELECT id, COUNT((SELECT 1 FROM items WHERE items.user_id = orders.user_id AND items.id = orders.id)) OVER () AS with_item FROM orders ORDER BY id LIMIT 2 OFFSET 57
SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM orders HAVING COUNT(*) > 100) AS t
SELECT COUNT(*) FROM (SELECT id FROM orders ORDER BY id LIMIT 10 OFFSET 55) AS t
SELECT id, total, SUM(total) OVER (ORDER BY id) AS balance FROM orders ORDER BY id LIMIT 10 OFFSET 5
SELECT id, created_at, SUM(total) OVER (ORDER BY created_at, id) AS running, COUNT(coupon) OVER (ORDER BY created_at, id) AS coupons, COUNT(*) OVER (ORDER BY created_at, id) AS n, COUNT(*) OVER () AS all_rows FROM orders WHERE user_id <> 3 ORDER BY created_at, id
SELECT *, SUM(user_id) OVER (ORDER BY id DESC) AS s, RANK() OVER (ORDER BY id DESC) AS r FROM orders ORDER BY id DESC LIMIT 7
SELECT id, SUM(CASE WHEN coupon IS NULL THEN NULL ELSE total END) OVER (ORDER BY id) AS with_coupon FROM orders ORDER BY id
SELECT * FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) AS t WHERE n > 1 ORDER BY n DESC, status LIMIT 10
SELECT t.n AS how_many, status FROM (SELECT status, COUNT(*) AS n, MAX(total) AS m FROM orders WHERE id > 5 GROUP BY status HAVING COUNT(*) > 3) AS t WHERE t.m <> 7 AND t.status <> 'void' ORDER BY t.m, 2
WITH days AS (SELECT DATE(created_at) AS day, SUM(total) AS revenue FROM orders GROUP BY DATE(created_at)) SELECT day, revenue, SUM(revenue) OVER (ORDER BY day) AS running FROM days ORDER BY day
WITH days AS (SELECT DATE(created_at) AS day, SUM(total) AS revenue, COUNT(*) AS n FROM orders GROUP BY day) SELECT day AS on_day, revenue / n AS mean FROM days WHERE n >= 3 ORDER BY day DESC LIMIT 3 OFFSET 1
SELECT status, RANK() OVER (ORDER BY n DESC, status) AS place FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY 1) AS t ORDER BY place
SELECT coupon, s, ROW_NUMBER() OVER (ORDER BY s DESC, coupon) AS place FROM (SELECT coupon, SUM(total) AS s FROM orders GROUP BY coupon) AS t WHERE coupon IS NOT NULL ORDER BY place LIMIT 3
SELECT c, status FROM (SELECT coupon AS c, status, MIN(id) AS first, MAX(id) AS last FROM orders GROUP BY coupon, status) AS t WHERE last - first > 20 ORDER BY first * 2 DESC, c
SELECT status, a FROM (SELECT status, AVG(total) AS a, COUNT(*) AS n FROM orders GROUP BY status) AS t WHERE n > 2 ORDER BY n, status
SELECT status, n * 100 / SUM(n) OVER () AS part FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) AS t ORDER BY status
SELECT t.* FROM (SELECT sku, SUM(qty) AS q, COUNT(DISTINCT user_id) AS u FROM items GROUP BY sku) AS t WHERE t.q > 10 OR t.u < 3 ORDER BY t.sku
SELECT s.sku FROM (SELECT i.sku, COUNT(*) AS n FROM orders AS o JOIN items AS i ON i.user_id = o.user_id AND i.order_id = o.id WHERE o.status = 'paid' GROUP BY i.sku) AS s WHERE s.n BETWEEN 1 AND 100 ORDER BY s.n DESC, s.sku
SELECT n, status FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n) AS t WHERE status IN ('paid', 'open') ORDER BY status
SELECT qty, COUNT(*) AS n FROM items GROUP BY qty HAVING qty % 2 = 1 ORDER BY qty
WITH t AS (SELECT status, COUNT(*) AS n FROM orders WHERE created_at < NOW() GROUP BY status) SELECT * FROM t WHERE n > 1 ORDER BY status
SELECT * FROM (SELECT status, COUNT(*) AS n FROM orders WHERE total > (SELECT AVG(total) FROM orders) GROUP BY status) AS t ORDER BY status
SELECT UPPER(status) AS label, n FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) AS t ORDER BY n, label
SELECT sku, q - LAG(q) OVER (ORDER BY sku) AS more FROM (SELECT sku, SUM(qty) AS q FROM items GROUP BY sku) AS t ORDER BY sku
SELECT status, CASE WHEN COUNT(*) > 10 THEN 'busy' WHEN MAX(total) IS NULL THEN NULL ELSE 'calm' END AS label FROM orders GROUP BY status ORDER BY status
SELECT COALESCE(SUM(total), CAST(1 AS DECIMAL(10,2))) AS s, COUNT(*) + CAST('7' AS DECIMAL(10,2)) AS n FROM orders WHERE status = 'none'
SELECT COUNT(DISTINCT coupon) AS c, COALESCE(SUM(total), CAST(1 AS DECIMAL(10,2))) AS s FROM orders WHERE status = 'none'
SELECT COUNT(*) AS n FROM orders WHERE status = 'none' HAVING COUNT(*) < CAST(7 AS DECIMAL(10,2))
-- refused
SELECT id, RANK() OVER (ORDER BY total DESC) AS place FROM orders ORDER BY id LIMIT 10
SELECT id, ROW_NUMBER() OVER (ORDER BY total DESC) AS n FROM orders ORDER BY total DESC, id
SELECT id, RANK() OVER (ORDER BY total DESC) AS place FROM orders ORDER BY place DESC, id LIMIT 10
SELECT id, RANK() OVER (PARTITION BY status ORDER BY total) AS r FROM orders ORDER BY total, id
SELECT id, RANK() OVER (ORDER BY total) + 1 AS r FROM orders ORDER BY total, id
SELECT id, RANK() OVER (ORDER BY total) AS r FROM orders
SELECT id, id % 3 AS total, RANK() OVER (ORDER BY total) AS r FROM orders ORDER BY total, id
SELECT id, SUM(total) OVER (ORDER BY created_at) AS running FROM orders ORDER BY created_at, id
SELECT o.id, SUM(i.qty) OVER (ORDER BY o.id) AS running FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id ORDER BY o.id, i.id
SELECT id, SUM(total) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three FROM orders ORDER BY id
SELECT id, AVG(total) OVER (ORDER BY id) AS average FROM orders ORDER BY id
SELECT status, CASE WHEN n > 15 THEN 'many' ELSE 'few' END AS size FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) AS t ORDER BY size, status
