#!/bin/sh
# vttablets.sh starts an unmanaged vttablet of Vitess v24 for each shard. TOPOLOGY_FLAGS
# name the topology server, CELL the cell, DB_USER the user of MySQL, whose password
# DB_CREDENTIALS has, in the form of --db-credentials-file. Each database of the
# router has its address in NAME_HOST and NAME_PORT. A vttablet's process id is in
# vttablet.NUMBER.pid, and what it reports in vttablet.NUMBER.log.
set -eu
cd "$(dirname "$0")"
tablet() { # number, shard, database, host, port
	# shellcheck disable=SC2086 # these are several flags
	vttablet $TOPOLOGY_FLAGS --tablet-path "$CELL-$1" --init-keyspace shop \
		--init-shard "$2" --init-tablet-type replica --init-db-name-override "$3" \
		--unmanaged --db-host "$4" --db-port "$5" --db-credentials-file "$DB_CREDENTIALS" \
		--db-app-user "$DB_USER" --db-dba-user "$DB_USER" --db-repl-user "$DB_USER" \
		--db-filtered-user "$DB_USER" --db-allprivs-user "$DB_USER" --db-appdebug-user "$DB_USER" \
		--port $((15000 + $1)) --grpc-port $((16000 + $1)) --pid-file "vttablet.$1.pid" \
		--service-map grpc-queryservice,grpc-tabletmanager,grpc-updatestream >"vttablet.$1.log" 2>&1 &
}
tablet 101 '-40' 'shop_start_40' "$EAST_HOST" "$EAST_PORT"
tablet 102 '40-80' 'shop_40_80' "$EAST_HOST" "$EAST_PORT"
tablet 103 '80-c0' 'shop_80_c0' "$WEST_HOST" "$WEST_PORT"
tablet 104 'c0-' 'shop_c0_end' "$WEST_HOST" "$WEST_PORT"
