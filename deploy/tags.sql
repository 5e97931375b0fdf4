-- The tags that /api/segment/get/{tag} knows: where ids begin, and how many are taken at once.
INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 1000);
