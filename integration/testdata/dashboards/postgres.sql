SELECT o.status, AVG(i.qty)::numeric(10,2) FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY o.status ORDER BY o.status COLLATE "C"
SELECT created_at::date AS d, COUNT(*) AS n, SUM(total) FROM orders GROUP BY 1 ORDER BY 1
SELECT created_at::date, COUNT(*) FROM orders GROUP BY created_at::date ORDER BY created_at::date DESC LIMIT 5
SELECT CAST(created_at AS date) AS d, COUNT(*) FROM orders GROUP BY d ORDER BY d
SELECT date_trunc('day', created_at) AS d, COUNT(*) FILTER (WHERE status = 'paid') AS paid FROM orders GROUP BY d ORDER BY d
SELECT date_trunc('month', created_at)::date AS d, COUNT(*) FROM orders GROUP BY d ORDER BY d
SELECT to_char(created_at, 'YYYY-MM') AS ym, COUNT(*) FROM orders GROUP BY ym ORDER BY ym
SELECT extract(hour FROM created_at)::int AS h, COUNT(*) FROM orders GROUP BY h ORDER BY h
SELECT user_id::text AS u, COUNT(*) FROM orders GROUP BY u ORDER BY COUNT(*) DESC, MIN(id)
SELECT DISTINCT created_at::date FROM orders ORDER BY 1
SELECT DISTINCT ON (user_id) user_id, id FROM orders ORDER BY user_id, created_at DESC, id
SELECT COUNT(DISTINCT coupon), COALESCE(SUM(total), 0) FROM orders
SELECT COUNT(DISTINCT coupon), COALESCE(SUM(total), 0), COALESCE(AVG(total), 0)::numeric(10,2) FROM orders WHERE status = 'none'
SELECT COUNT(DISTINCT created_at::date) FROM orders
SELECT SUM(total)::float8 / NULLIF(COUNT(*), 0) FROM orders
SELECT ROUND(AVG(total), 2) AS a, ROUND(SUM(total) * 100.0 / NULLIF(COUNT(*), 0), 1) FROM orders
SELECT MAX(created_at)::date FROM orders
SELECT COALESCE(MAX(coupon), 'none') FROM orders
SELECT coupon IS NULL AS none, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1
SELECT COALESCE(coupon, 'none') AS c, COUNT(*) FROM orders GROUP BY c ORDER BY COUNT(*) DESC, MIN(id)
SELECT id, CASE status WHEN 'paid' THEN 1 ELSE 0 END AS p FROM orders ORDER BY p DESC, id LIMIT 5
SELECT width_bucket(total, 0, 100, 5) AS b, COUNT(*) FROM orders GROUP BY b ORDER BY b
SELECT user_id FROM orders GROUP BY user_id HAVING COUNT(*) > 3 AND BOOL_OR(status = 'paid') ORDER BY user_id
SELECT id FROM orders ORDER BY ABS(total - 50), id LIMIT 3
SELECT id FROM orders WHERE created_at > now() - interval '100 years' ORDER BY created_at DESC NULLS LAST, id LIMIT 3
SELECT id FROM orders WHERE status = ANY(ARRAY['paid','open']) ORDER BY id LIMIT 3
SELECT COUNT(*)::int FROM orders
SELECT (COUNT(*) FILTER (WHERE status = 'paid'))::float / COUNT(*) FROM orders
SELECT COUNT(*) > 10 FROM orders
SELECT EXISTS (SELECT 1 FROM orders WHERE total > 80)
SELECT total::numeric(10,0) AS r, COUNT(*) FROM orders GROUP BY r ORDER BY r LIMIT 7
SELECT total::int / 10 AS r, COUNT(*) FROM orders GROUP BY r ORDER BY r
SELECT (total / 10)::int AS r, COUNT(*) FROM orders GROUP BY r ORDER BY r
SELECT created_at::timestamp(0) AS t, COUNT(*) FROM orders GROUP BY t ORDER BY t LIMIT 3
SELECT status::varchar(3) AS t, COUNT(*) FROM orders GROUP BY t ORDER BY COUNT(*), MIN(id)
SELECT user_id, json_agg(json_build_object('id', id) ORDER BY id) FROM orders GROUP BY user_id ORDER BY user_id
SELECT COUNT(*), MIN(total), MAX(total), AVG(total) FROM orders WHERE created_at BETWEEN '2024-01-02' AND '2024-01-04'
SELECT status, SUM(total) AS s, COUNT(*) AS n, SUM(total) / COUNT(*) AS mean FROM orders GROUP BY status HAVING SUM(total) / COUNT(*) > 1 ORDER BY s DESC
SELECT status, COUNT(*) FROM orders GROUP BY status ORDER BY CASE status WHEN 'open' THEN 1 WHEN 'paid' THEN 2 ELSE 3 END
SELECT coupon, COUNT(*) FROM orders GROUP BY coupon ORDER BY coupon COLLATE "C" NULLS FIRST
SELECT created_at::date AS d, COUNT(*) FROM orders GROUP BY created_at::date ORDER BY extract(dow FROM created_at::date), d
SELECT id, COUNT(*) FILTER (WHERE status = 'paid') OVER () AS paid FROM orders ORDER BY id LIMIT 3
SELECT o.id, o.total, string_agg(i.sku, ',' ORDER BY i.id) AS skus FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY o.id ORDER BY o.id LIMIT 4
SELECT COUNT(*) FROM (SELECT status, 1 / (COUNT(*) - COUNT(*)) AS x FROM orders GROUP BY status) AS t
SELECT id, row_number() OVER (ORDER BY total DESC, id) FROM orders ORDER BY 2 LIMIT 5
SELECT SUM(total) / 1e2, COUNT(*) * 1e2 / 7, SUM(id) * 1.5E1, COUNT(*) + 1e-3 FROM orders
SELECT status, COUNT(*) FROM orders GROUP BY status HAVING COUNT(*) * 1e1 > 2.5e1 ORDER BY status
SELECT CAST(SUM(CASE WHEN user_id % 2 = 0 THEN 100 ELSE -100 END) AS DECIMAL(5,2)) AS x, SUM(CASE WHEN user_id % 2 = 0 THEN 2000 ELSE -2000 END)::smallint FROM orders
SELECT pg_catalog.count(*), pg_catalog.max(total) FROM orders WHERE created_at < pg_catalog.now()
SELECT status, pg_catalog.avg(total)::numeric(10,2) FROM orders GROUP BY status ORDER BY pg_catalog.count(*), MIN(id)
SELECT g::date, COUNT(o.id) FROM generate_series('2024-01-01'::timestamp, '2024-01-05', '1 day') g LEFT JOIN orders o ON o.created_at::date = g::date GROUP BY g ORDER BY g
-- refused
SELECT string_agg(coupon, ',') FROM orders WHERE id = 3
SELECT array_agg(id ORDER BY id) FROM orders
SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders GROUP BY status
SELECT MAX(created_at) - MIN(created_at) FROM orders
SELECT SUM(total)::text FROM orders
SELECT STDDEV(total), VARIANCE(total) FROM orders
SELECT created_at::time AS t, COUNT(*) FROM orders GROUP BY t ORDER BY t
SELECT COALESCE(MAX(user_id), ARRAY[]) FROM orders
SELECT status FROM orders GROUP BY status ORDER BY ABS(SUM(COUNT(*)) OVER ())
