create table orders_seq(id bigint, next_id bigint, cache bigint, primary key(id)) comment 'vitess_sequence';
insert into orders_seq(id, next_id, cache) values(0, 5000, 1000);
