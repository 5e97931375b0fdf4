SELECT create_distributed_table('"orders"', 'user_id', colocate_with => 'none', shard_count => 8);
SELECT create_distributed_table('"payments"', 'user_id', colocate_with => '"orders"');
SELECT create_distributed_table('"events"', 'id', colocate_with => 'none', shard_count => 4);
SELECT create_reference_table('"regions"');
