// SPDX-License-Identifier: Apache-2.0

package restore

var (
	// MariaDB are the queries of MariaDB.
	MariaDB = Queries{
		Blocks: "XA RECOVER",
		Ends:   mysqlEnds,
		Removes: []string{
			mysqlDatabases,
			"SELECT CONCAT('DROP ', IF(is_role = 'Y', CONCAT('ROLE ', QUOTE(User)), CONCAT('USER ', QUOTE(User), '@', QUOTE(Host)))) FROM mysql.user",
		},
		State: []string{
			mysqlVariables, mysqlPlugins, "SHOW ALL SLAVES STATUS",
			"CHECKSUM TABLE mysql.global_priv, mysql.db, mysql.tables_priv, mysql.columns_priv, mysql.procs_priv, mysql.proxies_priv, mysql.roles_mapping, " +
				"mysql.proc, mysql.event, mysql.func, mysql.servers, mysql.gtid_slave_pos, mysql.time_zone_name, mysql.general_log, mysql.slow_log",
		},
	}
	// MySQL are the queries of MySQL.
	MySQL = Queries{
		Blocks: "XA RECOVER",
		Ends:   mysqlEnds,
		Removes: []string{
			mysqlDatabases,
			"SELECT CONCAT('DROP USER ', QUOTE(User), '@', QUOTE(Host)) FROM mysql.user",
		},
		State: []string{
			mysqlVariables, mysqlPlugins, "SHOW REPLICA STATUS",
			"CHECKSUM TABLE mysql.user, mysql.db, mysql.tables_priv, mysql.columns_priv, mysql.procs_priv, mysql.proxies_priv, mysql.role_edges, mysql.default_roles, mysql.global_grants, " +
				"mysql.component, mysql.func, mysql.servers, mysql.slave_master_info, mysql.time_zone_name, mysql.general_log, mysql.slow_log",
		},
	}
	// Postgres are the queries of PostgreSQL, in its first database.
	Postgres = Queries{
		Blocks: "SELECT gid FROM pg_prepared_xacts",
		Ends:   "SELECT format('SELECT pg_terminate_backend(%s)', pid) FROM pg_stat_activity WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()",
		Removes: []string{
			"SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database",
			"SELECT format('DROP ROLE %I', rolname) FROM pg_roles",
		},
		State: []string{
			"SELECT name || setting FROM pg_settings ORDER BY name",
			"SELECT pg_read_file('postgresql.auto.conf') || pg_read_file('pg_hba.conf')",
			"SELECT a::text FROM pg_authid a ORDER BY oid",
			"SELECT m::text FROM pg_auth_members m ORDER BY 1",
			"SELECT s::text FROM pg_db_role_setting s ORDER BY 1",
			"SELECT datname || COALESCE(datacl::text, '') || datconnlimit FROM pg_database ORDER BY 1",
			"SELECT slot_name FROM pg_replication_slots",
			"SELECT subname FROM pg_subscription",
			"SELECT pubname FROM pg_publication",
			"SELECT spcname FROM pg_tablespace ORDER BY 1",
			"SELECT extname FROM pg_extension ORDER BY 1",
			"SELECT c::text FROM pg_namespace c ORDER BY oid",
			"SELECT relname FROM pg_class WHERE oid >= 16384 ORDER BY oid", // the server has created those below itself
			"SELECT proname FROM pg_proc WHERE oid >= 16384 ORDER BY oid",
			"SELECT typname FROM pg_type WHERE oid >= 16384 ORDER BY oid",
		},
	}
)

const (
	mysqlEnds      = "SELECT CONCAT('KILL ', ID) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER NOT IN ('system user', 'event_scheduler')"
	mysqlDatabases = "SELECT CONCAT('DROP DATABASE `', REPLACE(SCHEMA_NAME, '`', '``'), '`') FROM information_schema.SCHEMATA"
	mysqlVariables = "SHOW GLOBAL VARIABLES"
	mysqlPlugins   = "SELECT CONCAT(PLUGIN_NAME, PLUGIN_STATUS) FROM information_schema.PLUGINS ORDER BY 1"
)
