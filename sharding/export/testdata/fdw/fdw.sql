-- Run it with psql as a user who may make extensions and servers. The tables are in the
-- schema shards. See FDW of package export for what it takes from the environment.
\set ON_ERROR_STOP on
\getenv east_host EAST_HOST
\getenv east_port EAST_PORT
\getenv east_dbname EAST_DBNAME
\getenv east_user EAST_USER
\getenv east_password EAST_PASSWORD
\getenv west_host WEST_HOST
\getenv west_port WEST_PORT
\getenv west_dbname WEST_DBNAME
\getenv west_user WEST_USER
\getenv west_password WEST_PASSWORD
SELECT NOT (:{?east_host} AND :{?east_port} AND :{?east_dbname} AND :{?east_user} AND :{?east_password} AND :{?west_host} AND :{?west_port} AND :{?west_dbname} AND :{?west_user} AND :{?west_password}) AS incomplete \gset
\if :incomplete
	DO $$ BEGIN RAISE EXCEPTION 'set the environment variables EAST_HOST, EAST_PORT, EAST_DBNAME, EAST_USER, EAST_PASSWORD, WEST_HOST, WEST_PORT, WEST_DBNAME, WEST_USER, WEST_PASSWORD'; END $$;
\endif
BEGIN;
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SCHEMA shards;
CREATE SCHEMA "shards_east";
CREATE SERVER "shards_east" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'east_host', port :'east_port', dbname :'east_dbname', updatable 'false', truncatable 'false', async_capable 'true', fetch_size '1000');
CREATE USER MAPPING FOR CURRENT_USER SERVER "shards_east" OPTIONS (user :'east_user', password :'east_password');
CREATE SCHEMA "shards_west";
CREATE SERVER "shards_west" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'west_host', port :'west_port', dbname :'west_dbname', updatable 'false', truncatable 'false', async_capable 'true', fetch_size '1000');
CREATE USER MAPPING FOR CURRENT_USER SERVER "shards_west" OPTIONS (user :'west_user', password :'west_password');
DO $$
DECLARE
	shard record;
	locale text;
	here text := (SELECT COALESCE(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', d.datcollate::text) FROM pg_database d WHERE d.datname = current_database());
	there text;
BEGIN
	FOR shard IN SELECT s.srvname, o.option_value AS name FROM pg_foreign_server s, pg_options_to_table(s.srvoptions) o WHERE s.srvname LIKE 'shards\_%' AND o.option_name = 'dbname' LOOP
		FOREACH locale IN ARRAY ARRAY['datlocale', 'daticulocale', 'datcollate'] LOOP
			BEGIN
				EXECUTE format('CREATE FOREIGN TABLE shards.locale (datname name, locale text OPTIONS (column_name %L), datcollate text) SERVER %I OPTIONS (schema_name ''pg_catalog'', table_name ''pg_database'')', locale, shard.srvname);
				SELECT COALESCE(l.locale, l.datcollate) INTO there FROM shards.locale l WHERE l.datname = shard.name;
				DROP FOREIGN TABLE shards.locale;
				EXIT;
			EXCEPTION WHEN undefined_column THEN
				there := NULL;
			END;
		END LOOP;
		IF there IS DISTINCT FROM here THEN
			RAISE EXCEPTION 'texts of the database % have the locale %, and those of this one %', shard.name, there, here USING HINT = 'Run this file in a database that is made with the locale of the shards.';
		END IF;
	END LOOP;
END $$;
IMPORT FOREIGN SCHEMA public LIMIT TO ("orders_00", "orders_02") FROM SERVER "shards_east" INTO "shards_east" OPTIONS (import_generated 'false', import_not_null 'false');
IMPORT FOREIGN SCHEMA public LIMIT TO ("orders_01", "orders_03") FROM SERVER "shards_west" INTO "shards_west" OPTIONS (import_generated 'false', import_not_null 'false');
CREATE FUNCTION shards."orders_slot"(key bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT ((key % 4) + 4) % 4 $$;
CREATE TABLE shards."orders" (LIKE "shards_east"."orders_00") PARTITION BY LIST (shards."orders_slot"("user_id"));
ALTER TABLE shards."orders" ATTACH PARTITION "shards_east"."orders_00" FOR VALUES IN (0);
ALTER TABLE shards."orders" ATTACH PARTITION "shards_west"."orders_01" FOR VALUES IN (1);
ALTER TABLE shards."orders" ATTACH PARTITION "shards_east"."orders_02" FOR VALUES IN (2);
ALTER TABLE shards."orders" ATTACH PARTITION "shards_west"."orders_03" FOR VALUES IN (3);
IMPORT FOREIGN SCHEMA public LIMIT TO ("events_00", "events_02") FROM SERVER "shards_east" INTO "shards_east" OPTIONS (import_generated 'false', import_not_null 'false');
IMPORT FOREIGN SCHEMA public LIMIT TO ("events_01", "events_03") FROM SERVER "shards_west" INTO "shards_west" OPTIONS (import_generated 'false', import_not_null 'false');
CREATE FUNCTION shards."events_slot"(key bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (key >> 12) & 3 $$;
CREATE TABLE shards."events" (LIKE "shards_east"."events_00") PARTITION BY LIST (shards."events_slot"("user_id"));
ALTER TABLE shards."events" ATTACH PARTITION "shards_east"."events_00" FOR VALUES IN (0);
ALTER TABLE shards."events" ATTACH PARTITION "shards_west"."events_01" FOR VALUES IN (1);
ALTER TABLE shards."events" ATTACH PARTITION "shards_east"."events_02" FOR VALUES IN (2);
ALTER TABLE shards."events" ATTACH PARTITION "shards_west"."events_03" FOR VALUES IN (3);
IMPORT FOREIGN SCHEMA public LIMIT TO ("carts_00", "carts_02") FROM SERVER "shards_east" INTO "shards_east" OPTIONS (import_generated 'false', import_not_null 'false');
IMPORT FOREIGN SCHEMA public LIMIT TO ("carts_01", "carts_03") FROM SERVER "shards_west" INTO "shards_west" OPTIONS (import_generated 'false', import_not_null 'false');
CREATE FUNCTION shards."carts_slot"(key bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT ((key % 4) + 7) % 4 $$;
CREATE TABLE shards."carts" (LIKE "shards_east"."carts_00") PARTITION BY LIST (shards."carts_slot"("user_id"));
ALTER TABLE shards."carts" ATTACH PARTITION "shards_east"."carts_00" FOR VALUES IN (0);
ALTER TABLE shards."carts" ATTACH PARTITION "shards_west"."carts_01" FOR VALUES IN (1);
ALTER TABLE shards."carts" ATTACH PARTITION "shards_east"."carts_02" FOR VALUES IN (2);
ALTER TABLE shards."carts" ATTACH PARTITION "shards_west"."carts_03" FOR VALUES IN (3);
IMPORT FOREIGN SCHEMA public LIMIT TO ("visits_00", "visits_02") FROM SERVER "shards_east" INTO "shards_east" OPTIONS (import_generated 'false', import_not_null 'false');
IMPORT FOREIGN SCHEMA public LIMIT TO ("visits_01", "visits_03") FROM SERVER "shards_west" INTO "shards_west" OPTIONS (import_generated 'false', import_not_null 'false');
CREATE TABLE shards."visits" (LIKE "shards_east"."visits_00");
ALTER TABLE shards."visits" ADD CONSTRAINT rows_are_on_shards CHECK (false) NO INHERIT;
ALTER FOREIGN TABLE "shards_east"."visits_00" INHERIT shards."visits";
ALTER FOREIGN TABLE "shards_west"."visits_01" INHERIT shards."visits";
ALTER FOREIGN TABLE "shards_east"."visits_02" INHERIT shards."visits";
ALTER FOREIGN TABLE "shards_west"."visits_03" INHERIT shards."visits";
IMPORT FOREIGN SCHEMA public LIMIT TO ("b", "a") FROM SERVER "shards_west" INTO "shards_west" OPTIONS (import_generated 'false', import_not_null 'false');
CREATE FUNCTION shards."odd_slot"(key bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT ((key % 2) + 2) % 2 $$;
CREATE TABLE shards."odd" (LIKE "shards_west"."b") PARTITION BY LIST (shards."odd_slot"("id"));
ALTER TABLE shards."odd" ATTACH PARTITION "shards_west"."b" FOR VALUES IN (0);
ALTER TABLE shards."odd" ATTACH PARTITION "shards_west"."a" FOR VALUES IN (1);
IMPORT FOREIGN SCHEMA public LIMIT TO ("regions") FROM SERVER "shards_east" INTO shards OPTIONS (import_generated 'false', import_not_null 'false');
COMMIT;
