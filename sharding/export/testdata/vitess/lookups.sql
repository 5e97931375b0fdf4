create table orders_id_lookup(id bigint not null, keyspace_id varbinary(8), primary key(id));
