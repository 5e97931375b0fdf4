SELECT COUNT(*), COALESCE(SUM(total), 0), COUNT(DISTINCT user_id) FROM orders WHERE created_at >= '2024-01-02'
SELECT COUNT(*), COALESCE(SUM(total), 0), COUNT(DISTINCT coupon) FROM orders WHERE created_at >= '2024-01-02'
SELECT DATE(created_at) AS d, COUNT(*) AS n, SUM(total) AS t FROM orders GROUP BY d ORDER BY d
SELECT DATE(created_at) AS d, status, COUNT(*) AS n FROM orders GROUP BY DATE(created_at), status ORDER BY d DESC, n DESC, status LIMIT 10
SELECT * FROM (SELECT o.*, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY created_at DESC, id DESC) AS rn FROM orders o) x WHERE rn = 1 ORDER BY id
SELECT o.id, o.total FROM orders o WHERE o.total > (SELECT AVG(total) FROM orders i WHERE i.user_id = o.user_id) ORDER BY o.id
SELECT u.user_id, COUNT(DISTINCT u.coupon) AS c FROM orders u GROUP BY u.user_id HAVING c > 1 ORDER BY c DESC, u.user_id
SELECT COUNT(*) FROM (SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) > 3) t
SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) t
SELECT SUM(status = 'paid') AS paid, SUM(status = 'open') AS open, SUM(CASE WHEN status = 'paid' THEN total END) AS t FROM orders
SELECT YEAR(created_at) AS y, MONTH(created_at) AS m, SUM(total) FROM orders GROUP BY y, m ORDER BY y, m
SELECT DATE_FORMAT(created_at, '%Y-%m') AS ym, COUNT(*) FROM orders GROUP BY ym ORDER BY ym
SELECT id FROM orders WHERE status IN ('paid', 'open') AND coupon IS NOT NULL ORDER BY FIELD(status, 'open', 'paid'), id LIMIT 10
SELECT id, IF(total > 50, 'big', 'small') AS size FROM orders ORDER BY size, id LIMIT 10
SELECT user_id, GROUP_CONCAT(id ORDER BY id) AS ids FROM orders GROUP BY user_id ORDER BY user_id
SELECT i.sku, SUM(i.qty) AS q FROM orders o JOIN items i ON i.order_id = o.id AND i.user_id = o.user_id WHERE o.status = 'paid' GROUP BY i.sku ORDER BY q DESC, i.sku LIMIT 5
SELECT o.id, COUNT(i.id) AS n FROM orders o LEFT JOIN items i ON i.order_id = o.id AND i.user_id = o.user_id GROUP BY o.id ORDER BY n DESC, o.id LIMIT 5
SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.user_id = o.user_id AND i.order_id = o.id) ORDER BY o.id
SELECT COUNT(*) FROM orders o WHERE o.id IN (SELECT order_id FROM items WHERE sku = 'a')
SELECT ROUND(AVG(total), 2), ROUND(SUM(total) / COUNT(DISTINCT user_id), 2) FROM orders
SELECT coupon, COUNT(*) AS n, ROUND(AVG(total), 2) AS a, MAX(total) - MIN(total) AS spread FROM orders GROUP BY coupon ORDER BY a DESC, coupon
SELECT HOUR(created_at) AS h, COUNT(*) FROM orders GROUP BY h ORDER BY COUNT(*) DESC, h
SELECT id, total, SUM(total) OVER (PARTITION BY user_id ORDER BY id) AS running FROM orders ORDER BY id LIMIT 10
SELECT * FROM orders WHERE (created_at, id) < ('2024-01-03 00:00:00', 30) ORDER BY created_at DESC, id DESC LIMIT 5
SELECT o.*, (SELECT COUNT(*) FROM items i WHERE i.user_id = o.user_id AND i.order_id = o.id) AS n FROM orders o ORDER BY n DESC, o.id LIMIT 5
SELECT o.id, (SELECT i.sku FROM items i WHERE i.user_id = o.user_id AND i.order_id = o.id ORDER BY i.id LIMIT 1) AS first FROM orders o ORDER BY first IS NULL, first, o.id LIMIT 5
SELECT t.d, SUM(t.n) FROM (SELECT DATE(created_at) AS d, user_id, COUNT(*) AS n FROM orders GROUP BY d, user_id) t GROUP BY t.d ORDER BY t.d
WITH s AS (SELECT user_id, SUM(total) AS t FROM orders GROUP BY user_id) SELECT COUNT(*), AVG(t) FROM s WHERE t > 100
WITH s AS (SELECT user_id, SUM(total) AS t FROM orders GROUP BY user_id) SELECT * FROM s ORDER BY t DESC, user_id LIMIT 3
SELECT (SELECT COUNT(*) FROM orders) AS a, (SELECT COUNT(*) FROM items) AS b
SELECT COUNT(*) AS total, COUNT(CASE WHEN status = 'paid' THEN 1 END) AS paid, COUNT(CASE WHEN status = 'paid' THEN 1 END) / COUNT(*) AS ratio FROM orders
SELECT DISTINCT coupon FROM orders ORDER BY coupon
SELECT coupon, status, COUNT(*) AS n FROM orders GROUP BY coupon, status HAVING n > 1 AND SUM(total) > 20 ORDER BY n DESC, coupon, status
SELECT user_id, MAX(created_at) AS last, TIMESTAMPDIFF(DAY, MAX(created_at), '2024-02-01') AS ago FROM orders GROUP BY user_id ORDER BY last, user_id
SELECT TIMESTAMPDIFF(DAY, MAX(created_at), '2024-02-01') AS ago FROM orders
SELECT IFNULL(SUM(total), 0) AS t, IFNULL(AVG(total), 0) AS a FROM orders WHERE status = 'none'
SELECT SUM(total * (1 - 0.1)) AS net, SUM(total) * 0.9 AS n2 FROM orders
SELECT coupon, SUM(total) / NULLIF(COUNT(CASE WHEN status = 'paid' THEN 1 END), 0) AS per FROM orders GROUP BY coupon ORDER BY coupon
SELECT CASE WHEN total < 20 THEN 'low' WHEN total < 60 THEN 'mid' ELSE 'high' END AS band, COUNT(*) AS n FROM orders GROUP BY band ORDER BY n DESC, band
SELECT MAX(id) AS m FROM orders GROUP BY coupon ORDER BY m
SELECT EXISTS(SELECT 1 FROM orders WHERE status = 'paid')
SELECT o1.user_id FROM orders o1 JOIN orders o2 ON o1.user_id = o2.user_id AND o2.id > o1.id GROUP BY o1.user_id HAVING COUNT(*) > 2 ORDER BY o1.user_id
SELECT COUNT(*) FROM orders a WHERE a.total = (SELECT MAX(total) FROM orders)
SELECT LEFT(coupon, 1) AS l, COUNT(*) FROM orders GROUP BY l ORDER BY l
SELECT DAYNAME(created_at) AS dn, COUNT(*) AS n FROM orders GROUP BY dn ORDER BY n DESC, dn
SELECT COUNT(DISTINCT user_id, coupon) FROM orders
SELECT COUNT(DISTINCT DATE(created_at)) FROM orders
SELECT coupon, COUNT(DISTINCT user_id) AS u, COUNT(DISTINCT status) AS s FROM orders GROUP BY coupon ORDER BY u DESC, coupon
SELECT DATE(MAX(created_at)) AS d, COALESCE(MAX(coupon), 'none') FROM orders
SELECT coupon, COALESCE(MAX(status), 'none') AS s, DATE_FORMAT(MAX(created_at), '%Y-%m-%d') FROM orders GROUP BY coupon ORDER BY coupon
SELECT COALESCE(MAX(coupon), 'none'), COUNT(DISTINCT status) FROM orders WHERE id < 0
SELECT NULLIF(MAX(coupon), 'c3') FROM orders
SELECT NULLIF(MIN(coupon), 'c0') FROM orders
SELECT DATEDIFF('2024-03-01', MAX(created_at)) FROM orders
SELECT user_id, DATEDIFF(NOW(), MAX(created_at)) AS n FROM orders GROUP BY user_id ORDER BY n, user_id
SELECT UPPER(MAX(coupon)) FROM orders
SELECT status, UPPER(MAX(coupon)) AS u FROM orders GROUP BY status ORDER BY status
SELECT LEAST(MIN(total), 10.5) FROM orders
SELECT 'paid' AS s, COUNT(*) AS n, SUM(total) AS t FROM orders WHERE status = 'paid' UNION ALL SELECT 'open', COUNT(*), SUM(total) FROM orders WHERE status = 'open' UNION ALL SELECT 'none', COUNT(*), SUM(total) FROM orders WHERE status = 'none'
SELECT 1 AS pos, COUNT(*) AS n FROM orders UNION ALL SELECT 2, SUM(total) FROM orders ORDER BY pos DESC
SELECT 1 AS pos, MAX(coupon) AS n FROM orders UNION ALL SELECT 2, MAX(status) FROM orders ORDER BY pos DESC LIMIT 1
SELECT SUM(DISTINCT total), COUNT(DISTINCT total), COUNT(*) FROM orders
SELECT coupon, SUM(DISTINCT qty) FROM orders JOIN items ON items.user_id = orders.user_id GROUP BY coupon ORDER BY coupon
SELECT COUNT(DISTINCT coupon), COALESCE(SUM(total), 0), IFNULL(AVG(total), 0), COALESCE(MIN(total), 5) FROM orders WHERE status = 'none'
SELECT COUNT(DISTINCT coupon), COALESCE(SUM(total), 0), IFNULL(AVG(total), 0) FROM orders WHERE status = 'paid' OR id < 7
SELECT COUNT(DISTINCT coupon), COALESCE(SUM(total), 0) FROM orders HAVING COUNT(*) > 100
SELECT CAST(SUM(total) AS DECIMAL(10,1)), CAST(COUNT(*) AS DECIMAL(10,2)) FROM orders
SELECT CAST(AVG(total) AS DECIMAL(10,2)) FROM orders
SELECT status, COUNT(*) FROM orders GROUP BY status ORDER BY FIELD(status, 'open', 'paid', 'void')
SELECT coupon, status, COUNT(*) AS n FROM orders GROUP BY coupon, status ORDER BY CONCAT(coupon, status) DESC, LENGTH(status), coupon, status
SELECT status, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM orders GROUP BY status ORDER BY status
SELECT user_id, SUM(total) AS t, RANK() OVER (ORDER BY SUM(total) DESC) AS r FROM orders GROUP BY user_id ORDER BY r, user_id LIMIT 5
SELECT o.id, o.total, GROUP_CONCAT(i.sku ORDER BY i.id) AS skus FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY o.id ORDER BY o.id LIMIT 4
SELECT ROUND(SUM(id), 2) / 7, COALESCE(SUM(total) / 7, 0.123456789), SUM(id) / 7 + MAX(CAST(total AS DOUBLE)) FROM orders
SELECT ROUND(IFNULL(AVG(CASE WHEN id < 7 THEN 1 ELSE 0 END), 0), 3) FROM orders WHERE id < 13
SELECT ROUND(COALESCE(AVG(CASE WHEN id < 8 THEN 1 ELSE 0 END), 0.0), 3) FROM orders WHERE id <= 13
SELECT user_id, COUNT(*) FROM orders GROUP BY user_id HAVING COALESCE(AVG(id), 0) > 28.6666 ORDER BY user_id
SELECT user_id, ROUND(AVG(total), 2), COUNT(DISTINCT status) FROM orders GROUP BY user_id ORDER BY user_id DESC
SELECT * FROM (SELECT o.total, (SELECT COUNT(*) FROM items x WHERE x.user_id = o.user_id AND x.order_id = o.id) FROM orders o WHERE o.total > 10) AS t ORDER BY total LIMIT 3
SELECT ROUND(-AVG(CASE WHEN id < 7 THEN 1 ELSE 0 END), 3), -AVG(CASE WHEN id < 7 THEN 1 ELSE 0 END) FROM orders WHERE id < 13
SELECT NULLIF(COUNT(*) / 7, 1.8571), NULLIF(COUNT(*) / 7, 1.857142857) FROM orders WHERE id < 13
SELECT SUM(total) / 1e2, COUNT(*) * 1e2 / 7 FROM orders
SELECT ROUND(SUM(CAST(total AS DOUBLE)), 2) * 2, ROUND(SUM(CAST(total AS DOUBLE)) / 7, 2) FROM orders
SELECT id, total, SUM(total) OVER (ORDER BY id) AS running FROM orders ORDER BY id LIMIT 10
SELECT status, NULLIF(COALESCE(SUM(total) / 7, 0.1234567), SUM(total) / 7) AS x, NULLIF(SUM(total) / 7, IFNULL(SUM(total) / 7, 0.1234567)) AS y FROM orders GROUP BY status ORDER BY status
SELECT status, CAST(SUM(total) AS DECIMAL(4,2)) AS x, CAST(-SUM(total) AS DECIMAL(5,3)) AS y FROM orders GROUP BY status HAVING CAST(SUM(total) AS DECIMAL(4,2)) > 99 ORDER BY status
SELECT status, -MAX(CAST(id AS UNSIGNED)) AS x FROM orders GROUP BY status HAVING -MIN(CAST(id AS UNSIGNED)) > -9 ORDER BY status
SELECT status, IF(COUNT(*) > 10, 'busy — 忙', 'calm') AS label FROM orders GROUP BY status ORDER BY status
-- refused
SELECT MIN(created_at), MAX(created_at), DATEDIFF(MAX(created_at), MIN(created_at)) AS days FROM orders
SELECT coupon, GROUP_CONCAT(id ORDER BY id) FROM orders GROUP BY coupon
SELECT status, COUNT(*) FROM orders GROUP BY status WITH ROLLUP
SELECT CONCAT(ROUND(SUM(total), 1), ' EUR') AS t FROM orders
SELECT JSON_OBJECT('n', COUNT(*)) AS j FROM orders
SELECT STDDEV(total) FROM orders
SELECT status, COUNT(*) FROM orders GROUP BY status ORDER BY RAND()
SELECT DISTINCT status FROM orders ORDER BY RAND()
SELECT id FROM orders ORDER BY created_at DESC, id LIMIT 5 FOR UPDATE
SELECT BIT_OR(id), BIT_AND(id) FROM orders
SELECT DATEDIFF(NOW(), MAX(created_at)) > 100 FROM orders
SELECT DATEDIFF(NOW(), MAX(created_at)) FROM orders
SELECT 1 AS pos, MAX(created_at) AS n FROM orders UNION ALL SELECT 2, MIN(created_at) FROM items JOIN orders USING (user_id) ORDER BY pos DESC
SELECT status, ROUND(AVG(total), 2) AS x, COUNT(DISTINCT user_id) AS c FROM orders GROUP BY status ORDER BY c, status
SELECT COALESCE(AVG(total), 0.1234567) FROM orders
SELECT COUNT(*) FROM (SELECT status, status FROM orders GROUP BY status) AS t
